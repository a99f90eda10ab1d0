//! What SQL calls: read the arguments, check them and the caller's rights, call, report.
//!
//! Invariant: nothing is written before everything is checked; every refusal is a `crate::error::Error`.
//! Does not: hold SQL, or take a role from an argument where the caller's own is meant.

mod args;
mod cancel;
mod entity;
mod figures;
mod operate;
mod register;
pub mod rights;
mod schedule;
mod status;
