//! Counts successful, failed and late runs of each job since the statistics began.

pub mod account;
pub mod api;
pub mod keep;
pub mod problem_log;
mod statements;
