//! Sets the server's clock and leaves it changed, because awty's promises about time refer to this clock.

use super::look::catch;
use super::processes::{IN_RUN, LAUNCHER, kill};
use crate::load::Shared;
use crate::random::Random;
use awty_testkit::{Cluster, Stop, poll};
use chrono::{DateTime, Utc};
use std::time::Duration;

const RUN_IS_OVER: Duration = Duration::from_secs(30);

const HOUR: i64 = 3600;

const DATES: [&str; 12] = [
    "1970-01-01T00:00:10Z",
    "2000-01-01T00:00:00Z", // PostgreSQL's epoch
    "2024-02-29T00:00:00Z",
    "2025-12-31T23:00:00Z", // new year in Berlin
    "2026-03-08T07:00:00Z", // New York sets clocks forward
    "2026-03-29T01:00:00Z", // Berlin sets clocks forward
    "2026-10-25T01:00:00Z", // Berlin sets clocks back
    "2026-11-01T06:00:00Z", // New York sets clocks back
    "2038-01-19T03:14:08Z", // signed 32-bit seconds overflow
    "2100-03-01T00:00:00Z", // 2100 has no leap day
    "2106-02-07T06:28:16Z", // unsigned 32-bit seconds overflow
    "2262-04-11T23:47:17Z", // 64-bit nanoseconds overflow
];

pub fn set(cluster: &Cluster, random: &mut Random) -> bool {
    cluster.set_clock(elsewhere(cluster, random));
    true
}

fn elsewhere(cluster: &Cluster, random: &mut Random) -> i64 {
    let from = if random.per_mille(300) { 0 } else { cluster.clock() };
    let steps = [1, 2, 5, 30, 60, HOUR, 24 * HOUR, 48 * HOUR];
    let step = match random.below(3) {
        0 => random.below(48 * HOUR as u64) as i64,
        _ => *random.pick(&steps),
    };
    if random.per_mille(500) { from + step } else { from - step }
}

pub fn set_to_date(cluster: &Cluster, random: &mut Random) -> bool {
    let date: DateTime<Utc> = random.pick(&DATES).parse().expect("a date");
    cluster.set_clock((date - Utc::now()).num_seconds() - random.below(4) as i64);
    true
}

pub fn set_in_run(cluster: &Cluster, shared: &Shared, random: &mut Random) -> bool {
    let run = format!("SELECT pid::text || ' ' || xact_start FROM pg_stat_activity WHERE {IN_RUN} LIMIT 1");
    let Some(run) = catch::<String>(shared, &run) else { return false };
    cluster.set_clock(elsewhere(cluster, random));
    let there = "SELECT count(*) FROM pg_stat_activity WHERE pid::text || ' ' || xact_start = $1";
    let over = poll("the run to be over", RUN_IS_OVER, || {
        let mut client = shared.connect("postgres", "postgres").map_err(|error| error.to_string())?;
        match client.query_one(there, &[&run]).map_err(|error| error.to_string())?.get(0) {
            0_i64 => Ok(()),
            _ => Err(run.clone()),
        }
    });
    if let Err(what) = over {
        shared.saw("P8", format!("the clock was set while a check was run: {what}"));
    }
    true
}

/// If the clock was set back, PostgreSQL restarts the launcher only when the clock reaches the old time again.
pub fn set_at_start(cluster: &mut Cluster, shared: &Shared, random: &mut Random) -> bool {
    let to = elsewhere(cluster, random);
    if random.per_mille(500) {
        cluster.stop(Stop::Immediate);
        cluster.set_clock(to);
        cluster.start();
        return true;
    }
    let came_about = kill(cluster, shared, LAUNCHER);
    cluster.set_clock(to);
    came_about
}
