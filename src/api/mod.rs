//! What SQL calls: read the arguments, check them and the caller's rights, call, report.
//!
//! Invariant: nothing is written before everything is checked; every refusal is a `crate::error::Error`.
//! Does not: hold SQL, or take a role from an argument where the caller's own is meant.

pub mod args;
mod cancel;
pub mod entity;
mod figures;
mod key;
mod many;
mod operate;
mod pending;
mod register;
mod repeat;
pub mod rights;
mod schedule;
mod status;
mod target;
mod terms;
mod watch;
mod watch_triggers;
