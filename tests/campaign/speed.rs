//! Measures how long awty needs after a fault until due checks run again (promise P5).

use crate::load::{DATABASES, Shared};
use awty_testkit::Cluster;
use awty_testkit::postgres::Error;
use std::path::PathBuf;
use std::time::Instant;

const READY: &str = "database system is ready to accept connections";

/// Seconds within which the first run must start. A longer delay means that a wake-up was lost.
const TOO_LATE: f64 = 30.0;

pub struct Mark {
    log: PathBuf,
    position: usize,
    clock: i64,
    /// The next transaction id at the time of this `Mark`. Earlier transactions have lower ids, even if the clock was
    /// set back.
    xid: i64,
}

impl Mark {
    pub fn new(cluster: &Cluster, shared: &Shared) -> Self {
        let sql = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint";
        let asked = shared.connect("postgres", "postgres").and_then(|mut client| client.query_one(sql, &[]));
        Self {
            log: cluster.log_file(),
            position: cluster.log_position(),
            clock: cluster.clock(),
            xid: asked.map_or(0, |row| row.get(0)),
        }
    }

    fn ready(&self, cluster: &Cluster) -> Option<String> {
        let position = if cluster.log_file() == self.log { self.position } else { 0 };
        let log = cluster.log_since(position);
        let line = log.lines().rfind(|line| line.contains(READY))?;
        Some(line.split(" [").next()?.to_owned())
    }
}

#[derive(Clone, Copy, Default, Debug)]
pub struct Speed {
    /// Seconds from the server's start until each database with due checks has started a due check. `None` if
    /// the server did not restart, or if no check was due.
    pub first: Option<f64>,
    /// Seconds until all due checks were done. Counted from the server's start, or from the fault's end if the server
    /// did not stop.
    pub all: f64,
}

pub fn measure(cluster: &Cluster, shared: &Shared, mark: &Mark, since: Instant) -> Speed {
    let waited = Speed { first: None, all: since.elapsed().as_secs_f64() };
    let speed = mark.ready(cluster).and_then(|ready| since_ready(shared, &ready, mark.xid).ok());
    let Some(speed) = speed else { return waited };
    // Ignores implausible times, because the operating system may have set the clock.
    if cluster.clock() != mark.clock || speed.all < 0.0 || speed.all > waited.all + TOO_LATE {
        return waited;
    }
    if let Some(first) = speed.first.filter(|first| *first > TOO_LATE) {
        shared.saw("P5", format!("what was due ran {first:.1} s after the server took connections again"));
    }
    speed
}

fn since_ready(shared: &Shared, ready: &str, from: i64) -> Result<Speed, Error> {
    let sql = "SELECT extract(epoch FROM min(began) - min(ready))::float8,
                      extract(epoch FROM clock_timestamp() - (SELECT $1::text::timestamptz))::float8
               FROM (SELECT $1::text::timestamptz AS ready) AS r
               LEFT JOIN camp.effect ON xid >= $2 AND began >= ready AND slot <= ready";
    let mut speed = Speed::default();
    for database in DATABASES {
        let row = shared.connect(database, "postgres")?.query_one(sql, &[&ready, &from])?;
        let first: Option<f64> = row.get(0);
        speed.first = speed.first.into_iter().chain(first).reduce(f64::max);
        speed.all = speed.all.max(row.get(1));
    }
    Ok(speed)
}
