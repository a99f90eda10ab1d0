//! Counts successful, failed and late runs of each job since the statistics began.
//!
//! - [`account`] collects the result of a transaction.
//! - [`problem_log`] reports problems to the job's channel and to the log.
//! - [`keep`] stores the counters for the maintainer.
//! - [`api`] shows the counters.

pub mod account;
pub mod api;
pub mod keep;
pub mod problem_log;
mod statements;
