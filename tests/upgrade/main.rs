//! Upgrades of the extension: released scripts stay as they are, an updated database equals an installed one, and the library works with
//! the SQL that it serves. Tried with a made-up next version (`made_up`), which is made of the real files.
//!
//! What pg_upgrade needs is in `mod.rs`, for the campaign.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)] // in a test the panic is the report

mod catalog;
mod frozen;
mod made_up;
mod serves;
mod symbols;
