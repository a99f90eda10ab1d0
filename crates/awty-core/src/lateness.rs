//! Computes how late a run starts after the slot of its check. A run is never early, so the result is not negative.

use crate::Time;
use chrono::TimeDelta;

/// Returns the time from a check's `slot` to the `start` of its run. If the clock was set back and `start` is earlier,
/// the result is zero.
pub fn lateness(start: Time, slot: Time) -> TimeDelta {
    start.signed_duration_since(slot).max(TimeDelta::zero())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::clock;

    #[test]
    fn lateness_counts_from_the_slot_and_is_never_negative() {
        let slot = clock("10:00:00");
        assert_eq!(lateness(clock("10:00:00.004"), slot), TimeDelta::milliseconds(4));
        assert_eq!(lateness(slot, slot), TimeDelta::zero());
        assert_eq!(lateness(clock("09:00:00"), slot), TimeDelta::zero());
    }
}
