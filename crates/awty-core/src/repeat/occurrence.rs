//! What comes next: the decisions about the one check that a repetition has pending.
//!
//! Invariant: a repetition goes on from slot to slot of its plan, and never to one that is used up, also where the clock was set
//! back. It ends only when no moment of its plan is left.
//!
//! Does not: insert, replace or hold anything. A `next` is the slot of the check that the same transaction inserts; where it is
//! `None`, that transaction removes the repetition.

use super::Repetition;
use super::plan::{earlier, just_before};
use super::zone::Zone;
use crate::policy::Failed;
use crate::slot::DAY_SECONDS;
use crate::{Answer, Check, Limits, Outcome, Time, policy};
use chrono::TimeDelta;

/// The widest slot.
const WIDEST: TimeDelta = TimeDelta::seconds(DAY_SECONDS as i64);

/// The pending check of a repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// Its first slot (`first_check_at`): a slot of the plan, or that of a check that a client has put in its place.
    pub first: Time,
    /// What the guards look at.
    pub check: Check,
    /// Which slots of the plan are used up, where `first` does not say it: after [`Occurrence::now`],
    /// [`Occurrence::replaced_at`], [`Occurrence::followed_at`] and [`super::Change::Stays`].
    pub passed: Option<Passed>,
}

/// Which slots of the plan are used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// Those before this slot: a client has put a check in the place of its occurrence, which had not run.
    Before(Time),
    /// Those of moments that, with their delay, come by this time.
    Through(Time),
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

impl Occurrence {
    /// An occurrence that nothing has happened to yet.
    pub fn new(slot: Time) -> Self {
        Self { first: slot, check: Check { slot, check_count: 0, attempt: 0 }, passed: None }
    }

    /// Whether it has run.
    pub(super) fn has_begun(&self) -> bool {
        self.check.check_count > 0 || self.check.attempt > 0
    }

    /// Which slots of the plan are used up even if this check never runs, or never again.
    pub(super) fn used(&self) -> Passed {
        let own = if self.has_begun() { Passed::Through(self.first) } else { Passed::Before(self.first) };
        self.passed.unwrap_or(own)
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

    /// `schedule` inside of its own run: it is done, and the plan goes on after the new check's slot.
    pub fn followed_at(self, slot: Time) -> Self {
        Self { passed: Some(self.passed.unwrap_or(Passed::Through(self.first))), ..Self::new(slot) }
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
        self.going_on(occurrence, earlier(now, self.catch_up))
    }

    fn going_on(&self, occurrence: &Occurrence, now: Time) -> Option<Time> {
        let used = self.used_when_over(occurrence).max(self.width.floor(now));
        self.moment_delayed_beyond(used).map(|moment| self.slot(moment))
    }

    /// Up to when moments, with their delay, are used up when this occurrence is over.
    pub(super) fn used_when_over(&self, occurrence: &Occurrence) -> Time {
        match occurrence.passed {
            // Its moment was rounded up to this slot, be slots wider or narrower by now.
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
                // The last moment that can have been rounded up to this slot, and not even that one.
                self.plan.last(since, beyond).map_or(slot, |moment| just_before(self.delayed(moment)))
            }
        }
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

    /// What becomes of an occurrence whose run failed. A retry that would not come before the next occurrence does not come. Where the
    /// failure is final and says when to try again, the next occurrence does not come before.
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

    /// No moment up to this has a slot after `t`, be slots as wide as they may.
    pub(super) fn furthest_back(&self, t: Time) -> Time {
        earlier(earlier(t, self.delay), WIDEST)
    }
}

#[cfg(test)]
mod tests;
