use awty_core::{Time, Width};
use chrono::TimeDelta;
use proptest::prelude::*;

pub fn any_time() -> impl Strategy<Value = Time> {
    (-5_364_662_400_i64..10_413_792_000, prop_oneof![Just(0), 0_i64..1_000_000])
        .prop_map(|(seconds, micros)| Time::UNIX_EPOCH + TimeDelta::seconds(seconds) + TimeDelta::microseconds(micros))
}

pub fn any_width() -> impl Strategy<Value = Width> {
    let widths: Vec<Width> = (1..=86_400).filter_map(|seconds| Width::new(seconds).ok()).collect();
    prop::sample::select(widths)
}
