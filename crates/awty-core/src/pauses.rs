//! Remembers which checks a worker could not run, and when it tries them again.
//!
//! Invariant: a check that a client has locked is tried again within the longest wait of [`backoff::LOCKED_CHECK`].

use crate::inspections::AUDIT;
use crate::{Mono, backoff};
use std::collections::HashMap;
use std::time::Duration;

#[derive(Clone, Copy, Debug)]
struct Pause {
    until: Mono,
    locked: u32,
    slot: i64,
    /// True if the pause has ended. The next search for due checks then removes the pause.
    over: bool,
}

#[derive(Debug, Default)]
pub struct Pauses {
    by_id: HashMap<i64, Pause>,
}

impl Pauses {
    pub fn locked(&mut self, id: i64, slot: i64, now: Mono) {
        let locked = self.of(id, slot).map_or(0, |pause| pause.locked);
        self.pause(id, slot, now.plus(backoff::LOCKED_CHECK.after(locked)), locked.saturating_add(1));
    }

    /// Pauses a suspect (a check that may have crashed the server) briefly, because another suspect is running.
    pub fn quarantine_is_taken(&mut self, id: i64, slot: i64, now: Mono) {
        self.pause(id, slot, now.plus(backoff::LOCKED_CHECK.after(0)), 0);
    }

    /// Pauses the check, because awty could not read the check or store its result. The first pause is short, because
    /// the cause may have been a lock or a cancellation. Later pauses last for [`AUDIT`].
    pub fn failed(&mut self, id: i64, slot: i64, now: Mono) {
        let wait = if self.of(id, slot).is_some() { AUDIT } else { backoff::LOCKED_CHECK.longest() };
        self.pause(id, slot, now.plus(wait), 0);
    }

    fn pause(&mut self, id: i64, slot: i64, until: Mono, locked: u32) {
        self.by_id.insert(id, Pause { until, locked, slot, over: false });
    }

    fn of(&self, id: i64, slot: i64) -> Option<&Pause> {
        self.by_id.get(&id).filter(|pause| pause.slot == slot)
    }

    pub fn is_resting(&self, id: i64, slot: i64, now: Mono) -> bool {
        self.of(id, slot).is_some_and(|pause| pause.until > now)
    }

    pub fn begin_pass(&mut self) {
        self.by_id.retain(|_, pause| !pause.over);
    }

    /// Returns the time until the next pause of a check ends. If pauses have just ended, also returns the earliest due
    /// time of their checks.
    pub fn next(&mut self, now: Mono) -> Option<(Duration, Option<i64>)> {
        let wait = self.by_id.values().filter(|pause| !pause.over).map(|pause| pause.until.since(now)).min()?;
        let mut back_to: Option<i64> = None;
        for pause in self.by_id.values_mut().filter(|pause| !pause.over && pause.until <= now) {
            pause.over = true;
            back_to = Some(back_to.map_or(pause.slot, |slot| slot.min(pause.slot)));
        }
        Some((wait, back_to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{START, after_ms};

    #[test]
    fn a_locked_check_is_tried_again_more_and_more_slowly() {
        let mut pauses = Pauses::default();
        let mut now = START;
        for wait in [250, 500, 1000, 2000, 2000, 2000] {
            pauses.locked(1, 7, now);
            assert!(pauses.is_resting(1, 7, now));
            assert_eq!(pauses.next(now), Some((Duration::from_millis(wait), None)));
            now = now.plus(Duration::from_millis(wait));
            assert!(!pauses.is_resting(1, 7, now));
            assert_eq!(pauses.next(now), Some((Duration::ZERO, Some(7))));
            assert_eq!(pauses.next(now), None, "it is looked for once");
        }
    }

    #[test]
    fn the_first_slot_of_all_whose_time_has_come_is_gone_back_to() {
        let mut pauses = Pauses::default();
        pauses.locked(1, 9, START);
        pauses.locked(2, 8, START);
        pauses.failed(3, 1, START);
        pauses.failed(3, 1, START);
        assert_eq!(pauses.next(after_ms(250)), Some((Duration::ZERO, Some(8))));
        assert_eq!(pauses.next(after_ms(250)), Some((AUDIT - Duration::from_millis(250), None)));
    }

    #[test]
    fn a_check_with_a_new_slot_does_not_rest() {
        let mut pauses = Pauses::default();
        pauses.failed(1, 7, START);
        pauses.locked(2, 7, START);
        assert!(pauses.is_resting(1, 7, START) && pauses.is_resting(2, 7, START));
        assert!(!pauses.is_resting(1, 8, START) && !pauses.is_resting(2, 8, START));
        pauses.failed(1, 8, START);
        assert_eq!(pauses.next(START).map(|(wait, _)| wait), Some(Duration::from_millis(250)));
        assert!(!pauses.is_resting(1, 8, after_ms(2_000)), "the first failure at this slot");
    }

    #[test]
    fn one_that_was_run_is_forgotten_with_the_next_pass() {
        let mut pauses = Pauses::default();
        pauses.locked(1, 9, START);
        pauses.next(after_ms(250));
        pauses.begin_pass();
        pauses.locked(1, 9, after_ms(300));
        assert_eq!(pauses.next(after_ms(300)).map(|(wait, _)| wait), Some(Duration::from_millis(250)));
    }
}
