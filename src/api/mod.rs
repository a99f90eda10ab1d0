//! Invariant: an SQL call writes nothing before it has checked its arguments and the caller's rights. Every refusal is
//! a `crate::error::Error`.

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
