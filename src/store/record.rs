use super::message;
use crate::pg::catch::Failure;
use crate::pg::clock::Timestamp;
use crate::pg::text::Text;
use awty_core::lateness::lateness;
use awty_core::{Outcome, Time};
use chrono::TimeDelta;

#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    pub id: i64,
    pub slot: Timestamp,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Cursor {
    pub slot: Timestamp,
    pub id: i64,
}

impl Cursor {
    pub fn before(slot: Timestamp) -> Self {
        Self { slot, id: i64::MIN }
    }

    pub fn after(check: &Candidate) -> Self {
        Self { slot: check.slot, id: check.id }
    }
}

#[derive(Clone, Copy)]
pub struct RunRecord {
    pub slot: Time,
    pub started_at: Time,
    pub finished_at: Time,
    pub run_time: TimeDelta,
}

impl RunRecord {
    pub fn lateness(&self) -> TimeDelta {
        lateness(self.started_at, self.slot)
    }
}

pub struct Rescheduled<'a> {
    pub slot: Time,
    /// 1 after a successful run, 0 after a failed run.
    pub done: i32,
    pub attempt: i32,
    pub failure: Option<&'a Failure>,
}

pub struct End<'a> {
    pub outcome: Outcome,
    pub done: i32,
    pub failure: Option<&'a Failure>,
}

#[derive(Default)]
pub struct FailureTexts {
    pub sqlstate: Option<Text>,
    pub message: Option<Text>,
    pub context: Option<Text>,
}

impl FailureTexts {
    pub fn of(failure: Option<&Failure>) -> Self {
        failure.map_or_else(Self::default, |failure| Self {
            sqlstate: Some(Text::from(failure.sqlstate.as_str())),
            message: Some(message(&failure.message)),
            context: Some(&failure.context).filter(|context| !context.is_empty()).map(|context| message(context)),
        })
    }
}
