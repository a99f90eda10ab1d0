//! Cancels an overdue run, as `pg_cancel_backend()` does, and terminates its process after [`GRACE`].
//!
//! Invariant: no run is ended too early, because all times come from the monotonic clock.

use crate::Mono;
use std::time::Duration;

pub const GRACE: Duration = Duration::from_secs(2);
/// The launcher cancels a run this long after its timeout, because the worker's own timer should end the run first.
pub const SLACK: Duration = Duration::from_millis(250);
/// A run that continues this long after the signal to terminate is stuck.
pub const STUCK: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub began: Mono,
    pub timeout: Duration,
    pub strikes: u8,
}

impl Run {
    pub const fn new(began: Mono, timeout: Duration) -> Self {
        Self { began, timeout, strikes: 0 }
    }

    pub fn strike(&mut self, now: Mono) -> Option<u8> {
        self.is_over_time(now).then(|| {
            self.strikes = self.strikes_due(now);
            self.strikes
        })
    }

    pub fn is_over_time(&self, now: Mono) -> bool {
        self.strikes_due(now) > self.strikes
    }

    fn strikes_due(&self, now: Mono) -> u8 {
        self.times().iter().filter(|at| **at <= now).count() as u8
    }

    pub fn next_strike_in(&self, now: Mono) -> Option<Duration> {
        self.times().iter().find(|at| **at > now).map(|at| at.since(now))
    }

    pub fn is_stuck(&self, now: Mono) -> bool {
        self.strikes >= 2 && now >= self.began.plus(self.timeout).plus(GRACE + STUCK)
    }

    fn times(&self) -> [Mono; 2] {
        let end = self.began.plus(self.timeout).plus(SLACK);
        [end, end.plus(GRACE)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{START, after_ms};

    #[test]
    fn a_run_is_struck_after_its_timeout_and_again_after_the_grace() {
        let mut run = Run::new(START, Duration::from_secs(3));
        assert_eq!(run.strike(after_ms(3_249)), None);
        assert_eq!(run.next_strike_in(after_ms(3_249)), Some(Duration::from_millis(1)));
        assert_eq!(run.strike(after_ms(3_250)), Some(1));
        assert_eq!(run.strike(after_ms(5_249)), None);
        assert_eq!(run.strike(after_ms(5_250)), Some(2));
        assert_eq!((run.strike(after_ms(9_999)), run.next_strike_in(after_ms(9_999))), (None, None));
    }

    #[test]
    fn one_that_was_not_looked_at_in_time_is_struck_for_good() {
        let mut run = Run::new(START, Duration::from_secs(3));
        assert_eq!(run.strike(after_ms(60_000)), Some(2));
    }

    #[test]
    fn a_run_is_stuck_a_second_after_its_second_strike_was_due() {
        let mut run = Run::new(START, Duration::from_secs(3));
        assert!(!run.is_stuck(after_ms(60_000)), "nobody has struck it");
        run.strike(after_ms(5_250));
        assert!(!run.is_stuck(after_ms(5_999)));
        assert!(run.is_stuck(after_ms(6_000)));
    }

    #[test]
    fn a_timeout_without_end_never_strikes() {
        let mut run = Run::new(START, Duration::MAX);
        assert_eq!(run.strike(after_ms(1 << 50)), None);
        assert!(!run.is_stuck(after_ms(1 << 50)));
    }
}
