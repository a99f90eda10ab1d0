//! Tests upgrades of the extension: released scripts do not change, an updated database equals a new one, and the
//! library works with the SQL of each version that it serves. `made_up` makes the next version from the real files.
//!
//! `mod.rs` has the test of pg_upgrade, which the campaign runs.

#![allow(clippy::unwrap_used, clippy::expect_used)] // in a test the panic is the report

mod catalog;
mod frozen;
mod made_up;
mod serves;
mod symbols;
