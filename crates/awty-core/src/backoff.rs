//! Computes how long awty waits after a failure before it tries again.

use chrono::TimeDelta;
use std::time::Duration;

pub const MAX_RETRY_WAIT: TimeDelta = TimeDelta::days(366);
/// Maximum jitter of an external worker's retry, in thousandths of the wait.
const SPREAD: u64 = 200;

pub fn failed_run(retry_after: TimeDelta, failures: u32) -> TimeDelta {
    let factor = 2_i32.checked_pow(failures.saturating_sub(1));
    factor.and_then(|factor| retry_after.checked_mul(factor)).map_or(MAX_RETRY_WAIT, |wait| wait.min(MAX_RETRY_WAIT))
}

/// Maps the random number `chance` to a jitter, in thousandths of the wait.
pub fn spread(chance: u64) -> i32 {
    let mixed = (chance ^ (chance >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    (mixed % (2 * SPREAD + 1)) as i32 - SPREAD as i32
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
}

/// Delay before the next background worker of a role starts, if the last worker ran no check or ended during a run.
pub const ROLE: Backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(32));
/// Delay before awty again tries to start a background worker, after the server had no room for another process.
pub const NO_PROCESS: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30));
pub const LOCKED_CHECK: Backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(2));

impl Backoff {
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest }
    }

    pub fn after(&self, failures: u32) -> Duration {
        let doubled = 2_u32.checked_pow(failures).and_then(|times| self.first.checked_mul(times));
        doubled.map_or(self.longest, |wait| wait.min(self.longest))
    }

    pub const fn longest(&self) -> Duration {
        self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_doubles_up_to_the_longest() {
        let waits = [0, 1, 2, 3, 4, 100, u32::MAX].map(|failures| LOCKED_CHECK.after(failures).as_millis());
        assert_eq!(waits, [250, 500, 1000, 2000, 2000, 2000, 2000]);
    }

    #[test]
    fn no_wait_is_shorter_than_the_one_before() {
        for backoff in [ROLE, NO_PROCESS, LOCKED_CHECK] {
            let waits: Vec<_> = (0..70).map(|failures| backoff.after(failures)).collect();
            assert!(waits.is_sorted());
            assert_eq!(waits.last(), Some(&backoff.longest()));
        }
    }

    #[test]
    fn the_wait_doubles_with_each_failure() {
        let waits: Vec<_> = (1..=4).map(|n| failed_run(TimeDelta::minutes(1), n).num_minutes()).collect();
        assert_eq!(waits, [1, 2, 4, 8]);
        assert_eq!(failed_run(TimeDelta::minutes(1), 0), TimeDelta::minutes(1));
    }

    #[test]
    fn the_wait_stops_growing_at_its_cap() {
        assert_eq!(failed_run(TimeDelta::minutes(1), 31), MAX_RETRY_WAIT);
        assert_eq!(failed_run(TimeDelta::days(366), 2), MAX_RETRY_WAIT);
        assert_eq!(failed_run(TimeDelta::milliseconds(1), 1000), MAX_RETRY_WAIT);
        assert_eq!(failed_run(TimeDelta::milliseconds(1), u32::MAX), MAX_RETRY_WAIT);
    }
}
