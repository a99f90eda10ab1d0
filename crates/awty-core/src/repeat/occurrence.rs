//! Decides what happens to the pending check of a repetition, and which slot comes next.
//!
//! Invariant: a repetition never moves to a slot that is used up, even if the clock is set back. It ends only when its
//! plan has no moment left. The transaction that ends a check also inserts the next check, or removes the repetition.

use super::Repetition;
use super::plan::{earlier, just_before};
use super::zone::Zone;
use crate::policy::Failed;
use crate::slot::DAY_SECONDS;
use crate::{Answer, Check, Limits, Outcome, Time, policy};
use chrono::TimeDelta;

const WIDEST: TimeDelta = TimeDelta::seconds(DAY_SECONDS as i64);

/// The pending check of a repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// The column `first_check_at`: a slot of the plan, unless a client scheduled the check.
    pub first: Time,
    /// The check's state.
    pub check: Check,
    /// The used slots of the plan. `None` means that they follow from `first`.
    pub passed: Option<Passed>,
}

/// Which slots of the plan are used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// All slots before this one are used up, because a client replaced the occurrence of this slot before it ran.
    Before(Time),
    /// All moments at or before this time, delay included, are used up.
    Through(Time),
}

/// What a worker does with a claimed occurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// The slot has not come yet.
    NotYet,
    /// The worker runs the occurrence.
    Run,
    /// The worker replaces the occurrence by the next one at this slot, without an entry in the history.
    Replace(Time),
    /// The worker ends the occurrence without a run.
    End {
        /// Why the occurrence ends.
        outcome: Outcome,
        /// Slot of the next occurrence. `None` ends the repetition.
        next: Option<Time>,
    },
}

/// What a run does to its occurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// The occurrence stays pending, with its next check at this slot. The slot is before the next occurrence.
    Again(Time),
    /// The occurrence ends.
    End {
        /// Why the occurrence ends.
        outcome: Outcome,
        /// Slot of the next occurrence. `None` ends the repetition.
        next: Option<Time>,
    },
}

impl Occurrence {
    /// Returns an occurrence that has not run.
    pub fn new(slot: Time) -> Self {
        Self { first: slot, check: Check { slot, check_count: 0, attempt: 0 }, passed: None }
    }

    pub(super) fn has_begun(&self) -> bool {
        self.check.check_count > 0 || self.check.attempt > 0
    }

    /// Returns the slots that are used up even if this check does not run again.
    pub(super) fn used(&self) -> Passed {
        let own = if self.has_begun() { Passed::Through(self.first) } else { Passed::Before(self.first) };
        self.passed.unwrap_or(own)
    }

    /// Returns the occurrence after a call of `check_now`. If the occurrence's slot is still ahead, the check is extra,
    /// and the slot is not used up.
    pub fn now(self, now: Time) -> Self {
        let check = Check { slot: now, ..self.check };
        if self.first <= now {
            return Self { check, ..self };
        }
        Self { first: now, check, passed: Some(self.used()) }
    }

    /// Returns the occurrence that replaces this one if a client calls `schedule`.
    pub fn replaced_at(self, slot: Time) -> Self {
        Self { passed: Some(self.used()), ..Self::new(slot) }
    }

    /// Returns the occurrence that follows this one if a client calls `schedule` during the run.
    pub fn followed_at(self, slot: Time) -> Self {
        Self { passed: Some(self.passed.unwrap_or(Passed::Through(self.first))), ..Self::new(slot) }
    }
}

impl<Z: Zone> Repetition<Z> {
    /// Returns the first slot of a new repetition, or of one whose check was lost.
    pub fn begin(&self, now: Time) -> Option<Time> {
        self.slot_after(now)
    }

    /// Returns the slot of the next occurrence, which is after this occurrence and after `now` minus `catch_up`.
    pub fn next(&self, occurrence: &Occurrence, now: Time) -> Option<Time> {
        self.going_on(occurrence, earlier(now, self.catch_up))
    }

    fn going_on(&self, occurrence: &Occurrence, now: Time) -> Option<Time> {
        let used = self.used_when_over(occurrence).max(self.width.floor(now));
        self.moment_delayed_beyond(used).map(|moment| self.slot(moment))
    }

    /// Returns the time up to which moments, delay included, are used up when this occurrence is over.
    pub(super) fn used_when_over(&self, occurrence: &Occurrence) -> Time {
        match occurrence.passed {
            // The moment was once rounded up to `first`, so the present slot width does not matter.
            None => occurrence.first,
            Some(passed) => self.used_by(passed).max(self.width.floor(occurrence.first)),
        }
    }

    pub(super) fn used_by(&self, passed: Passed) -> Time {
        match passed {
            Passed::Through(t) => t,
            Passed::Before(slot) => {
                let beyond = self.moment_delayed_beyond(slot).map_or(Time::MAX_UTC, just_before);
                let since = self.furthest_back(slot);
                // Of the moments that come up to this slot, delay included, only the last is not used up.
                self.plan.last(since, beyond).map_or(slot, |moment| just_before(self.delayed(moment)))
            }
        }
    }

    /// Decides what a worker does with a claimed occurrence. `on_missed` takes precedence over `catch_up`, unless
    /// `on_missed` is `run`.
    pub fn before(&self, occurrence: &Occurrence, limits: &Limits, able_since: Time, now: Time) -> Before {
        match policy::before(&occurrence.check, limits, able_since, now) {
            policy::Before::NotYet => Before::NotYet,
            policy::Before::Run => Before::Run,
            policy::Before::Move(_) => match self.going_on(occurrence, now) {
                Some(slot) => Before::Replace(slot),
                None => Before::End { outcome: Outcome::Missed, next: None },
            },
            policy::Before::End(outcome @ Outcome::Missed) => {
                Before::End { outcome, next: self.going_on(occurrence, now) }
            }
            policy::Before::End(outcome) => Before::End { outcome, next: self.next(occurrence, now) },
        }
    }

    /// Decides what an answer does to the occurrence. If the requested check would not come before the next occurrence,
    /// this occurrence is done.
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

    /// Decides what a failed run does to the occurrence. A retry must come before the next occurrence, and is dropped
    /// otherwise. A final failure can postpone the next occurrence to its `retry_at`.
    pub fn failed(&self, occurrence: &Occurrence, limits: &Limits, how: impl Into<Failed>, now: Time) -> After {
        let how = how.into();
        let since = earlier(now, self.catch_up);
        let next = match how.wanted(limits, now).filter(|_| how.is_final) {
            Some(t) => self.going_on(occurrence, since.max(just_before(t))),
            None => self.going_on(occurrence, since),
        };
        match policy::failed(&occurrence.check, limits, how, now) {
            policy::After::Again(slot) if next.is_none_or(|next| slot < next) => After::Again(slot),
            policy::After::Again(_) => After::End { outcome: how.outcome(), next },
            policy::After::End(outcome) => After::End { outcome, next },
        }
    }

    /// Returns a time so early that moments up to it have slots at or before `t`, whatever the slot width.
    pub(super) fn furthest_back(&self, t: Time) -> Time {
        earlier(earlier(t, self.jitter.at_most), WIDEST)
    }
}

#[cfg(test)]
mod tests;
