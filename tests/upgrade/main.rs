//! Tests upgrades of the extension. `made_up` makes the next version from the real files.
//!
//! `mod.rs` has the test of pg_upgrade, which the campaign runs.

#![allow(clippy::unwrap_used, clippy::expect_used)] // in a test the panic is the report

mod catalog;
mod frozen;
mod made_up;
mod serves;
mod symbols;
