mod calls;
mod changes;
mod deployment;
mod plans;
mod statistics;

use crate::client::encoded;

fn at(uri: &str, period: &str) -> String {
    format!("/naptime/{}/{}", encoded(uri), encoded(period))
}
