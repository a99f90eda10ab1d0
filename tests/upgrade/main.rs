//! `mod.rs` tests pg_upgrade, and the campaign runs it.

#![allow(clippy::unwrap_used, clippy::expect_used)] // in a test the panic is the report

mod catalog;
mod frozen;
mod made_up;
mod serves;
mod symbols;
