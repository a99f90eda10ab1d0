//! Invariant: every SQL statement is prepared, passes values only as parameters, qualifies every name, and runs with
//! the rights of the owner of awty's tables (`crate::pg::owner::as_owner`).

pub mod check_row;
pub mod check_stat;
pub mod extension;
pub mod function;
pub mod future_job;
pub mod history;
pub mod hold;
pub mod in_flight;
pub mod inspected;
pub mod job;
pub mod job_option;
pub mod left;
pub mod many;
pub mod origin;
pub mod partition;
pub mod patience;
pub mod prepared;
pub mod record;
pub mod right;
pub mod statement;
pub mod typed;

use crate::pg::clock;
use crate::pg::text::{self, Text};
use awty_core::Time;
use awty_core::argument_limits::MAX_MESSAGE;
use chrono::TimeDelta;
use pgrx::datum::{Interval, TimestampWithTimeZone};
use pgrx::{IntoDatum, pg_sys};
use statement::Arg;

pub fn time(time: Time) -> Arg {
    Some(pg_sys::Datum::from(clock::to_timestamp(time)))
}

pub fn from_timestamptz(value: TimestampWithTimeZone) -> Time {
    clock::clamped(value.into())
}

pub fn interval(delta: TimeDelta) -> Arg {
    to_interval(delta).and_then(IntoDatum::into_datum)
}

pub fn to_interval(delta: TimeDelta) -> Option<Interval> {
    let days = i32::try_from(delta.num_days()).unwrap_or(i32::MAX);
    let micros = (delta - TimeDelta::days(days.into())).num_microseconds().unwrap_or(i64::MAX);
    Interval::new(0, days, micros).ok()
}

pub fn message(text: &str) -> Text {
    text::message(text, MAX_MESSAGE)
}

pub fn arg<T: IntoDatum>(value: T) -> Arg {
    value.into_datum()
}
