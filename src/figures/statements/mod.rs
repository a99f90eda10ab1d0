pub mod job_stat;
