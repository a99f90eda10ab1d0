//! A lease lets an external worker run a check. The conditions are the same as for a run in the server, and `run::book`
//! writes the result.

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
