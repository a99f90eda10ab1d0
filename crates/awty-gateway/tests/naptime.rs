//! Naptime's list of wishes, each as a test: scheduling as an HTTP service.
//!
//! What needs faults of machines (kills by the hundred, lost networks, promotion) is in the other tests; so is speed.
#![allow(clippy::unwrap_used, clippy::expect_used)] // in a test the panic is the report

#[path = "naptime/calls.rs"]
mod calls;
#[path = "naptime/changes.rs"]
mod changes;
#[path = "common/client.rs"]
mod client;
mod common;
#[path = "naptime/deployment.rs"]
mod deployment;
#[path = "common/people.rs"]
mod people;
#[path = "naptime/plans.rs"]
mod plans;
#[path = "common/shop.rs"]
mod shop;
#[path = "naptime/statistics.rs"]
mod statistics;

use client::encoded;

/// naptime's address of a URI and a period.
fn at(uri: &str, period: &str) -> String {
    format!("/naptime/{}/{}", encoded(uri), encoded(period))
}
