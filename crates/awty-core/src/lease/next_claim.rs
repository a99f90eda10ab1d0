//! Decides when an external worker should ask for checks again.

use crate::{Time, Width, later};
use chrono::TimeDelta;

/// An idle worker waits at most this long, because no notification tells the worker of new due checks.
pub const LONGEST_WAIT: TimeDelta = TimeDelta::seconds(5);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ahead {
    pub is_due: bool,
    pub slot: Option<Time>,
    /// Time at which the next lease of another worker expires.
    pub expiry: Option<Time>,
}

pub fn wait(ahead: &Ahead, width: Width, now: Time) -> TimeDelta {
    if ahead.is_due {
        return TimeDelta::zero();
    }
    let most = later(now, LONGEST_WAIT.min(width.delta()));
    let first = [ahead.slot, ahead.expiry].into_iter().flatten().fold(most, Time::min);
    (first - now).max(TimeDelta::zero())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{clock, limits};

    #[test]
    fn an_idle_worker_waits_for_the_next_slot_and_not_for_long() {
        let now = clock("10:00:00");
        let wait = |ahead| wait(&ahead, limits().width, now);
        assert_eq!(wait(Ahead { is_due: true, ..Ahead::default() }), TimeDelta::zero());
        assert_eq!(wait(Ahead::default()), LONGEST_WAIT);
        assert_eq!(wait(Ahead { slot: Some(clock("10:00:02")), ..Ahead::default() }), TimeDelta::seconds(2));
        let both = Ahead { slot: Some(clock("10:00:03")), expiry: Some(clock("10:00:01")), is_due: false };
        assert_eq!(wait(both), TimeDelta::seconds(1));
        assert_eq!(super::wait(&Ahead::default(), Width::new(1).unwrap(), now), TimeDelta::seconds(1));
    }
}
