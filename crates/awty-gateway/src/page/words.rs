//! Writes times, durations and counts for people, and percent-encodes values for URLs.

use super::zone;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

pub fn moment(value: &Value) -> Option<DateTime<Utc>> {
    Some(DateTime::parse_from_rfc3339(value.as_str()?).ok()?.to_utc())
}

pub fn absolute(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let form = match (zone::day(at), zone::day(now)) {
        (Some(at), Some(now)) if at == now => "%H:%M:%S %Z",
        (Some(at), Some(now)) if at.year() == now.year() => "%-d %b %H:%M %Z",
        _ => "%-d %b %Y %H:%M %Z",
    };
    zone::written(at, form)
}

pub fn relative(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let distance = at.signed_duration_since(now);
    match distance.num_milliseconds() {
        -999..=999 => "now".into(),
        1_000.. => format!("in {}", about(distance)),
        _ => format!("{} ago", about(-distance)),
    }
}

/// A duration below an hour has only one unit, because the page shows the absolute time beside it.
fn about(distance: TimeDelta) -> String {
    let unit = if distance < TimeDelta::minutes(1) { 1_000 } else { 60_000 };
    millis(distance.num_milliseconds() / unit * unit)
}

pub fn millis(millis: i64) -> String {
    const UNITS: [(i64, &str); 4] = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s")];
    if millis < 0 {
        return format!("−{}", self::millis(millis.saturating_neg()));
    }
    if millis < 1_000 {
        return format!("{millis} ms");
    }
    if millis < 10_000 && millis % 1_000 >= 100 {
        return format!("{}.{} s", millis / 1_000, millis % 1_000 / 100);
    }
    let first = UNITS.iter().position(|(size, _)| millis >= *size).unwrap_or(UNITS.len() - 1);
    let (size, name) = UNITS[first];
    let rest = millis % size;
    match UNITS.get(first + 1).filter(|(next, _)| rest >= *next) {
        Some((next, below)) => format!("{} {name} {} {below}", millis / size, rest / next),
        None => format!("{} {name}", millis / size),
    }
}

pub fn seconds(value: &Value) -> Option<String> {
    #[allow(clippy::cast_possible_truncation)] // a cast of a float saturates
    value.as_f64().map(|seconds| millis((seconds * 1_000.0).round() as i64))
}

pub fn count(number: i64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

pub fn times(number: i64) -> String {
    if number == 1 { "once".into() } else { format!("{} times", grouped(number)) }
}

pub fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    if number < 0 { format!("−{text}") } else { text }
}

pub fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lengths_are_written_with_two_units() {
        for (given, text) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_000, "1 s"),
            (1_250, "1.2 s"),
            (1_099, "1 s"),
            (59_999, "59 s"),
            (60_000, "1 min"),
            (3_690_000, "1 h 1 min"),
            (90_000_000, "1 d 1 h"),
            (86_400_000, "1 d"),
            (-5_000, "−5 s"),
        ] {
            assert_eq!(millis(given), text);
        }
        assert_eq!(seconds(&json!(0.0125)).as_deref(), Some("13 ms"));
        assert!(millis(i64::MIN).starts_with('−'));
    }

    #[test]
    fn times_name_their_zone() {
        let now = moment(&json!("2026-11-26T10:00:00+00:00")).unwrap();
        let at = |text: &str| moment(&json!(text)).unwrap();
        assert_eq!(absolute(at("2026-11-26T09:00:01Z"), now), "09:00:01 UTC");
        assert_eq!(absolute(at("2026-11-25T09:00:01+01:00"), now), "25 Nov 08:00 UTC");
        assert_eq!(absolute(at("2025-11-25T09:00:01Z"), now), "25 Nov 2025 09:00 UTC");
        assert_eq!(relative(at("2026-11-26T10:12:59Z"), now), "in 12 min");
        assert_eq!(relative(at("2026-11-26T09:59:57.5Z"), now), "2 s ago");
        assert_eq!(relative(at("2026-11-26T06:56:00Z"), now), "3 h 4 min ago");
        assert_eq!(relative(now, now), "now");
        assert_eq!(moment(&json!("infinity")), None);
    }

    #[test]
    fn counts_have_their_noun_and_groups() {
        assert_eq!((count(1, "row", "rows"), count(0, "row", "rows")), ("1 row".into(), "0 rows".into()));
        assert_eq!(grouped(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(grouped(-999), "−999");
    }
}
