//! Waits that double with each failure in a row.
//!
//! Invariant: a wait is never shorter than the wait before, and never longer than the longest.
//! Does not: count failures.

use std::time::Duration;

/// A wait that doubles with each failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
}

/// For a role whose worker achieved nothing, or whose run ended its process.
pub const ROLE: Backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(32));
/// For a server without room for another process.
pub const NO_PROCESS: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30));
/// For a due check whose row a client has locked.
pub const LOCKED_CHECK: Backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(2));

impl Backoff {
    /// Doubles from `first` up to `longest`.
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest }
    }

    /// Returns the wait after a failure that followed `failures` others.
    pub fn after(&self, failures: u32) -> Duration {
        let doubled = 2_u32.checked_pow(failures).and_then(|times| self.first.checked_mul(times));
        doubled.map_or(self.longest, |wait| wait.min(self.longest))
    }

    /// The longest wait.
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
}
