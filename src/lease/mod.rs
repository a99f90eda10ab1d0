//! External workers: their calls, and leases that were never answered.
//!
//! - [`claim`] hands out checks; [`answer`] takes the answers; [`heartbeat`] extends leases, [`requeue`] gives them
//!   back, and [`next_claim`] says when to claim again.
//! - [`target`] says which checks may be handed out, and takes what answers say about targets; [`alter_target`] changes
//!   limits.
//! - [`expire`] books unanswered leases, for claims and for the maintainer.
//!
//! Invariant (P14): a lease is a run outside the server. The same guards apply, and `run::book` writes its result.

mod alter_target;
mod answer;
mod arrays;
mod claim;
pub mod expire;
mod heartbeat;
mod next_claim;
mod requeue;
pub mod statements;
mod target;
