//! Short ways to write times and widths in unit tests.

use crate::{Limits, Time, Width};

/// The time written in RFC 3339.
pub(crate) fn at(text: &str) -> Time {
    text.parse().unwrap()
}

/// A time of day on the day that the tests look at.
pub(crate) fn clock(time: &str) -> Time {
    at(&format!("2030-05-01T{time}Z"))
}

pub(crate) fn width(seconds: i64) -> Width {
    Width::new(seconds).unwrap()
}

/// The default options at one-minute slots.
pub(crate) fn limits() -> Limits {
    Limits::defaults(width(60))
}
