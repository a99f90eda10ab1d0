//! Limits the log entries about the failures of one job.
//!
//! Invariant: the log gets at most one entry per second, and [`ENTRIES`] per minute.

use crate::Mono;
use std::time::Duration;

pub const ENTRIES: u32 = 10;
pub const APART: Duration = Duration::from_secs(1);
pub const MINUTE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    pub events: u64,
    pub ends: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRate {
    began: Option<Mono>,
    last: Option<Mono>,
    entries: u32,
    passed: Passed,
}

impl Passed {
    pub fn add(&mut self, more: Self) {
        self.events = self.events.saturating_add(more.events);
        self.ends = self.ends.saturating_add(more.ends);
    }
}

impl LogRate {
    pub const QUIET: Self = Self { began: None, last: None, entries: 0, passed: Passed { events: 0, ends: 0 } };

    /// Returns how many earlier failures were not logged, or `None` if this failure must not be logged now.
    pub fn note(&mut self, failed: Passed, now: Mono) -> Option<Passed> {
        let told = if self.may_tell(now) { self.begin_anew() } else { Passed::default() };
        self.began.get_or_insert(now);
        if !self.is_apart(now) || self.entries >= ENTRIES {
            self.passed.add(failed);
            return None;
        }
        self.entries += 1;
        self.last = Some(now);
        let is_end = u64::from(failed.ends == failed.events);
        self.passed.add(Passed { events: failed.events.saturating_sub(1), ends: failed.ends.saturating_sub(is_end) });
        Some(told)
    }

    pub fn leave(&mut self, failed: Passed, now: Mono) {
        self.began.get_or_insert(now);
        self.passed.add(failed);
    }

    pub fn summary(&mut self, now: Mono) -> Option<Passed> {
        if !self.may_tell(now) {
            return None;
        }
        let passed = self.begin_anew();
        if passed.events == 0 {
            return None;
        }
        self.last = Some(now);
        Some(passed)
    }

    fn begin_anew(&mut self) -> Passed {
        (self.began, self.entries) = (None, 0);
        std::mem::take(&mut self.passed)
    }

    fn may_tell(&self, now: Mono) -> bool {
        self.began.is_some_and(|began| now.since(began) >= MINUTE) && self.is_apart(now)
    }

    fn is_apart(&self, now: Mono) -> bool {
        self.last.is_none_or(|last| now.since(last) >= APART)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Passed = Passed { events: 1, ends: 0 };

    fn after_ms(ms: i64) -> Mono {
        Mono(7_000_000 + ms * 1000)
    }

    #[test]
    fn the_first_failure_speaks_at_once_and_the_next_one_after_a_second() {
        let mut rate = LogRate::QUIET;
        assert_eq!(rate.note(ONE, after_ms(0)), Some(Passed::default()));
        assert_eq!(rate.note(ONE, after_ms(999)), None);
        assert_eq!(rate.note(ONE, after_ms(1000)), Some(Passed::default()));
        assert_eq!(rate.summary(after_ms(59_999)), None);
        assert_eq!(rate.summary(after_ms(60_000)), Some(ONE));
        assert_eq!(rate.summary(after_ms(120_000)), None);
    }

    #[test]
    fn after_ten_entries_the_rest_of_the_minute_is_one_summary() {
        let mut rate = LogRate::QUIET;
        let entries = (0..60).filter(|second| rate.note(ONE, after_ms(second * 1000)).is_some()).count();
        assert_eq!(entries, 10);
        assert_eq!(rate.note(ONE, after_ms(60_000)), Some(Passed { events: 50, ends: 0 }));
    }

    #[test]
    fn what_is_left_is_told_when_the_minute_is_over() {
        let mut rate = LogRate::QUIET;
        rate.leave(ONE, after_ms(0));
        rate.leave(ONE, after_ms(30_000));
        assert_eq!(rate.summary(after_ms(59_000)), None);
        assert_eq!(rate.summary(after_ms(60_000)), Some(Passed { events: 2, ends: 0 }));
    }

    #[test]
    fn many_that_fail_at_once_are_one_entry_and_a_number() {
        let mut rate = LogRate::QUIET;
        assert_eq!(rate.note(Passed { events: 500, ends: 500 }, after_ms(0)), Some(Passed::default()));
        assert_eq!(rate.summary(after_ms(60_000)), Some(Passed { events: 499, ends: 499 }));
    }
}
