//! Attacks by a hostile role, and their results. One file per theme; each test has its own cluster, with the roles
//! `alice`, who minds her own business, and `mallory`, who does not. They distrust each other.
//!
//! To add a file: write `tests/attacks/<theme>.rs` and add its `mod` line here.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)] // in a test the panic is the report

mod field;

mod abandoned;
mod alters;
mod answers;
mod commit_time;
mod errors;
mod foreign_jobs;
mod functions;
mod hijacks;
mod holdups;
mod lane;
mod languages;
mod limits;
mod locks;
mod owners;
mod people;
mod roles;
mod rules;
mod seeing;
mod settings;
mod stale;
mod storms;
mod tables;
mod transactions;
mod traps;
mod unstoppable;
mod visibility;
