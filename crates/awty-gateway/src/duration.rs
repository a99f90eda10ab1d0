//! Invariant: a duration is a whole number of milliseconds. [`parse`] turns the canonical text of a duration back into
//! the same duration. [`parse`] refuses months and years, because they have no fixed length.

use jiff::Span;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::time::Duration;

const LONGEST_TEXT: usize = 100;

const MILLISECOND: i64 = 1;
const SECOND: i64 = 1_000 * MILLISECOND;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const WEEK: i64 = 7 * DAY;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Length(i64);

impl Length {
    pub const fn seconds(seconds: i64) -> Self {
        Length(seconds * SECOND)
    }

    pub const fn millis(millis: i64) -> Self {
        Length(millis)
    }

    pub const fn as_millis(self) -> i64 {
        self.0
    }

    pub fn std(self) -> Duration {
        Duration::from_millis(self.0.unsigned_abs())
    }

    pub fn delta(self) -> chrono::TimeDelta {
        chrono::TimeDelta::milliseconds(self.0)
    }
}

pub fn parse(text: &str) -> Result<Length, String> {
    let length = parse_or_zero(text)?;
    if length.0 == 0 { Err("is zero; write for example 10 s".into()) } else { Ok(length) }
}

pub fn parse_or_zero(text: &str) -> Result<Length, String> {
    let text = text.trim();
    if text.len() > LONGEST_TEXT {
        return Err(format!("a duration has at most {LONGEST_TEXT} bytes; write for example 10 s"));
    }
    if let Ok(number) = text.parse::<f64>() {
        return Err(bare_number(text, number));
    }
    if text.contains(':') {
        return Err("hours and minutes are written with their units; write for example 1h 30m".into());
    }
    let span: Span =
        text.parse().map_err(|_| "not a duration; write for example 10 s, 5 min, 1h 30m or PT10S".to_owned())?;
    if text.trim_end().ends_with("ago") || span.is_negative() {
        let hint = total(span.abs()).ok().filter(|length| length.0 > 0);
        let hint = hint.map_or("10s".to_owned(), |length| length.to_string());
        return Err(format!("is negative; write {hint}"));
    }
    total(span)
}

fn bare_number(text: &str, number: f64) -> String {
    let whole = number.is_finite() && number.fract() == 0.0 && number > 0.0 && number < 1e15;
    if !whole {
        return format!("{text} has no unit; write for example 10 s");
    }
    #[allow(clippy::cast_possible_truncation)] // the checks above allow only small whole numbers
    let count = number as i64;
    if count < SECOND {
        return format!("{count} has no unit; write {count} s or {count} min");
    }
    let millis = Length(count).to_string();
    let millis = if count % SECOND == 0 && count < MINUTE { format!("{} s", count / SECOND) } else { millis };
    format!("{count} has no unit; write {millis} or {count} ms")
}

fn total(span: Span) -> Result<Length, String> {
    if span.get_years() != 0 || span.get_months() != 0 {
        let days = i64::from(span.get_years()) * 365 + i64::from(span.get_months()) * 30;
        return Err(format!("months and years have no fixed length; write {days} d"));
    }
    if span.get_microseconds() != 0 || span.get_nanoseconds() != 0 {
        return Err("is finer than a millisecond; write whole milliseconds, for example 500 ms".into());
    }
    let parts = [
        (i64::from(span.get_weeks()), WEEK),
        (i64::from(span.get_days()), DAY),
        (i64::from(span.get_hours()), HOUR),
        (span.get_minutes(), MINUTE),
        (span.get_seconds(), SECOND),
        (span.get_milliseconds(), MILLISECOND),
    ];
    let sum = parts.iter().try_fold(0_i64, |sum, (count, unit)| sum.checked_add(count.checked_mul(*unit)?));
    sum.map(Length).ok_or_else(|| "is too long; write for example 366 d".into())
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 <= 0 {
            return f.write_str("0s");
        }
        let units = [(WEEK, "w"), (DAY, "d"), (HOUR, "h"), (MINUTE, "m"), (SECOND, "s"), (MILLISECOND, "ms")];
        let mut rest = self.0;
        let mut space = "";
        for (size, name) in units {
            if rest >= size {
                write!(f, "{space}{}{name}", rest / size)?;
                rest %= size;
                space = " ";
            }
        }
        Ok(())
    }
}

impl Serialize for Length {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
#[path = "duration_tests.rs"]
mod tests;
