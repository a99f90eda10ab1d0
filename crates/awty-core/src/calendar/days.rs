//! Converts opening hours to times in UTC.

use super::{Calendar, Clocks};
use crate::repeat::Zone;
use crate::repeat::civil::DAY;
use crate::repeat::local_time::{REACH, first_shown, span_at};
use std::ops::Range;

#[derive(Clone, Copy, Debug)]
pub(super) struct LocalTime {
    pub(super) day: i64,
    pub(super) time: i64,
}

impl<Z: Zone> Calendar<Z> {
    pub(super) fn local(&self, t: i64) -> LocalTime {
        let local = t.saturating_add(span_at(&self.zone, t).shift());
        LocalTime { day: local.div_euclid(DAY), time: local.rem_euclid(DAY) }
    }

    /// A day that the zone's clocks skip has no open time.
    pub(super) fn is_open_day(&self, day: i64) -> bool {
        self.open_on(day).next().is_some()
    }

    /// Returns `local` itself if the calendar is open then. If not, returns the day's next opening. If no opening
    /// follows, returns the day's last closing.
    pub(super) fn at_or_after(&self, local: LocalTime) -> Option<i64> {
        let wanted = self.moment_of(local);
        let mut last_closing = None;
        for period in self.open_on(local.day) {
            if period.end > wanted {
                return Some(period.start.max(wanted));
            }
            last_closing = Some(period.end);
        }
        last_closing
    }

    /// Returns the last time up to `local` at which the calendar is open that day. Before the day's first opening,
    /// returns that opening.
    pub(super) fn at_or_before(&self, local: LocalTime) -> Option<i64> {
        let wanted = self.moment_of(local);
        let mut found = None;
        for period in self.open_on(local.day) {
            if period.start <= wanted {
                found = Some(period.end.min(wanted));
            } else if found.is_none() {
                found = Some(period.start);
            }
        }
        found
    }

    fn moment_of(&self, local: LocalTime) -> i64 {
        first_shown(&self.zone, local.day * DAY + local.time)
    }

    fn open_on(&self, day: i64) -> impl Iterator<Item = Range<i64>> {
        let midnight = day * DAY;
        let within = if self.ranges(day).is_empty() { 0..0 } else { midnight - REACH..midnight + DAY + REACH };
        self.clocks(within).flat_map(move |Clocks { period, shift }| {
            let start = period.start.max(midnight - shift);
            let end = period.end.min(midnight + DAY - shift);
            self.open_by(Clocks { period: start..end.max(start), shift })
        })
    }
}
