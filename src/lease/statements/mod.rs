//! Statements on leases, and on targets and their breakers.

pub mod lease;
pub mod target;
