use crate::{Limits, Time, Width};

pub(crate) fn at(text: &str) -> Time {
    text.parse().unwrap()
}

pub(crate) fn clock(time: &str) -> Time {
    at(&format!("2030-05-01T{time}Z"))
}

pub(crate) fn width(seconds: i64) -> Width {
    Width::new(seconds).unwrap()
}

pub(crate) fn limits() -> Limits {
    Limits::defaults(width(60))
}
