//! Plain values that are written and read for a check and its runs, beyond the row itself.

use crate::pg::catch::Failure;
use crate::pg::clock::Timestamp;
use awty_core::lateness::lateness;
use awty_core::{Outcome, Time};
use chrono::TimeDelta;

/// A check that may be due.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    pub id: i64,
    pub slot: Timestamp,
}

/// Position of a scan of due checks: after this check of this slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Cursor {
    pub slot: Timestamp,
    pub id: i64,
}

impl Cursor {
    /// The position before all checks of a slot.
    pub fn before(slot: Timestamp) -> Self {
        Self { slot, id: i64::MIN }
    }

    /// The position after a check.
    pub fn after(check: &Candidate) -> Self {
        Self { slot: check.slot, id: check.id }
    }
}

/// One run of a check.
#[derive(Clone, Copy)]
pub struct RunRecord {
    pub slot: Time,
    pub started_at: Time,
    pub finished_at: Time,
    /// Duration by the monotonic clock, so that a jump of the system clock does not distort it.
    pub run_time: TimeDelta,
}

impl RunRecord {
    /// How late it started.
    pub fn lateness(&self) -> TimeDelta {
        lateness(self.started_at, self.slot)
    }
}

/// Result of a run after which the check stays pending.
pub struct Rescheduled<'a> {
    /// The next slot.
    pub slot: Time,
    /// 1 if the check was done, 0 if it is tried again.
    pub done: i32,
    /// Failed runs in a row.
    pub attempt: i32,
    pub failure: Option<&'a Failure>,
}

/// Result of a run that ends the check.
pub struct End<'a> {
    pub outcome: Outcome,
    /// 1 if the run succeeded, 0 if it failed.
    pub done: i32,
    pub failure: Option<&'a Failure>,
}
