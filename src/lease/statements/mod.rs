pub mod lease;
pub mod target;
