pub mod args;
pub mod argument_limits;
pub mod entity;
pub mod options;
pub mod rights;
pub mod run_as;
pub mod zone_name;
