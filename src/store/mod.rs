//! The store: the only module with SQL text, one file per table.
//!
//! Invariant: every statement is prepared, takes parameters only, qualifies every name, and runs inside the owner's
//! bracket (`crate::owner`), which the functions here open themselves.
//! Does not: decide anything, check rights, or commit.

pub mod function;
pub mod future_job;
pub mod history;
pub mod intent;
pub mod job;
pub mod origin;
pub mod partition;
pub mod statement;
pub mod tally;

use crate::clock;
use awty_core::Time;
use chrono::TimeDelta;
use pgrx::datum::{Interval, TimestampWithTimeZone};
use pgrx::{IntoDatum, pg_sys};
use statement::Arg;

/// A time as a parameter.
pub fn time(time: Time) -> Arg {
    Some(pg_sys::Datum::from(clock::to_timestamp(time)))
}

/// A timestamptz as a time; the infinities and far years become the ends of the range.
pub fn from_timestamptz(value: TimestampWithTimeZone) -> Time {
    clock::clamped(value.into())
}

/// Places of rows as a parameter of type tid[].
pub fn tid_array(mut tids: Vec<pg_sys::ItemPointerData>) -> Arg {
    let mut datums: Vec<pg_sys::Datum> = tids.iter_mut().map(|tid| pg_sys::Datum::from(tid as *mut _)).collect();
    // SAFETY: as many tids, which are passed by reference, 6 bytes long, aligned to 2; the array is a copy.
    unsafe {
        let array = pg_sys::construct_array(
            datums.as_mut_ptr(),
            datums.len() as i32,
            pg_sys::TIDOID,
            size_of::<pg_sys::ItemPointerData>() as i32,
            false,
            pg_sys::TYPALIGN_SHORT as std::ffi::c_char,
        );
        Some(pg_sys::Datum::from(array))
    }
}

/// A duration as a parameter of type interval.
pub fn interval(delta: TimeDelta) -> Arg {
    let days = i32::try_from(delta.num_days()).unwrap_or(i32::MAX);
    let micros = (delta - TimeDelta::days(days.into())).num_microseconds().unwrap_or(i64::MAX);
    Interval::new(0, days, micros).ok().and_then(IntoDatum::into_datum)
}

/// Anything else as a parameter.
pub fn arg<T: IntoDatum>(value: T) -> Arg {
    value.into_datum()
}
