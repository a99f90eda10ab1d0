//! The program `campaign`, and not this program, runs the tests of pg_upgrade in `mod.rs`.

#![allow(clippy::unwrap_used, clippy::expect_used)] // in a test the panic is the report

mod catalog;
mod frozen;
mod made_up;
mod serves;
mod symbols;
