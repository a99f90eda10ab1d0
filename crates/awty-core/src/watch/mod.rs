//! When a row of a watched table is late, and which level its alert has.
//!
//! - [`Levels`] says when a row reaches each level.
//! - [`judge`] decides what happens to the check and the alert of a row.
//! - [`object_name`] names the objects of a rule.
//!
//! Each due time is rounded up to a slot, so no level is early. If several levels are due, only the highest of them is
//! raised. In closed time a level is raised only within one slot after its slot.
//!
//! Invariant: the verdict depends only on the row, its open alert and the clock.

mod levels;
mod name;

pub use levels::{LevelError, Levels, MAX_LEVELS};
pub use name::object_name;

use crate::limits::Limits;
use crate::repeat::Zone;
use crate::{Time, later};

/// State of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowState {
    /// The condition holds.
    Met,
    /// The row is gone, or its clock has not started.
    Gone,
    /// The condition does not hold. The clock has started at this time; `-infinity` is [`Time::MIN_UTC`]. A rule with a
    /// due time of its own has the due time instead.
    Waiting(Time),
}

/// The open alert of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alert {
    /// The highest level that was raised. 0: the row is not late yet, but its alert is held.
    pub level: u32,
    /// Whether the alert was told at this level, and since the last hold.
    pub is_told: bool,
    /// The hold, if a role has taken the alert over.
    pub hold: Option<Hold>,
}

/// Until when an alert is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Until a role releases the alert.
    Released,
    /// Until this slot.
    Until(Time),
}

impl Alert {
    /// The row has no open alert.
    pub const NONE: Alert = Alert { level: 0, is_told: true, hold: None };

    /// Whether the alert is held: it rises, but is not told.
    pub fn is_held(&self, now: Time) -> bool {
        self.hold.is_some() && !self.is_hold_over(now)
    }

    /// Whether the end of the hold has come.
    pub fn is_hold_over(&self, now: Time) -> bool {
        matches!(self.hold, Some(Hold::Until(end)) if end <= now)
    }
}

/// What happens to the check and the alert of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The row needs no alert. An open alert is cleared.
    Settled,
    /// Level 1 is not due yet. An open alert of level 1 or above is cleared, and the row is checked at this slot.
    Ahead(Time),
    /// The open alert keeps its level. The row is checked again at this slot, or never.
    Stay(Option<Time>),
    /// The open alert keeps its level and is told. The row is checked again at this slot, or never.
    Tell(Option<Time>),
    /// This level is raised, and told unless the alert is held. The row is checked again at this slot, or never.
    Raise(u32, Option<Time>),
}

/// Returns the verdict on a row and its open alert.
pub fn judge<Z: Zone>(found: RowState, alert: Alert, levels: &Levels<Z>, limits: &Limits, now: Time) -> Verdict {
    let RowState::Waiting(start) = found else { return Verdict::Settled };
    let width = limits.width;
    let slot = |level| levels.time(level, start).map(|time| width.round_up(time));
    // A slot beyond the horizon is replaced by the horizon.
    let horizon = width.floor(later(now, limits.max_horizon)).max(width.after(now));
    // The end of a hold is told at its slot.
    let end = match alert.hold {
        Some(Hold::Until(end)) if end > now => Some(end),
        _ => None,
    };
    let again = |slot: Option<Time>| {
        let first = slot.into_iter().chain(end).min();
        first.map(|slot| slot.max(width.after(now)).min(horizon))
    };
    let first = slot(1);
    if first.is_some_and(|first| first > now) {
        return again(first).map_or(Verdict::Settled, Verdict::Ahead);
    }
    let is_due = |level| slot(level).filter(|slot| *slot <= now).map(|slot| (level, slot));
    let highest = (alert.level + 1..).map_while(is_due).last();
    let is_told = alert.is_held(now) || alert.is_told && !alert.is_hold_over(now);
    let (due, verdict) = match highest {
        Some((level, due)) => (due, Verdict::Raise(level, again(slot(level + 1)))),
        None if is_told => return Verdict::Stay(again(slot(alert.level + 1))),
        None => (slot(alert.level).unwrap_or(now), Verdict::Tell(again(slot(alert.level + 1)))),
    };
    match levels.shut_until(due, width, now) {
        Some(opening) => Verdict::Stay(again(Some(width.round_up(opening)))),
        None => verdict,
    }
}

/// Returns the slot of the first check of a row that was just written; `None` for no check.
pub fn start<Z: Zone>(found: RowState, alert: Alert, levels: &Levels<Z>, limits: &Limits, now: Time) -> Option<Time> {
    match judge(found, alert, levels, limits, now) {
        Verdict::Settled => None,
        Verdict::Ahead(slot) => Some(slot),
        Verdict::Stay(slot) => slot,
        Verdict::Tell(_) | Verdict::Raise(..) => Some(limits.width.after(now)),
    }
}

#[cfg(test)]
mod tests;
