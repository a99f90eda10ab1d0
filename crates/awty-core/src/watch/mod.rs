//! Decides whether a row of a watched table is late, and which escalation level its alert gets.
//!
//! Invariant: the verdict depends only on the row, its open alert and the clock. No level is raised before it is due.
//! If several levels are due, only the highest is raised.

mod levels;
mod object_name;
mod stops;

pub use levels::{LevelError, Levels};
pub use object_name::object_name;
pub use stops::{Clock, MAX_STOPS, Seen, Stops};

use crate::limits::Limits;
use crate::repeat::Zone;
use crate::{Time, later};
use chrono::TimeDelta;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowState<'a> {
    Met,
    /// The row does not exist, or it has not begun to wait.
    Gone,
    Waiting {
        /// The row's due time or, if the rule lacks `due`, the time from which the row waits. `-infinity` in the row
        /// becomes [`Time::MIN_UTC`].
        start: Time,
        /// Time at which awty first saw the row with its present `start`.
        seen: Time,
        stops: &'a Stops,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alert {
    /// Highest level that the alert has reached. Level 0 is a reminder or a client's hold for a row that is not late
    /// yet.
    pub level: u32,
    /// Whether a message about the alert's present level was sent, and no hold has ended since.
    pub is_told: bool,
    pub told_at: Option<Time>,
    /// Time of the last reminder, including reminders that were not sent because of a hold.
    pub reminded_at: Option<Time>,
    pub hold: Option<Hold>,
}

/// An alert that a run is about to report. If the run fails, awty still raises the alert, but sends no report.
#[derive(Clone, Copy, Debug)]
pub struct Untold {
    /// Id, slot and attempt of the run's check, and the time when the check was scheduled.
    pub check: (i64, Time, i32, Time),
    pub alert: Option<i64>,
    pub from: u32,
    pub level: u32,
    pub since: Option<Time>,
    pub due_at: Time,
    pub next: Option<Time>,
}

/// While a client holds an alert, the alert's level still rises, but the alert is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    Released,
    Until(Time),
}

impl Alert {
    pub const NONE: Alert = Alert { level: 0, is_told: true, told_at: None, reminded_at: None, hold: None };

    pub fn is_held(&self, now: Time) -> bool {
        self.hold.is_some() && !self.is_hold_over(now)
    }

    pub fn is_hold_over(&self, now: Time) -> bool {
        matches!(self.hold, Some(Hold::Until(end)) if end <= now)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The row needs no alert, so awty clears an open alert.
    Settled,
    /// The row is not late, so awty clears an open alert of level 1 or above.
    Ahead(Time),
    /// A reminder is due before level 1. awty sends the reminder unless a client holds the alert.
    Remind(Time),
    Stay(Option<Time>),
    Tell(Option<Time>),
    Raise(u32, Option<Time>),
}

pub fn judge<Z: Zone>(found: RowState<'_>, alert: Alert, levels: &Levels<Z>, limits: &Limits, now: Time) -> Verdict {
    let RowState::Waiting { start, seen, stops } = found else { return Verdict::Settled };
    let width = limits.width;
    let moved = |time| width.round_up(levels.moved(time, stops, Time::MIN_UTC));
    let slot = |level| levels.time(level, start).map(moved);
    let horizon = width.floor(limits.horizon(now)).max(width.after(now));
    // The alert is sent when the hold ends, so awty checks the row again at the end of the hold.
    let end = match alert.hold {
        Some(Hold::Until(end)) if end > now => Some(end),
        _ => None,
    };
    let again = |slot: Option<Time>| {
        let first = slot.into_iter().chain(end).min();
        first.map(|slot| slot.max(width.after(now)).min(horizon))
    };
    // The row's clock is stopped. If no trigger reports the end of the stop, a daily check notices the end.
    if stops.since().is_some() {
        return Verdict::Stay(again(Some(width.round_up(later(now, TimeDelta::days(1))))));
    }
    if let Some(first) = slot(1).filter(|first| *first > now) {
        let reminders = || {
            let moved = levels.reminders(start).map(|time| levels.moved(time, stops, Time::MIN_UTC));
            moved.filter(|time| *time > seen).map(|time| width.round_up(time))
        };
        let is_due = |slot: &Time| *slot <= now && alert.reminded_at.is_none_or(|last| *slot > last);
        let next = |slot: Option<Time>| again(slot.into_iter().chain([first]).min()).unwrap_or(first);
        let ahead = reminders().filter(|slot| *slot > now).min();
        return match reminders().filter(|slot| *slot < first).filter(is_due).max() {
            None => Verdict::Ahead(next(ahead)),
            Some(_) if alert.level > 0 => Verdict::Ahead(next(Some(width.after(now)))),
            Some(due) => match levels.shut_until(due, width, now) {
                Some(opening) => Verdict::Ahead(next(Some(width.round_up(opening)))),
                None => Verdict::Remind(next(ahead)),
            },
        };
    }
    let is_due = |level| slot(level).filter(|slot| *slot <= now).map(|slot| (level, slot));
    let highest = (alert.level + 1..).map_while(is_due).last();
    let repeat = |told_at: Option<Time>| {
        let last = told_at.filter(|_| !alert.is_held(now)).map(|told_at| width.floor(told_at))?;
        levels.again(last).map(|time| width.round_up(levels.moved(time, stops, last)))
    };
    let next = |level: u32, told_at| slot(level + 1).or_else(|| repeat(told_at));
    let coming = next(alert.level, alert.told_at);
    let is_told = alert.is_held(now) || alert.is_told && !alert.is_hold_over(now);
    let (due, verdict) = match highest {
        Some((level, due)) => (due, Verdict::Raise(level, again(next(level, Some(now))))),
        None if !is_told => {
            // A changed rule may lack the alert's level, and a replaced calendar may have moved the level's time into the
            // future. In both cases, the first level's due time counts.
            let due = slot(alert.level).filter(|slot| *slot <= now).or_else(|| slot(1)).unwrap_or(now);
            (due, Verdict::Tell(again(next(alert.level, Some(now)))))
        }
        None => match coming.filter(|slot| *slot <= now) {
            Some(due) => (due, Verdict::Tell(again(next(alert.level, Some(now))))),
            None => return Verdict::Stay(again(coming)),
        },
    };
    match levels.shut_until(due, width, now) {
        Some(opening) => Verdict::Stay(again(Some(width.round_up(opening)))),
        None => verdict,
    }
}

/// Returns the slot of the first check of a row that was just written.
pub fn start<Z: Zone>(
    found: RowState<'_>,
    alert: Alert,
    levels: &Levels<Z>,
    limits: &Limits,
    now: Time,
) -> Option<Time> {
    match judge(found, alert, levels, limits, now) {
        Verdict::Settled => None,
        Verdict::Ahead(slot) => Some(slot),
        Verdict::Stay(slot) => slot,
        Verdict::Remind(_) | Verdict::Tell(_) | Verdict::Raise(..) => Some(limits.width.after(now)),
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod stops_tests;
