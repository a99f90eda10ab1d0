//! The functions that SQL calls: each reads its arguments, checks them and the caller's rights, and calls other modules.
//!
//! Invariant: nothing is written before everything is checked; every refusal is a `crate::error::Error`.
//! Does not: contain SQL, or take a role from an argument if the caller's own role is meant.

mod cancel;
mod key;
mod many;
mod operate;
mod pending;
mod register;
mod schedule;
mod status;
