//! Decides how many checks a worker takes at once, in one *turn*.
//!
//! Large turns are cheap, because each turn flushes the write-ahead log once. But newly due checks wait until the turn
//! ends, so a turn should last only [`TURN`].

use std::time::Duration;

pub const TURN: Duration = Duration::from_millis(20);
pub const FIRST: usize = 64;

/// Returns how many checks a worker should run in its next turn. A turn should last at least as long as a flush of the
/// write-ahead log, so that slow flushes do not dominate.
pub fn next(size: usize, ran: usize, took: Duration, flush: Duration, most: usize) -> usize {
    let fitting = TURN.max(flush).as_nanos().saturating_mul(ran as u128) / took.as_nanos().max(1);
    let fitting = usize::try_from(fitting).unwrap_or(usize::MAX);
    fitting.clamp(size / 2, size.saturating_mul(2)).min(most).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(size: usize, ran: usize, ms: u64) -> usize {
        next(size, ran, Duration::from_millis(ms), Duration::ZERO, 1000)
    }

    #[test]
    fn the_runs_of_a_turn_take_as_long_as_its_flush() {
        let flush = |ms| next(64, 64, Duration::from_millis(100), Duration::from_millis(ms), 1000);
        assert_eq!(flush(0), 32);
        assert_eq!(flush(20), 32);
        assert_eq!(flush(100), 64);
        assert_eq!(flush(150), 96);
        let mut size = 1;
        for _ in 0..20 {
            size = next(size, size, Duration::from_micros(10 * size as u64), Duration::from_millis(50), 5000);
        }
        assert_eq!(size, 5000);
    }

    #[test]
    fn quick_runs_make_larger_turns() {
        assert_eq!(after(64, 64, 2), 128);
        assert_eq!(after(64, 64, 16), 80);
        assert_eq!(after(800, 800, 2), 1000);
    }

    #[test]
    fn slow_runs_make_smaller_turns_down_to_one() {
        assert_eq!(after(64, 64, 40), 32);
        assert_eq!(after(64, 64, 30), 42);
        assert_eq!(after(2, 2, 60_000), 1);
        assert_eq!(after(1, 1, 60_000), 1);
    }

    #[test]
    fn one_check_says_little() {
        assert_eq!(after(64, 1, 5_000), 32);
        assert_eq!(after(64, 1, 0), 128);
        assert_eq!(after(64, 0, 1), 32);
    }

    #[test]
    fn never_more_than_asked_for() {
        assert_eq!(next(64, 64, Duration::from_millis(1), Duration::ZERO, 10), 10);
        assert_eq!(next(1, 1, Duration::ZERO, Duration::ZERO, 1), 1);
    }
}
