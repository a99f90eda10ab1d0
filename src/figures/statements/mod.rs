//! Statements on `awty_internal.job_stat`.

pub mod job_stat;
