//! Invariant: only this file reads the clock.

use chrono::{DateTime, Utc};
use std::time::SystemTime;

#[allow(clippy::disallowed_methods)]
pub fn now() -> DateTime<Utc> {
    SystemTime::now().into()
}
