//! A lease gives an external worker the right to run a check. The check must meet the same conditions as a check that
//! the server runs.

mod ahead;
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
