//! A repetition checks one entity again and again, at the planned times of a plan.
//!
//! Invariant: planned times do not drift, and do not come twice when clocks change. Each function does a bounded amount
//! of work.

mod change;
mod changes;
pub(crate) mod civil;
mod error;
mod plan;
mod repetition;
mod steps;

pub mod cron;
pub mod every;
pub mod jitter;
pub mod local_time;
pub mod occurrence;

pub use change::Change;
pub use changes::{Changes, Remembered};
pub use cron::Cron;
pub use error::{RepeatError, check_every, check_length, check_max};
pub use every::Every;
pub use local_time::{Fixed, Span, Zone};
pub use occurrence::{Occurrence, Passed};
pub use plan::{Plan, Rhythm};
pub use repetition::Repetition;
