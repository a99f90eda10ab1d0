//! Runs suspects (checks that may have crashed the server) one at a time, so that a further crash reveals its cause.
//!
//! Invariant: a suspect starts only after the previous suspect has ended, or [`ALONE`] after the previous suspect
//! started. After [`TURN`], a role gives its turn to a waiting role.

use crate::Mono;
use std::time::Duration;

/// A suspect runs alone for this long, because most crashes come early in a run.
pub const ALONE: Duration = Duration::from_secs(1);
pub const TURN: Duration = Duration::from_secs(1);
/// A refused role counts as waiting for this long after its last request.
pub const ASKED: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quarantine {
    inside: Option<Inside>,
    /// Role that has its turn now, and the time when the turn started.
    turn: Option<(u64, Mono)>,
    asked: Option<(u64, Mono)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Inside {
    place: usize,
    since: Mono,
}

impl Quarantine {
    pub const EMPTY: Self = Self { inside: None, turn: None, asked: None };

    /// Returns whether the worker at `place` may now run a check that may have crashed the server. A refused worker
    /// must ask again.
    pub fn enter(&mut self, place: usize, role: u64, now: Mono) -> bool {
        let is_free = self.inside.is_none_or(|inside| inside.place == place || !within(ALONE, inside.since, now));
        if !is_free || self.has_to_give_way(role, now) {
            // Does not store the role that has its turn now, because `asked` holds one role, and another role may be
            // waiting.
            if self.turn.is_none_or(|(owner, _)| owner != role) {
                self.asked = Some((role, now));
            }
            return false;
        }
        self.inside = Some(Inside { place, since: now });
        if self.turn.is_none_or(|(owner, _)| owner != role) {
            self.turn = Some((role, now));
        }
        self.asked = self.asked.filter(|(other, _)| *other != role);
        true
    }

    fn has_to_give_way(&self, role: u64, now: Mono) -> bool {
        let has_had_its_turn = self.turn.is_some_and(|(owner, since)| owner == role && !within(TURN, since, now));
        let another_waits = self.asked.is_some_and(|(other, at)| other != role && within(ASKED, at, now));
        has_had_its_turn && another_waits
    }

    pub fn leave(&mut self, place: usize) -> bool {
        let was_inside = self.inside.is_some_and(|inside| inside.place == place);
        if was_inside {
            self.inside = None;
        }
        was_inside
    }
}

fn within(length: Duration, since: Mono, now: Mono) -> bool {
    now < since.plus(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{START, after_ms};

    const ALICE: u64 = 1;
    const BOB: u64 = 2;

    #[test]
    fn suspects_enter_one_at_a_time() {
        let mut quarantine = Quarantine::EMPTY;
        assert!(quarantine.enter(0, ALICE, START));
        assert!(!quarantine.enter(1, ALICE, after_ms(999)));
        assert!(!quarantine.enter(2, BOB, after_ms(999)));
        quarantine.leave(0);
        assert!(quarantine.enter(1, ALICE, after_ms(999)));
    }

    #[test]
    fn a_long_run_keeps_others_out_for_its_beginning_only() {
        let mut quarantine = Quarantine::EMPTY;
        assert!(quarantine.enter(0, ALICE, START));
        assert!(quarantine.enter(1, BOB, after_ms(1000)));
        quarantine.leave(0);
        assert!(!quarantine.enter(2, ALICE, after_ms(1100)), "who leaves late does not take another one's place along");
    }

    #[test]
    fn a_role_with_many_suspects_gives_way_to_one_that_has_asked() {
        let mut quarantine = Quarantine::EMPTY;
        assert!(quarantine.enter(0, ALICE, START));
        assert!(!quarantine.enter(1, BOB, after_ms(900)));
        quarantine.leave(0);
        assert!(!quarantine.enter(0, ALICE, after_ms(1100)), "alice has had her turn, and bob has asked");
        assert!(quarantine.enter(1, BOB, after_ms(1150)));
        quarantine.leave(1);
        assert!(quarantine.enter(0, ALICE, after_ms(2200)), "now it is alice who has asked, and bob is through");
    }

    #[test]
    fn nobody_gives_way_to_one_who_asks_no_more() {
        let mut quarantine = Quarantine::EMPTY;
        assert!(quarantine.enter(0, ALICE, START));
        assert!(!quarantine.enter(1, BOB, after_ms(500)));
        quarantine.leave(0);
        assert!(quarantine.enter(0, ALICE, after_ms(1600)));
    }
}
