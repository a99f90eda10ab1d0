//! The slots of one repetition: its plan, delayed by its entity's part of the jitter, and rounded up.
//!
//! Invariant: a slot is never before its moment, and the order of moments is the order of their slots. Moments may share one.
//!
//! Does not: know what is pending; [`super::occurrence`] does.

use super::Plan;
use super::plan::{earlier, just_before};
use super::zone::Zone;
use crate::{Time, Width, later};
use chrono::TimeDelta;

/// When a job is asked about one entity again and again.
#[derive(Clone, Debug)]
pub struct Repetition<Z> {
    /// Its moments.
    pub plan: Plan<Z>,
    /// How long after its moment an occurrence comes, see [`super::jitter::delay`]; never after the next moment.
    pub delay: TimeDelta,
    /// The slot width that counts for the job.
    pub width: Width,
    /// How far back it goes on after a time in which it could not.
    pub catch_up: TimeDelta,
}

impl<Z: Zone> Repetition<Z> {
    /// The slot of a moment.
    pub fn slot(&self, moment: Time) -> Time {
        self.width.round_up(self.delayed(moment))
    }

    /// A moment and its delay, which ends at the next moment.
    pub(super) fn delayed(&self, moment: Time) -> Time {
        let delayed = later(moment, self.delay);
        // Without a delay the next moment need not be looked for.
        if delayed == moment { moment } else { self.plan.next(moment).map_or(delayed, |next| next.min(delayed)) }
    }

    /// The first slot after `t`.
    pub fn slot_after(&self, t: Time) -> Option<Time> {
        self.moment_of_slot_after(t).map(|moment| self.slot(moment))
    }

    /// The first moment whose slot is after `t`.
    pub(super) fn moment_of_slot_after(&self, t: Time) -> Option<Time> {
        // Rounded up it is after `t` exactly if it is after the boundary before.
        self.moment_delayed_beyond(self.width.floor(t))
    }

    /// The first moment that comes after `t` with its delay.
    pub(super) fn moment_delayed_beyond(&self, t: Time) -> Option<Time> {
        let since = earlier(t, self.delay);
        let first = self.plan.next(since)?;
        // Of the moments up to `t`, the last one alone is delayed beyond it: the delay ends at the next moment.
        if first > t { Some(first) } else { self.plan.last(since, t) }
    }

    /// The first slot from `t` on.
    pub fn slot_from(&self, t: Time) -> Option<Time> {
        self.slot_after(just_before(t))
    }
}
