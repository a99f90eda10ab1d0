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
