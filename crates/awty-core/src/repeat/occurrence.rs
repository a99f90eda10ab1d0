//! Decides what happens to a repetition's pending check (`Occurrence`), and when the next check is due.
//!
//! Invariant: a repetition never uses a planned time twice, even if the clock is set back. The repetition ends only
//! when no planned time is left.

use super::Repetition;
use super::local_time::Zone;
use super::plan::{earlier, just_before};
use crate::policy::Failed;
use crate::slot::DAY_SECONDS;
use crate::{Answer, Check, Limits, Outcome, Time, policy};
use chrono::TimeDelta;

const WIDEST: TimeDelta = TimeDelta::seconds(DAY_SECONDS as i64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// First due time of the check, set by the plan or by a client (column `first_check_at`).
    pub first: Time,
    pub check: Check,
    /// Planned times that need no further check. `None` means all planned times up to `first`.
    pub passed: Option<Passed>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// A client replaced the check of this due time before the check ran. Only earlier planned times need no further
    /// check.
    Before(Time),
    /// Planned times up to this time, including their jitter delay, need no further check.
    Through(Time),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    NotYet,
    Run,
    /// The next planned check, due at this time, replaces the missed check. The history gets no entry.
    Replace(Time),
    End {
        outcome: Outcome,
        /// `None` ends the repetition.
        next: Option<Time>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    Again(Time),
    End {
        outcome: Outcome,
        /// `None` ends the repetition.
        next: Option<Time>,
    },
}

impl Occurrence {
    pub fn new(slot: Time) -> Self {
        Self { first: slot, check: Check { slot, check_count: 0, attempt: 0 }, passed: None }
    }

    pub(super) fn has_begun(&self) -> bool {
        self.check.check_count > 0 || self.check.attempt > 0
    }

    pub(super) fn used(&self) -> Passed {
        let own = if self.has_begun() { Passed::Through(self.first) } else { Passed::Before(self.first) };
        self.passed.unwrap_or(own)
    }

    /// If `check_now` runs the check before its planned time, the planned time still gets a check.
    pub fn now(self, now: Time) -> Self {
        let check = Check { slot: now, ..self.check };
        if self.first <= now {
            return Self { check, ..self };
        }
        Self { first: now, check, passed: Some(self.used()) }
    }

    pub fn replaced_at(self, slot: Time) -> Self {
        Self { passed: Some(self.used()), ..Self::new(slot) }
    }

    /// Returns the next check if a client scheduled a check for `slot` while the present check was running.
    pub fn followed_at(self, slot: Time) -> Self {
        Self { passed: Some(self.passed.unwrap_or(Passed::Through(self.first))), ..Self::new(slot) }
    }
}

impl<Z: Zone> Repetition<Z> {
    pub fn begin(&self, now: Time) -> Option<Time> {
        self.slot_after(now)
    }

    /// Skips planned times that are older than `catch_up`.
    pub fn next(&self, occurrence: &Occurrence, now: Time) -> Option<Time> {
        self.going_on(occurrence, earlier(now, self.catch_up))
    }

    fn going_on(&self, occurrence: &Occurrence, now: Time) -> Option<Time> {
        let used = self.used_when_over(occurrence).max(self.width.floor(now));
        self.moment_delayed_beyond(used).map(|moment| self.slot(moment))
    }

    /// Returns a lower limit for the next check. The next check's planned time, including its jitter delay, must be
    /// later than the limit.
    pub(super) fn used_when_over(&self, occurrence: &Occurrence) -> Time {
        match occurrence.passed {
            // Needs no rounding, because `first` was rounded up to a slot when the check was scheduled.
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
                self.plan.last(since, beyond).map_or(slot, |moment| just_before(self.delayed(moment)))
            }
        }
    }

    /// `catch_up` affects a missed check only with `on_missed => 'run'`.
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

    /// If the job's function asks to run again at or after the next planned check, the current check ends as `done`.
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

    /// Decides what follows a failed run. awty retries the run only if the retry is due before the next planned check.
    pub fn failed(&self, occurrence: &Occurrence, limits: &Limits, how: impl Into<Failed>, now: Time) -> After {
        let how = how.into();
        let since = earlier(now, self.catch_up);
        // After a final failure, the worker's `retry_at` can postpone the next planned check.
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

    /// Returns `t` minus the longest jitter delay and the widest slot, so that a check planned at the returned time is
    /// always due by `t`.
    pub(super) fn furthest_back(&self, t: Time) -> Time {
        earlier(earlier(t, self.jitter.at_most), WIDEST)
    }
}

#[cfg(test)]
mod tests;
