//! The wait between failed runs of a check.
//!
//! Invariant: a wait is at least as long as the wait before, and at most [`MAX_BACKOFF`].
//! Does not: count failures or round to slots; [`crate::policy`] does.

use chrono::TimeDelta;

/// The longest wait.
pub const MAX_BACKOFF: TimeDelta = TimeDelta::days(366);

/// Returns the wait after `failures` in a row: `retry_after`, doubled after each further failure. 0 counts as 1.
///
/// ```
/// # use awty_core::retry::backoff;
/// # use chrono::TimeDelta;
/// assert_eq!(backoff(TimeDelta::minutes(1), 3), TimeDelta::minutes(4));
/// ```
pub fn backoff(retry_after: TimeDelta, failures: u32) -> TimeDelta {
    let factor = 2_i32.checked_pow(failures.saturating_sub(1));
    factor.and_then(|factor| retry_after.checked_mul(factor)).map_or(MAX_BACKOFF, |wait| wait.min(MAX_BACKOFF))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_with_each_failure() {
        let waits: Vec<_> = (1..=4).map(|n| backoff(TimeDelta::minutes(1), n).num_minutes()).collect();
        assert_eq!(waits, [1, 2, 4, 8]);
        assert_eq!(backoff(TimeDelta::minutes(1), 0), TimeDelta::minutes(1));
    }

    #[test]
    fn the_wait_stops_growing_at_its_cap() {
        assert_eq!(backoff(TimeDelta::minutes(1), 31), MAX_BACKOFF);
        assert_eq!(backoff(TimeDelta::days(366), 2), MAX_BACKOFF);
        assert_eq!(backoff(TimeDelta::milliseconds(1), 1000), MAX_BACKOFF);
        assert_eq!(backoff(TimeDelta::milliseconds(1), u32::MAX), MAX_BACKOFF);
    }
}
