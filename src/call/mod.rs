pub mod args;
pub mod caller;
pub mod entity;
pub mod options;
pub mod own_checks;
pub mod rights;
pub mod run_as;
pub mod zone_name;

pub use awty_core::argument_limits;
