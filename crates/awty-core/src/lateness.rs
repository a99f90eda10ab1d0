use crate::Time;
use chrono::TimeDelta;

/// Returns zero if the clock was set back to before `slot`.
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
