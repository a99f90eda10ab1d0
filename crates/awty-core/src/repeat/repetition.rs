//! Each planned time is delayed by the entity's jitter, and then rounded up to a slot.
//!
//! Invariant: a slot is never before its planned time, and a later planned time never has an earlier slot.

use super::Plan;
use super::jitter::Jitter;
use super::local_time::Zone;
use super::plan::earlier;
use crate::{Time, Width, later};
use chrono::TimeDelta;

#[derive(Clone, Debug)]
pub struct Repetition<Z> {
    pub plan: Plan<Z>,
    pub jitter: Jitter,
    pub width: Width,
    /// Maximum age of a missed planned time that still gets a check.
    pub catch_up: TimeDelta,
}

impl<Z: Zone> Repetition<Z> {
    pub fn slot(&self, moment: Time) -> Time {
        self.width.round_up(self.delayed(moment))
    }

    pub(super) fn delayed(&self, moment: Time) -> Time {
        if self.jitter.delay(TimeDelta::MAX).is_zero() {
            return moment;
        }
        let distance = self.plan.next(moment).map_or(TimeDelta::MAX, |next| next - moment);
        later(moment, self.jitter.delay(distance))
    }

    pub fn slot_after(&self, t: Time) -> Option<Time> {
        self.moment_of_slot_after(t).map(|moment| self.slot(moment))
    }

    pub(super) fn moment_of_slot_after(&self, t: Time) -> Option<Time> {
        // A planned time later than the last slot up to `t` is rounded up to a slot after `t`.
        self.moment_delayed_beyond(self.width.floor(t))
    }

    pub(super) fn moment_delayed_beyond(&self, t: Time) -> Option<Time> {
        let since = earlier(t, self.jitter.at_most);
        let first = self.plan.next(since)?;
        if first > t {
            return Some(first);
        }
        let last = self.plan.last(since, t).filter(|last| self.delayed(*last) > t);
        last.or_else(|| self.plan.next(t))
    }
}
