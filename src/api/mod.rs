//! Functions that SQL calls. Each function reads its arguments, checks the arguments and the caller's rights, and calls
//! other modules.
//!
//! Invariant: nothing is written before everything is checked. Every refusal is a `crate::error::Error`.

mod adopt;
mod allow;
mod calendar;
mod cancel;
mod check_now;
mod hold;
mod http;
mod key;
mod pause;
mod register;
mod schedule;
mod schedule_many;
mod status;
