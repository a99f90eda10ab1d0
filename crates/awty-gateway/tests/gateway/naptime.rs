//! Naptime's list of wishes, each as a test: scheduling as an HTTP service.
//!
//! What needs faults of machines (kills by the hundred, lost networks, promotion) is in the other tests; so is speed.

mod calls;
mod changes;
mod deployment;
mod plans;
mod statistics;

use crate::client::encoded;

/// naptime's address of a URI and a period.
fn at(uri: &str, period: &str) -> String {
    format!("/naptime/{}/{}", encoded(uri), encoded(period))
}
