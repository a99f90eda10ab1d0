//! External workers: their calls, and leases that were never answered.
//!
//! - [`claim`] hands out checks; [`answer`] takes the answers; [`heartbeat`] serves the time between.
//! - [`target`] says which checks may be handed out, and takes what answers say about targets.
//! - [`expire`] books unanswered leases, for claims and for the maintainer.
//!
//! Invariant (P14): a lease is a run outside the server. The same guards apply, and `run::book` writes its result.
//! Does not: run checks, or decide when a lease is over (see `awty_core::lease`).

mod answer;
mod arrays;
mod claim;
pub mod expire;
mod heartbeat;
mod target;
