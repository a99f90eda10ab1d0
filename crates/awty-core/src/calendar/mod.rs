//! Invariant: a calendar is open exactly while the local time is within the hours of a day that is not closed. When
//! clocks are set back, the repeated hour counts twice.

mod days;
mod due;
mod hours;
mod hours_error;
mod length;
mod offsets;

pub use hours::Hours;
pub use hours_error::HoursError;
pub use length::{Length, LengthError};
pub use offsets::hash;

use crate::Time;
use crate::repeat::Zone;
use crate::repeat::civil::{DAY, Date, micros, moment};
use crate::repeat::local_time::span_at;
use chrono::TimeDelta;
use std::ops::Range;

/// A search for open time looks at most this far ahead or back.
pub const REACH: TimeDelta = TimeDelta::days(3653);

#[derive(Clone, Debug)]
struct Clocks {
    period: Range<i64>,
    /// Microseconds by which local time is ahead of UTC.
    shift: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calendar<Z> {
    hours: Hours,
    /// Closed local days, sorted, as numbers of days since 1970-01-01.
    closed: Vec<i64>,
    zone: Z,
}

impl<Z: Zone> Calendar<Z> {
    pub fn new(hours: Hours, mut closed: Vec<i64>, zone: Z) -> Self {
        closed.sort_unstable();
        closed.dedup();
        Self { hours, closed, zone }
    }

    /// Returns the last closed day as text if [`Time`] cannot represent this day. PostgreSQL's type `date` allows later
    /// days than [`Time`] does.
    pub fn day_out_of_reach(&self) -> Option<String> {
        let last = self.closed.last().filter(|day| moment(day.saturating_mul(DAY)).is_none())?;
        let date = Date::of(*last);
        Some(format!("{}-{:02}-{:02}", date.year, date.month, date.day))
    }

    pub fn hours(&self) -> &Hours {
        &self.hours
    }

    pub fn closed(&self) -> &[i64] {
        &self.closed
    }

    pub fn is_open(&self, t: Time) -> bool {
        let t = micros(t);
        let local = t.saturating_add(span_at(&self.zone, t).shift());
        self.ranges(local.div_euclid(DAY)).iter().any(|range| range.contains(&local.rem_euclid(DAY)))
    }

    pub fn next_opening(&self, t: Time) -> Option<Time> {
        moment(self.open_from(micros(t)).next()?.start)
    }

    pub fn open_time(&self, since: Time, at: Time) -> TimeDelta {
        let open = self.open(micros(since)..micros(at));
        TimeDelta::microseconds(open.map(|period| period.end - period.start).sum())
    }

    fn ranges(&self, day: i64) -> &[Range<i64>] {
        // Day 0 (1970-01-01) was a Thursday.
        let ranges = self.hours.of_weekday((day + 3).rem_euclid(7) as usize);
        if ranges.is_empty() || self.closed.binary_search(&day).is_ok() { &[] } else { ranges }
    }

    fn open(&self, within: Range<i64>) -> impl Iterator<Item = Range<i64>> {
        self.clocks(within).flat_map(|clocks| self.open_by(clocks))
    }

    fn open_from(&self, from: i64) -> impl Iterator<Item = Range<i64>> {
        self.open(from..end_of_search(from))
    }

    fn clocks(&self, within: Range<i64>) -> impl Iterator<Item = Clocks> {
        let mut from = within.start;
        std::iter::from_fn(move || {
            if from >= within.end {
                return None;
            }
            let span = span_at(&self.zone, from);
            let period = from..span.until.min(within.end);
            from = span.until;
            Some(Clocks { period, shift: span.shift() })
        })
    }

    fn open_by(&self, Clocks { period, shift }: Clocks) -> impl DoubleEndedIterator<Item = Range<i64>> {
        let first = period.start.saturating_add(shift).div_euclid(DAY);
        let last = if period.is_empty() { first - 1 } else { (period.end - 1).saturating_add(shift).div_euclid(DAY) };
        (first..last + 1).flat_map(move |day| {
            let midnight = day.saturating_mul(DAY).saturating_sub(shift);
            let period = period.clone();
            self.ranges(day).iter().filter_map(move |range| {
                let start = midnight.saturating_add(range.start).max(period.start);
                let end = midnight.saturating_add(range.end).min(period.end);
                (start < end).then_some(start..end)
            })
        })
    }
}

fn end_of_search(from: i64) -> i64 {
    from.saturating_add(REACH.num_microseconds().unwrap_or(i64::MAX))
}

fn start_of_search(to: i64) -> i64 {
    to.saturating_sub(REACH.num_microseconds().unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests;
