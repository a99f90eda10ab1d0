//! Each run and each promotion writes a line to a file outside the database, because a failover may lose rows.

use crate::place::Place;
use crate::reaper::pass;
use awty_testkit::postgres::{Client, Config, NoTls, fallible_iterator::FallibleIterator as _};
use chrono::{DateTime, NaiveDateTime, Utc};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    pub order: i64,
    pub timeline: u32,
    pub at: DateTime<Utc>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Ready {
    pub at: DateTime<Utc>,
    pub timeline: Option<u32>,
    pub first_run: Option<f64>,
}

#[derive(Debug, Default, PartialEq)]
pub struct Log {
    pub begun: Vec<Mark>,
    pub ready: Vec<Ready>,
}

impl Log {
    pub fn read(text: &str) -> Self {
        let mut log = Self::default();
        let mut new_timeline = None;
        for line in text.lines() {
            let Some((stamp, rest)) = line.split_once(" UTC [") else { continue };
            let Ok(at) = NaiveDateTime::parse_from_str(stamp, "%Y-%m-%d %H:%M:%S%.f").map(|at| at.and_utc()) else {
                continue;
            };
            if let Some((_, number)) = rest.split_once("selected new timeline ID: ") {
                new_timeline = number.trim().parse().ok();
            } else if rest.contains("database system is ready to accept connections") {
                log.ready.push(Ready { at, timeline: new_timeline.take(), first_run: None });
            } else if let Some((_, mark)) = rest.split_once("LOG:  order ") {
                let Some((order, timeline)) = mark.split_once(" runs on timeline ") else { continue };
                log.begun.extend(parse(order, timeline, at));
                if let Some(ready) = log.ready.last_mut() {
                    ready.first_run.get_or_insert((at - ready.at).as_seconds_f64());
                }
            }
        }
        log
    }
}

/// The timeline is a hexadecimal number, as in names of WAL files.
fn parse(order: &str, timeline: &str, at: DateTime<Utc>) -> Option<Mark> {
    Some(Mark { order: order.parse().ok()?, timeline: u32::from_str_radix(timeline.trim(), 16).ok()?, at })
}

pub struct Listeners {
    seen: Mutex<Vec<Mark>>,
    is_over: AtomicBool,
}

impl Listeners {
    pub fn start(place: &Place) -> Arc<Self> {
        let listeners = Arc::new(Self { seen: Mutex::default(), is_over: AtomicBool::new(false) });
        for member in &place.members {
            let (listeners, config) = (listeners.clone(), member.address(&place.folder, "postgres"));
            std::thread::spawn(move || listeners.follow(&config));
        }
        listeners
    }

    fn follow(&self, config: &Config) {
        while !self.is_over.load(Ordering::Relaxed) {
            if let Ok(mut client) = config.connect(NoTls) {
                let _ = self.listen(&mut client);
            }
            pass(Duration::from_millis(100));
        }
    }

    /// Waits until the standby is promoted, because PostgreSQL refuses LISTEN on a standby.
    fn listen(&self, client: &mut Client) -> Result<(), awty_testkit::postgres::Error> {
        while client.query_one("SELECT pg_is_in_recovery()", &[])?.get(0) {
            if self.is_over.load(Ordering::Relaxed) {
                return Ok(());
            }
            pass(Duration::from_millis(50));
        }
        client.batch_execute("LISTEN told")?;
        while !self.is_over.load(Ordering::Relaxed) && !client.is_closed() {
            let mut notifications = client.notifications();
            let mut told = notifications.timeout_iter(Duration::from_millis(200));
            while let Some(notification) = told.next()? {
                let mark = notification.payload().split_once(' ');
                let mark = mark.and_then(|(order, timeline)| parse(order, timeline, Utc::now()));
                self.seen.lock().unwrap().extend(mark);
            }
        }
        Ok(())
    }

    pub fn close(&self) -> Vec<Mark> {
        self.is_over.store(true, Ordering::Relaxed);
        self.seen.lock().unwrap().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_runs_and_promotions() {
        let text = "2026-11-25 03:00:00,000 INFO: no action. I am (member1), the leader with the lock
2026-11-25 03:00:01.000 UTC [7] startup LOG:  selected new timeline ID: 17
2026-11-25 03:00:02.000 UTC [6] postmaster LOG:  database system is ready to accept connections
2026-11-25 03:00:02.500 UTC [9] awty worker LOG:  order 42 runs on timeline 00000011
2026-11-25 03:00:03.500 UTC [9] awty worker LOG:  order 43 runs on timeline 00000011
2026-11-25 03:00:04.000 UTC [6] postmaster LOG:  database system is ready to accept read-only connections
2026-11-25 03:00:05.000 UTC [6] postmaster LOG:  database system is ready to accept connections";
        let log = Log::read(text);
        assert_eq!(log.begun.iter().map(|mark| (mark.order, mark.timeline)).collect::<Vec<_>>(), [(42, 17), (43, 17)]);
        let ready: Vec<_> = log.ready.iter().map(|ready| (ready.timeline, ready.first_run)).collect();
        assert_eq!(ready, [(Some(17), Some(0.5)), (None, None)]);
    }
}
