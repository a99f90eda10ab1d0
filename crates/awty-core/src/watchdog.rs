//! The limits of a run in time: it is struck twice. First it is cancelled, as by `pg_cancel_backend()`; one that catches that is
//! terminated after [`GRACE`].
//!
//! Invariant: no strike before its time by the monotonic clock, which no one can set.
//! Does not: send a signal.

use crate::Mono;
use std::time::Duration;

/// Between the two strikes.
pub const GRACE: Duration = Duration::from_secs(2);
/// The worker's own timer comes first. The watchdog is for when it does not, because the wall clock was set back.
pub const SLACK: Duration = Duration::from_millis(250);
/// A run that goes on for so long after its second strike is one that nothing stops.
pub const STUCK: Duration = Duration::from_secs(1);

/// One run, as the watchdog sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// When it began.
    pub began: Mono,
    /// How long it may take.
    pub timeout: Duration,
    /// How often the watchdog has struck: 1 cancelled, 2 terminated.
    pub strikes: u8,
}

impl Run {
    /// A run that begins now.
    pub const fn new(began: Mono, timeout: Duration) -> Self {
        Self { began, timeout, strikes: 0 }
    }

    /// Strikes, if it is time: how often the run has been struck by now, or `None` if nothing is new.
    pub fn strike(&mut self, now: Mono) -> Option<u8> {
        self.is_over_time(now).then(|| {
            self.strikes = self.strikes_due(now);
            self.strikes
        })
    }

    /// Is it time for a strike that has not been made?
    pub fn is_over_time(&self, now: Mono) -> bool {
        self.strikes_due(now) > self.strikes
    }

    fn strikes_due(&self, now: Mono) -> u8 {
        self.times().iter().filter(|at| **at <= now).count() as u8
    }

    /// How long until the next strike; `None` after the last.
    pub fn next_strike_in(&self, now: Mono) -> Option<Duration> {
        self.times().iter().find(|at| **at > now).map(|at| at.since(now))
    }

    /// Does it go on although it was struck twice? Only code that never checks for interrupts can.
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

    const START: Mono = Mono(5_000_000);

    fn after_ms(ms: u64) -> Mono {
        START.plus(Duration::from_millis(ms))
    }

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
