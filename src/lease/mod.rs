//! Serves external workers, which claim checks and report results by SQL calls.
//!
//! - [`claim`] hands out checks.
//! - [`answer`] takes the answers.
//! - [`heartbeat`] extends leases.
//! - [`requeue`] gives leases back without an answer.
//! - [`next_claim`] says when to claim again.
//! - [`target`] says which checks may be handed out, and records which targets fail.
//! - [`alter_target`] changes the limits of targets.
//! - [`expire`] ends leases that were never answered.
//!
//! Invariant: a lease is a run outside the server. The same conditions as for other runs apply, and `run::book` writes
//! the result.

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
