use crate::mono::Mono;
use crate::{Limits, Time, Width};
use std::time::Duration;

pub(crate) const START: Mono = Mono(5_000_000);

pub(crate) fn after(seconds: u64) -> Mono {
    START.plus(Duration::from_secs(seconds))
}

pub(crate) fn after_ms(ms: u64) -> Mono {
    START.plus(Duration::from_millis(ms))
}

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
