//! What every SQL call needs: its arguments, the caller's rights, the entity that it names, and a job's options.

pub mod args;
pub mod argument_limits;
pub mod entity;
pub mod options;
pub mod rights;
pub mod run_as;
pub mod zone_name;
