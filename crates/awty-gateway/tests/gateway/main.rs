//! Tests the whole gateway on throwaway clusters, with receivers that misbehave.
//!
//! All tests are one binary, because linking a binary per file took longer than most of the tests.
#![allow(clippy::unwrap_used, clippy::expect_used)] // in a test the panic is the report

mod ahead;
mod answers;
mod api;
mod bodies;
mod bulkhead;
mod certificates;
mod client;
mod connections;
mod costs;
mod deliveries;
mod held;
mod hostile;
mod limits;
mod listener;
mod matrix;
mod meanwhile;
mod metrics;
mod misbehaviour;
mod names;
mod naptime;
mod neighbours;
mod openapi;
mod page;
mod people;
mod places;
mod plans;
mod pooler;
mod random;
mod readiness;
mod receiver;
mod receivers;
mod requests;
mod returned;
mod room;
mod script;
mod secrets;
mod sends;
mod shop;
mod stopping;
mod strangers;
mod targets;
mod tenants;
