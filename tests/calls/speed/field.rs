//! Where everything is measured: one server, the origins, and the calls that are made to them.

use crate::place::{Place, pass};
use crate::receiver::Arrival;
use awty_testkit::postgres::Client;
use awty_testkit::{PATIENCE, poll};
use std::time::Duration;

/// Origins that answer at once.
const ORIGINS: usize = 100;
/// For all arrivals of one run.
const RUN: Duration = Duration::from_secs(600);

pub struct Field {
    pub place: Place,
    pub origins: Vec<String>,
    pub calls: u32,
}

impl Field {
    /// With pg_net, if the server has it.
    pub fn open(calls: u32, with_pg_net: bool) -> Self {
        let libraries = if with_pg_net { "awty,pg_stat_statements,pg_net" } else { "awty,pg_stat_statements" };
        let place = Place::open_with(&[("shared_preload_libraries", libraries), ("synchronous_commit", "off")]);
        let origins = (0..ORIGINS).map(|_| place.receiver.listen(false)).collect();
        Field { place, origins, calls }
    }

    pub fn superuser(&self) -> Client {
        self.place.cluster.superuser("postgres")
    }

    /// Waits until each of so many calls has arrived, and `is_booked` says that its sender knows; gives the calls per second between `begin`
    /// and the last arrival.
    pub fn rate(&self, calls: u32, from: usize, begin: i64, is_booked: &str) -> Result<f64, String> {
        poll("all calls to arrive", RUN, || {
            let count = self.place.receiver.count() - from;
            if count >= calls as usize { Ok(()) } else { Err(format!("{count} of {calls}")) }
        })?;
        let mut client = self.superuser();
        poll("all calls to be booked", PATIENCE, || {
            let row = client.query_one(is_booked, &[]).map_err(|error| error.to_string())?;
            if row.get(0) { Ok(()) } else { Err("they are not".into()) }
        })?;
        // What comes twice may come late.
        pass(0.5);
        let arrivals = self.place.receiver.since(from);
        each_once(&arrivals, calls)?;
        let last = arrivals.iter().map(|arrival| arrival.at).max().unwrap_or(begin);
        Ok(f64::from(calls) / ((last - begin) as f64 / 1e6))
    }
}

/// Each number up to `calls` has arrived, and none twice.
fn each_once(arrivals: &[Arrival], calls: u32) -> Result<(), String> {
    let mut numbers: Vec<u32> = arrivals.iter().map(|arrival| arrival.schedule).collect();
    numbers.sort_unstable();
    if numbers.iter().copied().eq(1..=calls) {
        return Ok(());
    }
    let arrived = numbers.len();
    numbers.dedup();
    Err(format!(
        "{arrived} arrived, {} different ones, of {calls}: a call was lost, doubled or invented",
        numbers.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_is_lost_or_doubled_is_seen() {
        let arrivals = |numbers: &[u32]| {
            let one = |schedule: &u32| Arrival { schedule: *schedule, at: 0, slot: 0, key: 0, lateness: 0.0 };
            numbers.iter().map(one).collect::<Vec<_>>()
        };
        assert!(each_once(&arrivals(&[3, 1, 2]), 3).is_ok());
        for bad in [&[1, 2][..], &[1, 2, 2], &[1, 2, 3, 3], &[0, 1, 2, 3]] {
            assert!(each_once(&arrivals(bad), 3).is_err(), "{bad:?}");
        }
    }
}
