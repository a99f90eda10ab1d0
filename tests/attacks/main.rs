//! Each test has its own cluster, in which the role `mallory` attacks the role `alice`.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a panic is how a test fails

mod field;

mod abandoned;
mod alters;
mod answers;
mod calendars;
mod commit_time;
mod endings;
mod errors;
mod explanations;
mod expressions;
mod foreign_jobs;
mod functions;
mod hijacks;
mod holdups;
mod lane;
mod languages;
mod leases;
mod limits;
mod locks;
mod names;
mod own_checks;
mod owners;
mod partitions;
mod people;
mod roles;
mod rules;
mod seeing;
mod sessions;
mod settings;
mod snapshots;
mod stale;
mod storms;
mod tables;
mod transactions;
mod traps;
mod unread;
mod unstoppable;
mod upkeep;
mod visibility;
mod walks;
mod watching;
