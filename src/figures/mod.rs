pub mod account;
pub mod api;
pub mod keep;
pub mod problem_log;
mod statements;
