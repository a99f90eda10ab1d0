//! What is written of a check and its runs, and read of it, beyond the row itself. Plain values.

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

/// Where a scan of what is due stands: after this check of this slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Cursor {
    pub slot: Timestamp,
    pub id: i64,
}

impl Cursor {
    /// Before all checks of a slot.
    pub fn before(slot: Timestamp) -> Self {
        Self { slot, id: i64::MIN }
    }

    /// After this check.
    pub fn after(check: &Candidate) -> Self {
        Self { slot: check.slot, id: check.id }
    }
}

/// What is known of one run of a check.
#[derive(Clone, Copy)]
pub struct RunRecord {
    pub slot: Time,
    pub started_at: Time,
    pub finished_at: Time,
    /// Its length by the monotonic clock, which a jump of the other one does not distort.
    pub run_time: TimeDelta,
}

impl RunRecord {
    /// How late it started.
    pub fn lateness(&self) -> TimeDelta {
        lateness(self.started_at, self.slot)
    }
}

/// What a run leaves behind where its check stays pending.
pub struct Again<'a> {
    /// The next slot.
    pub slot: Time,
    /// 1 if the check was done, 0 if it is tried again.
    pub done: i32,
    /// Failed runs in a row.
    pub attempt: i32,
    pub failure: Option<&'a Failure>,
}

/// How a check ends after a run.
pub struct End<'a> {
    pub outcome: Outcome,
    /// 1 if the run was a check, 0 if it failed.
    pub done: i32,
    pub failure: Option<&'a Failure>,
}
