//! What becomes of the pending occurrence when its plan changes: by `repeat` with other terms, or by new zone data.
//!
//! Invariant: however the jitter has changed, a moment whose occurrence is still ahead is not lost, and none that is used up comes
//! again.
//!
//! Does not: say whether two plans differ.

use super::Repetition;
use super::occurrence::{Occurrence, Passed};
use super::plan::{earlier, just_before};
use super::zone::Zone;
use crate::Time;
use chrono::TimeDelta;

/// New zone data move no moment by more than this: clocks are at most 26 hours from UTC.
const MOST_MOVED: TimeDelta = TimeDelta::hours(52);

/// What becomes of the pending occurrence when its plan is replaced by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is due and stays, with this in place of its [`Occurrence::passed`].
    Stays {
        /// What it stands for by the new plan.
        passed: Option<Passed>,
    },
    /// Another one takes its place, at this slot; `None`: the repetition is over.
    Moves(Option<Time>),
}

impl<Z: Zone> Repetition<Z> {
    /// What becomes of the pending occurrence when `new` takes the place of this repetition. A moment whose occurrence is still
    /// ahead is not lost where `new` has it too, and none that is used up comes again, however the jitter has changed.
    pub fn replaced_by(&self, new: &Self, occurrence: &Occurrence, now: Time) -> Change {
        if occurrence.first <= now || occurrence.has_begun() {
            return Change::Stays { passed: self.used_of(new, occurrence).map(Passed::Through) };
        }
        let used = self.used_by(occurrence.used());
        let first = match (new.moment_of_slot_after(now), self.last_moment_used(new, used, now)) {
            (Some(first), Some(used)) if first <= used => new.plan.next(used),
            (first, _) => first,
        };
        // What a client has put there stands for no moment that has passed.
        let passed = if occurrence.passed.is_none() { used } else { used.max(self.width.floor(now)) };
        let pending = self.moment_delayed_beyond(passed);
        match pending.filter(|&pending| new.plan.contains(pending)) {
            // It was still ahead only because of its delay, and by the new delay it has come.
            Some(pending) if first.is_none_or(|first| pending < first) => {
                Change::Moves(Some(new.width.due(new.slot(pending), now)))
            }
            _ => Change::Moves(first.map(|first| new.slot(first))),
        }
    }

    /// Up to when moments of `new`, with their delay, are used up when this occurrence is over; `None`: its slot says it.
    fn used_of(&self, new: &Self, occurrence: &Occurrence) -> Option<Time> {
        let first = occurrence.first;
        let last = self.last_moment_used(new, self.used_when_over(occurrence), first);
        let own = last.and_then(|last| new.plan.last(new.furthest_back(first), last)).map(|own| new.delayed(own));
        match occurrence.passed {
            None => own.filter(|&own| own > first),
            // It is still no slot of the plan, so its own says nothing.
            Some(_) => Some(own.max(last).unwrap_or(new.furthest_back(first))),
        }
    }

    /// The last moment that, with its delay, comes by `used`, as far as `new` could bring it again after `t`.
    fn last_moment_used(&self, new: &Self, used: Time, t: Time) -> Option<Time> {
        let open = self.moment_delayed_beyond(used).map_or(Time::MAX_UTC, just_before);
        self.plan.last(new.furthest_back(t), open)
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
