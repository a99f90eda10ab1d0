//! Invariant: an SQL call checks its arguments and the caller's rights before it writes.

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
