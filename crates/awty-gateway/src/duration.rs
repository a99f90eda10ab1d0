//! Durations as text: `1h 30m`, `10 seconds`, `PT10S`.
//!
//! Invariant: what is accepted is a whole, positive number of milliseconds, and its canonical form reads as the same number.
//!
//! Does not: know months and years, which have no fixed length.

use jiff::Span;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::time::Duration;

/// A longer text is no duration.
const LONGEST_TEXT: usize = 100;

const MILLISECOND: i64 = 1;
const SECOND: i64 = 1_000 * MILLISECOND;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const WEEK: i64 = 7 * DAY;

/// A length of time, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Length(i64);

impl Length {
    /// So many seconds.
    pub const fn seconds(seconds: i64) -> Self {
        Length(seconds * SECOND)
    }

    /// So many milliseconds.
    pub const fn millis(millis: i64) -> Self {
        Length(millis)
    }

    /// Its milliseconds.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// For a timer.
    pub fn std(self) -> Duration {
        Duration::from_millis(self.0.unsigned_abs())
    }

    /// For a sum with a time.
    pub fn delta(self) -> chrono::TimeDelta {
        chrono::TimeDelta::milliseconds(self.0)
    }

    /// The next multiple of `slot`.
    pub fn rounded_up(self, slot: Length) -> Length {
        let slot = slot.0.max(1);
        let whole = self.0 - self.0.rem_euclid(slot);
        if whole == self.0 { self } else { Length(whole.saturating_add(slot)) }
    }
}

/// Reads a duration; a refusal says what to write instead.
pub fn parse(text: &str) -> Result<Length, String> {
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
        return Err(format!("lies in the past; write {hint}"));
    }
    let length = total(span)?;
    if length.0 == 0 {
        return Err("is no time at all; write for example 10 s".into());
    }
    Ok(length)
}

fn bare_number(text: &str, number: f64) -> String {
    let whole = number.is_finite() && number.fract() == 0.0 && number > 0.0 && number < 1e15;
    if !whole {
        return format!("{text} of what? write for example 10 s");
    }
    #[allow(clippy::cast_possible_truncation)] // whole and small, as asked above
    let count = number as i64;
    let millis = Length(count).to_string();
    if millis == format!("{count}ms") {
        return format!("{count} of what? write {count} s or {count} ms");
    }
    // "10s" reads more easily as "10 s", as the unit is what was missing.
    let millis = if count % SECOND == 0 && count < MINUTE { format!("{} s", count / SECOND) } else { millis };
    format!("{count} of what? write {millis} or {count} ms")
}

/// Its milliseconds, with days of 24 hours.
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

/// The one form in which durations are answered.
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
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};

    fn reads(text: &str) -> String {
        parse(text).map_or_else(|refusal| format!("refused: {refusal}"), |length| length.to_string())
    }

    #[test]
    fn each_way_to_write_ten_seconds_is_ten_seconds() {
        for text in ["10 s", "10s", "10 seconds", "10 sec", "10secs", "PT10S", "10000 ms", " 10 s "] {
            assert_eq!(reads(text), "10s", "{text}");
        }
    }

    #[test]
    fn units_come_largest_first_with_or_without_space_and_comma() {
        assert_eq!(reads("1h 30m"), "1h 30m");
        assert_eq!(reads("1h30m"), "1h 30m");
        assert_eq!(reads("1 hour, 30 minutes"), "1h 30m");
        assert_eq!(reads("90 min"), "1h 30m");
        assert_eq!(reads("1.5h"), "1h 30m");
        assert_eq!(reads("0.5s"), "500ms");
        assert_eq!(reads("8 days"), "1w 1d");
        assert_eq!(reads("P1DT1M"), "1d 1m");
        assert!(reads("30m 1h").starts_with("refused"));
        assert!(reads("1.5d").starts_with("refused"));
    }

    #[test]
    fn a_refusal_says_what_to_write() {
        assert_eq!(reads("10000"), "refused: 10000 of what? write 10 s or 10000 ms");
        assert_eq!(reads("10"), "refused: 10 of what? write 10 s or 10 ms");
        assert_eq!(reads("90000"), "refused: 90000 of what? write 1m 30s or 90000 ms");
        assert_eq!(reads("2 months"), "refused: months and years have no fixed length; write 60 d");
        assert_eq!(reads("1y 1mo"), "refused: months and years have no fixed length; write 395 d");
        assert_eq!(reads("10 s ago"), "refused: lies in the past; write 10s");
        assert_eq!(reads("-10 s"), "refused: lies in the past; write 10s");
        assert_eq!(reads("0 s"), "refused: is no time at all; write for example 10 s");
        for text in ["", "soon", "1 0 s", "10 fortnights", "1:30:00", "5 us", "1.0001 ms", "-5", "inf", "NaN", "1e999"]
        {
            assert!(reads(text).starts_with("refused"), "{text}");
            assert!(reads(text).contains("write"), "{text}: {}", reads(text));
        }
        assert!(reads(&"1".repeat(1_000_000)).starts_with("refused"));
    }

    #[test]
    fn a_period_is_rounded_up_to_a_slot() {
        let up = |millis, slot| Length(millis).rounded_up(Length(slot)).0;
        assert_eq!([up(60_000, 60_000), up(60_001, 60_000), up(1, 60_000)], [60_000, 120_000, 60_000]);
        assert_eq!(up(i64::MAX, 60_000), i64::MAX);
    }

    #[test]
    fn no_text_upsets_it() {
        let pieces = [
            "1",
            "0",
            "90",
            "9223372036854775807",
            ".",
            ",",
            " ",
            "-",
            "+",
            ":",
            "P",
            "T",
            "y",
            "mo",
            "w",
            "d",
            "h",
            "m",
            "min",
            "s",
            "ms",
            "us",
            "ns",
            "ago",
            "hours",
            "H",
            "S",
            "M",
            "∞",
            "\0",
        ];
        let mut random = rand::rngs::StdRng::seed_from_u64(7);
        for _ in 0..100_000 {
            let text: String =
                (0..random.random_range(0..8)).map(|_| pieces[random.random_range(0..pieces.len())]).collect();
            if let Ok(length) = parse(&text) {
                assert!(length.0 > 0, "{text}");
                assert_eq!(parse(&length.to_string()), Ok(length), "{text}");
            }
        }
    }

    proptest! {
        #[test]
        fn the_canonical_form_reads_as_the_same(millis in 1_i64..100 * 366 * DAY) {
            prop_assert_eq!(parse(&Length(millis).to_string()), Ok(Length(millis)));
        }

        #[test]
        fn rounding_up_never_shortens(millis in 1_i64..366 * DAY, slot in 1_i64..HOUR) {
            let rounded = Length(millis).rounded_up(Length(slot)).0;
            prop_assert!(rounded >= millis && rounded < millis + slot && rounded % slot == 0);
        }
    }
}
