//! Invariant: the delay before a retry is at most a fifth longer than `max_delay`. An endpoint may ask for a longer
//! delay, which is at most an hour.

use super::definition::Retries;
use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};

const LONGEST_ASKED: TimeDelta = TimeDelta::hours(1);

pub fn next(
    retries: &Retries,
    attempt: u32,
    now: DateTime<Utc>,
    asked: Option<DateTime<Utc>>,
    spread: f64,
) -> Option<DateTime<Utc>> {
    if attempt >= retries.max_attempts {
        return None;
    }
    let doubled = 2_i64
        .checked_pow(attempt.saturating_sub(1))
        .and_then(|factor| retries.first_delay.as_millis().checked_mul(factor));
    let wait = doubled.unwrap_or(i64::MAX).min(retries.max_delay.as_millis());
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)] // the spread may be inexact
    let spread = (wait as f64 * 0.2 * spread.clamp(-1.0, 1.0)) as i64;
    let at = now.checked_add_signed(TimeDelta::try_milliseconds(wait.saturating_add(spread))?)?;
    Some(asked.map_or(at, |asked| at.max(asked)))
}

pub fn asked(header: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let header = header.trim();
    let at = if !header.is_empty() && header.bytes().all(|byte| byte.is_ascii_digit()) {
        let seconds = header.parse::<i64>().unwrap_or(i64::MAX).min(LONGEST_ASKED.num_seconds());
        now + TimeDelta::seconds(seconds)
    } else {
        date(header)?
    };
    Some(at.clamp(now, now + LONGEST_ASKED))
}

/// Reads the current HTTP date format and the two obsolete ones (RFC 9110, 5.6.7).
fn date(text: &str) -> Option<DateTime<Utc>> {
    let today = DateTime::parse_from_rfc2822(text).map(|date| date.to_utc());
    let before = |form| NaiveDateTime::parse_from_str(text, form).map(|date| date.and_utc());
    today.or_else(|_| before("%A, %d-%b-%y %H:%M:%S GMT")).or_else(|_| before("%a %b %e %H:%M:%S %Y")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::duration::Length;
    use proptest::prelude::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000 + second, 0).unwrap()
    }

    fn wait(attempt: u32, spread: f64) -> Option<i64> {
        next(&Retries::default(), attempt, at(0), None, spread).map(|then| (then - at(0)).num_milliseconds())
    }

    #[test]
    fn the_wait_doubles_up_to_its_cap_and_spreads_by_a_fifth() {
        assert_eq!([wait(1, 0.0), wait(2, 0.0), wait(3, 0.0)], [Some(10_000), Some(20_000), None]);
        assert_eq!([wait(1, -1.0), wait(1, 1.0), wait(1, 9.0)], [Some(8_000), Some(12_000), Some(12_000)]);
        let many = Retries { max_attempts: 1_000, ..Retries::default() };
        assert_eq!(next(&many, 900, at(0), None, 0.0), Some(at(600)));
    }

    #[test]
    fn retry_after_is_the_earliest_next_attempt_up_to_an_hour() {
        assert_eq!(asked("120", at(0)), Some(at(120)));
        assert_eq!(asked(&at(90).format("%a, %d %b %Y %H:%M:%S GMT").to_string(), at(0)), Some(at(90)));
        for before in ["%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"] {
            assert_eq!(asked(&at(90).format(before).to_string(), at(0)), Some(at(90)), "{before}");
        }
        assert_eq!(asked("99999999999999999999999", at(0)), Some(at(3_600)));
        assert_eq!(asked(&at(-90).to_rfc2822(), at(0)), Some(at(0)));
        for text in ["", "soon", "-5", "1.5", "Mon, 99 Foo"] {
            assert_eq!(asked(text, at(0)), None, "{text}");
        }
        assert_eq!(next(&Retries::default(), 1, at(0), Some(at(120)), 0.0), Some(at(120)));
        assert_eq!(next(&Retries::default(), 1, at(0), Some(at(1)), 0.0), Some(at(10)));
        assert_eq!(next(&Retries::default(), 3, at(0), Some(at(120)), 0.0), None);
    }

    proptest! {
        #[test]
        fn a_wait_stays_within_its_bounds(attempt in 0_u32..2_000, first in 1_i64..10_000_000_000, most in 1_i64..100_000_000_000, spread in -1.0..1.0) {
            let retries = Retries { max_attempts: 1_000, first_delay: Length::millis(first), max_delay: Length::millis(most) };
            if let Some(then) = next(&retries, attempt, at(0), None, spread) {
                let wait = (then - at(0)).num_milliseconds();
                prop_assert!(attempt < 1_000 && wait >= 0 && wait <= most + most / 5);
            }
        }

        #[test]
        fn no_retry_after_upsets_it(text in "\\PC{0,40}") {
            if let Some(then) = asked(&text, at(0)) {
                prop_assert!(then >= at(0) && then <= at(3_600));
            }
        }
    }
}
