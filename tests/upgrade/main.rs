//! The tests of pg_upgrade are in `mod.rs`. The program `campaign` runs these tests.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a panic fails the test

mod catalog;
mod frozen;
mod made_up;
mod serves;
mod symbols;
