//! Computes the new time of a repetition's pending check when the plan or the time zone data changes.
//!
//! Invariant: if the jitter changes, no planned time is skipped or repeated.

use super::Repetition;
use super::local_time::Zone;
use super::occurrence::{Occurrence, Passed};
use super::plan::{earlier, just_before};
use crate::Time;
use chrono::TimeDelta;

/// New time zone data can move a planned time by at most 52 hours, because offsets from UTC are between -26 and +26
/// hours.
const MOST_MOVED: TimeDelta = TimeDelta::hours(52);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The check is due or has begun, so it keeps its time.
    Stays {
        /// The check's new [`Occurrence::passed`].
        passed: Option<Passed>,
    },
    /// `None` ends the repetition.
    Moves(Option<Time>),
}

impl<Z: Zone> Repetition<Z> {
    pub fn replaced_by(&self, new: &Self, occurrence: &Occurrence, now: Time) -> Change {
        if occurrence.first <= now || occurrence.has_begun() {
            return Change::Stays { passed: self.used_of(new, occurrence).map(Passed::Through) };
        }
        let used = self.used_by(occurrence.used());
        let first = match (new.moment_of_slot_after(now), self.last_moment_used(new, used, now)) {
            (Some(first), Some(used)) if first <= used => new.plan.next(used),
            (first, _) => first,
        };
        // If a client scheduled the pending check, planned times that have already passed are skipped.
        let passed = if occurrence.passed.is_none() { used } else { used.max(self.width.floor(now)) };
        let pending = self.moment_delayed_beyond(passed);
        match pending.filter(|&pending| new.plan.contains(pending)) {
            // With the new jitter delay, the due time of this planned check has already passed. Therefore the check is
            // due at the next slot.
            Some(pending) if first.is_none_or(|first| pending < first) => {
                Change::Moves(Some(new.width.due(new.slot(pending), now)))
            }
            _ => Change::Moves(first.map(|first| new.slot(first))),
        }
    }

    /// Returns the time up to which no planned time of `new` needs another check. `None` means the first due time of
    /// `occurrence`.
    fn used_of(&self, new: &Self, occurrence: &Occurrence) -> Option<Time> {
        let first = occurrence.first;
        let last = self.last_moment_used(new, self.used_when_over(occurrence), first);
        let own = last.and_then(|last| new.plan.last(new.furthest_back(first), last)).map(|own| new.delayed(own));
        match occurrence.passed {
            None => own.filter(|&own| own > first),
            Some(_) => Some(own.max(last).unwrap_or(new.furthest_back(first))),
        }
    }

    fn last_moment_used(&self, new: &Self, used: Time, t: Time) -> Option<Time> {
        let open = self.moment_delayed_beyond(used).map_or(Time::MAX_UTC, just_before);
        self.plan.last(new.furthest_back(t), open)
    }

    /// Returns the planned time that is nearest to the check's old time. A check that is due, has begun, or was
    /// scheduled by a client keeps its old time.
    pub fn with_new_zone_data(&self, occurrence: &Occurrence, now: Time) -> Time {
        let slot = occurrence.first;
        if slot <= now || occurrence.has_begun() || occurrence.passed.is_some() {
            return slot;
        }
        let later = self.moment_of_slot_after(just_before(slot));
        let before = later.map_or(Time::MAX_UTC, just_before);
        let since = self.furthest_back(earlier(slot, MOST_MOVED));
        let earlier = self.plan.last(since, before).map(|moment| self.slot(moment));
        match (earlier, later.map(|moment| self.slot(moment))) {
            (Some(earlier), Some(later)) if slot - earlier < later - slot => self.width.due(earlier, now),
            (_, Some(later)) => later,
            (Some(earlier), None) => self.width.due(earlier, now),
            (None, None) => slot,
        }
    }
}
