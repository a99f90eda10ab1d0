//! A lease lets an external worker run a check, under the same conditions as a run in the server.

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
