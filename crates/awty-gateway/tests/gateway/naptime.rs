//! Naptime's requirements, one test each: scheduling as an HTTP service.
//!
//! Does not: test faults of machines (many kills, lost networks, promotion) or speed. Other tests do.

mod calls;
mod changes;
mod deployment;
mod plans;
mod statistics;

use crate::client::encoded;

/// naptime's path of a URI and a period.
fn at(uri: &str, period: &str) -> String {
    format!("/naptime/{}/{}", encoded(uri), encoded(period))
}
