//! What comes next: the decisions about the one check that a repetition has pending.
//!
//! Invariant: a repetition goes on from slot to slot of its plan, and never to one that is used up, also where the clock was set
//! back. It ends only when no moment of its plan is left.
//!
//! Does not: insert, replace or hold anything. A `next` is the slot of the check that the same transaction inserts; where it is
//! `None`, that transaction removes the repetition.

use super::Repetition;
use super::plan::just_before;
use super::zone::Zone;
use crate::{Answer, Check, Limits, Outcome, Time, policy};
use chrono::TimeDelta;

/// The pending check of a repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// Its first slot (`first_check_at`): a slot of the plan, or that of a check that a client has put in its place.
    pub first: Time,
    /// What the guards look at.
    pub check: Check,
    /// Up to when slots of the plan are used up, where that is not said by `first`: after [`Occurrence::now`],
    /// [`Occurrence::replaced_at`] and [`Change::Stays`].
    pub passed: Option<Time>,
}

/// What to do with an occurrence that a worker has claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// Its slot has not come.
    NotYet,
    /// Run it.
    Run,
    /// The next occurrence, at this slot, takes its place, and the history does not show it.
    Replace(Time),
    /// It ends without a run.
    End {
        /// Why.
        outcome: Outcome,
        /// The slot of the next occurrence.
        next: Option<Time>,
    },
}

/// What becomes of an occurrence after a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// It is pending at this slot, which comes before the next occurrence.
    Again(Time),
    /// It ends.
    End {
        /// Why.
        outcome: Outcome,
        /// The slot of the next occurrence.
        next: Option<Time>,
    },
}

/// What becomes of the pending occurrence when its plan is replaced by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is due and stays; slots of the new plan up to `passed` are its own.
    Stays {
        /// See [`Occurrence::passed`].
        passed: Option<Time>,
    },
    /// Another one takes its place, at this slot; `None`: the repetition is over.
    Moves(Option<Time>),
}

impl Occurrence {
    /// An occurrence that nothing has happened to yet.
    pub fn new(slot: Time) -> Self {
        Self { first: slot, check: Check { slot, check_count: 0, attempt: 0 }, passed: None }
    }

    /// Whether it has run.
    fn has_begun(&self) -> bool {
        self.check.check_count > 0 || self.check.attempt > 0
    }

    /// Up to when slots of the plan are used up even if this check never runs.
    fn used(&self) -> Time {
        let before = self.passed.unwrap_or(just_before(self.first));
        if self.has_begun() { before.max(self.first) } else { before }
    }

    /// `check_now`: it is due at this moment. If its slot is still ahead, it becomes an occurrence of its own, and that slot is
    /// not used up.
    pub fn now(self, now: Time) -> Self {
        let check = Check { slot: now, ..self.check };
        if self.first <= now {
            return Self { check, ..self };
        }
        Self { first: now, check, passed: Some(self.used()) }
    }

    /// `schedule`: a new check takes its place, and the plan goes on after that check's slot.
    pub fn replaced_at(self, slot: Time) -> Self {
        Self { passed: Some(self.used()), ..Self::new(slot) }
    }
}

impl<Z: Zone> Repetition<Z> {
    /// The slot of the first occurrence of a new repetition, and of one that has lost its check.
    pub fn begin(&self, now: Time) -> Option<Time> {
        self.slot_after(now)
    }

    /// The slot of the next occurrence when this one ends: the first one of the plan after both its own slot and now, or as far
    /// back from now as `catch_up` says. A slot in the past is due at once.
    pub fn next(&self, occurrence: &Occurrence, now: Time) -> Option<Time> {
        self.going_on(occurrence, now.checked_sub_signed(self.catch_up).unwrap_or(Time::MIN_UTC))
    }

    fn going_on(&self, occurrence: &Occurrence, now: Time) -> Option<Time> {
        let used = occurrence.passed.map_or(occurrence.first, |passed| passed.max(occurrence.first));
        self.slot_after(used.max(now))
    }

    /// What to do with a claimed occurrence. `able_since` is that of [`policy::before`]. Where `on_missed` is not `run`, it wins
    /// over `catch_up`.
    pub fn before(&self, occurrence: &Occurrence, limits: &Limits, able_since: Time, now: Time) -> Before {
        match policy::before(&occurrence.check, limits, able_since, now) {
            policy::Before::NotYet => Before::NotYet,
            policy::Before::Run => Before::Run,
            policy::Before::Move(_) => match self.going_on(occurrence, now) {
                Some(slot) => Before::Replace(slot),
                // It has to end somehow, and nothing can take its place.
                None => Before::End { outcome: Outcome::Missed, next: None },
            },
            policy::Before::End(outcome @ Outcome::Missed) => {
                Before::End { outcome, next: self.going_on(occurrence, now) }
            }
            policy::Before::End(outcome) => Before::End { outcome, next: self.next(occurrence, now) },
        }
    }

    /// What becomes of an occurrence whose job gave an answer. A check that would not come before the next occurrence is
    /// that occurrence, so this one is done.
    pub fn after(&self, occurrence: &Occurrence, limits: &Limits, answer: Answer, now: Time) -> After {
        let next = self.next(occurrence, now);
        if let (Answer::Again(t), Some(next)) = (answer, next)
            && t > occurrence.check.slot
            && limits.width.due(t, now) >= next
        {
            return After::End { outcome: Outcome::Done, next: Some(next) };
        }
        match policy::after(&occurrence.check, limits, answer, now) {
            policy::After::Again(slot) => After::Again(slot),
            policy::After::End(outcome) => After::End { outcome, next },
        }
    }

    /// What becomes of an occurrence whose run failed. A retry that would not come before the next occurrence does not come.
    pub fn failed(&self, occurrence: &Occurrence, limits: &Limits, timed_out: bool, now: Time) -> After {
        let next = self.next(occurrence, now);
        match policy::failed(&occurrence.check, limits, timed_out, now) {
            policy::After::Again(slot) if next.is_none_or(|next| slot < next) => After::Again(slot),
            policy::After::Again(_) if timed_out => After::End { outcome: Outcome::TimedOut, next },
            policy::After::Again(_) => After::End { outcome: Outcome::Failed, next },
            policy::After::End(outcome) => After::End { outcome, next },
        }
    }

    /// What becomes of the pending occurrence when `new` takes the place of this repetition. A moment whose occurrence is still
    /// ahead is not lost where `new` has it too, and none that is used up comes again, however the jitter has changed.
    pub fn replaced_by(&self, new: &Self, occurrence: &Occurrence, now: Time) -> Change {
        if occurrence.first <= now || occurrence.has_begun() {
            let used = occurrence.passed.map_or(occurrence.first, |passed| passed.max(occurrence.first));
            let own = self.last_moment_used(new, used, now).and_then(|moment| new.last_slot_of(moment, now));
            return Change::Stays { passed: own.filter(|&slot| slot > occurrence.first) };
        }
        let used = self.last_moment_used(new, occurrence.used(), now);
        let first = match (new.moment_of_slot_after(now), used) {
            (Some(first), Some(used)) if first <= used => new.plan.next(used),
            (first, _) => first,
        };
        let pending = self.moment_of_slot_after(occurrence.used().max(now));
        match pending.filter(|&pending| new.plan.contains(pending)) {
            // It was still ahead only because of its delay, and by the new delay it has come.
            Some(pending) if first.is_none_or(|first| pending < first) => {
                Change::Moves(Some(new.width.due(new.slot(pending), now)))
            }
            _ => Change::Moves(first.map(|first| new.slot(first))),
        }
    }

    /// The last moment whose slot is at or before `used`, as far as `new` could bring it again after `now`.
    fn last_moment_used(&self, new: &Self, used: Time, now: Time) -> Option<Time> {
        let open = self.moment_of_slot_after(used).map_or(Time::MAX_UTC, just_before);
        self.plan.last(new.furthest_back(now), open)
    }

    /// The slot of the last moment up to `moment`, if it may be after `now`.
    fn last_slot_of(&self, moment: Time, now: Time) -> Option<Time> {
        self.plan.last(self.furthest_back(now), moment).map(|moment| self.slot(moment))
    }

    /// No moment up to this has a slot after `now`.
    fn furthest_back(&self, now: Time) -> Time {
        let longest = self.delay.checked_add(&self.width.delta());
        longest.and_then(|longest| now.checked_sub_signed(longest)).unwrap_or(Time::MIN_UTC)
    }

    /// The slot of an occurrence that was computed with other zone data: where the plan has no slot there any more, the nearest
    /// one takes its place. What is due, has begun, or is no slot of the plan stays.
    pub fn with_new_zone_data(&self, occurrence: &Occurrence, now: Time) -> Time {
        let slot = occurrence.first;
        if slot <= now || occurrence.has_begun() || occurrence.passed.is_some() {
            return slot;
        }
        let later = self.moment_of_slot_after(just_before(slot));
        let before = later.map_or(Time::MAX_UTC, just_before);
        // Clocks are never changed by more than a day, and a bit.
        let since = slot.checked_sub_signed(self.delay + TimeDelta::days(3)).unwrap_or(Time::MIN_UTC);
        let earlier = self.plan.last(since, before).map(|moment| self.slot(moment));
        match (earlier, later.map(|moment| self.slot(moment))) {
            (Some(earlier), Some(later)) if slot - earlier < later - slot => self.width.due(earlier, now),
            (_, Some(later)) => later,
            (Some(earlier), None) => self.width.due(earlier, now),
            (None, None) => slot,
        }
    }
}

#[cfg(test)]
mod tests;
