//! Figures of jobs: how their runs went, counted since the statistics began.
//!
//! - [`account`] collects the result of a transaction; [`problem_log`] reports problems to the job's channel and to the
//!   log.
//! - [`keep`] stores the figures for the maintainer; [`api`] shows them.

pub mod account;
pub mod api;
pub mod keep;
pub mod problem_log;
mod statements;
