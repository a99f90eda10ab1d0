//! Reads what every SQL call needs: the arguments, the caller's rights, the entity, and the job's options.

pub mod args;
pub mod argument_limits;
pub mod entity;
pub mod options;
pub mod rights;
pub mod run_as;
pub mod zone_name;
