use super::statement::Arg;
use super::{arg, interval};
use crate::pg::text::Text;
use awty_core::lease::LeaseOptions;
use awty_core::{Limits, Width, Word};
use chrono::TimeDelta;

#[derive(Clone, Copy, PartialEq)]
pub struct Options {
    pub slot: Option<TimeDelta>,
    /// If the job has no slot width, `limits.width` is the current value of `awty.slot`.
    pub limits: Limits,
    pub terms: LeaseOptions,
}

impl Options {
    pub const fn defaults(width: Width) -> Self {
        Self { slot: None, limits: Limits::defaults(width), terms: LeaseOptions::DEFAULTS }
    }
}

pub enum Field<'a> {
    Time(&'a mut TimeDelta),
    OptionalTime(&'a mut Option<TimeDelta>),
    Count(&'a mut u32),
    Word(&'a mut dyn Word),
}

pub struct JobOption {
    pub name: &'static str,
    pub argument: usize,
    pub column: i32,
    pub field: fn(&mut Options) -> Field,
}

const fn option(name: &'static str, argument: usize, column: i32, field: fn(&mut Options) -> Field) -> JobOption {
    JobOption { name, argument, column, field }
}

pub const LIMITS: [JobOption; 9] = [
    option("slot", 2, 6, |options| Field::OptionalTime(&mut options.slot)),
    option("timeout", 3, 7, |options| Field::Time(&mut options.limits.timeout)),
    option("max_checks", 4, 8, |options| Field::Count(&mut options.limits.max_checks)),
    option("max_horizon", 5, 9, |options| Field::Time(&mut options.limits.max_horizon)),
    option("max_attempts", 6, 10, |options| Field::Count(&mut options.limits.max_attempts)),
    option("retry_after", 7, 11, |options| Field::Time(&mut options.limits.retry_after)),
    option("on_missed", 8, 12, |options| Field::Word(&mut options.limits.on_missed)),
    option("max_lateness", 9, 13, |options| Field::OptionalTime(&mut options.limits.max_lateness)),
    option("keep_history", 10, 14, |options| Field::Word(&mut options.limits.keep_history)),
];

pub const EXTERNAL: [JobOption; 3] = [
    option("heartbeat", 13, 20, |options| Field::OptionalTime(&mut options.terms.heartbeat)),
    option("delivery", 14, 21, |options| Field::Word(&mut options.terms.delivery)),
    option("keep_attempts", 15, 22, |options| Field::Word(&mut options.terms.keep_attempts)),
];

pub fn all() -> impl Iterator<Item = &'static JobOption> {
    LIMITS.iter().chain(&EXTERNAL)
}

impl JobOption {
    pub fn arg(&self, mut options: Options) -> Arg {
        match (self.field)(&mut options) {
            Field::Time(time) => interval(*time),
            Field::OptionalTime(time) => time.and_then(interval),
            Field::Count(count) => arg(count.cast_signed()),
            Field::Word(word) => Some(Text::from(word.as_str()).datum()),
        }
    }

    pub fn copy(&self, options: &mut Options, mut from: Options) {
        match ((self.field)(options), (self.field)(&mut from)) {
            (Field::Time(to), Field::Time(from)) => *to = *from,
            (Field::OptionalTime(to), Field::OptionalTime(from)) => *to = *from,
            (Field::Count(to), Field::Count(from)) => *to = *from,
            (Field::Word(to), Field::Word(from)) => drop(to.set(from.as_str())),
            _ => unreachable!("both are values of one option"),
        }
    }
}
