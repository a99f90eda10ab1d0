//! Tests what awty does over the life of a server. Each test has its own cluster.
//!
//! A new kind of test is a directory like this one and a `[[test]]` entry in `crates/awty-testkit/Cargo.toml`.

#![allow(clippy::unwrap_used, clippy::expect_used)] // in a test the panic is the report

mod activity;
mod additions;
mod bad_jobs;
mod clients;
mod clock;
mod crash;
mod ddl;
mod dump;
mod effects;
mod failures;
mod fairness;
mod figures;
mod foreign_settings;
mod guards;
mod history;
mod http;
mod in_flight;
mod inspections;
mod ledger;
mod many;
mod missed;
mod not_preloaded;
mod one_check;
mod outside;
mod own_check;
mod plain_jobs;
mod plans;
mod prepared;
mod reload;
mod repeat;
mod reraise;
mod restore;
mod rewrites;
mod set_based;
mod single_user;
mod slots;
mod slow_disk;
mod standby;
mod statements;
mod statements_of_a_run;
mod travel;
mod unreadable;
mod vacuum;
mod watch;
mod why;
