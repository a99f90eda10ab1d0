//! `every` repeats a check at a fixed distance from an anchor, in clock time or in calendar time.
//!
//! Invariant: each planned time is computed from the anchor. So a plan for the 31st returns to the 31st after a short
//! month.

use super::civil::{DAY, Date};
use super::steps::step;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Every {
    /// Length in microseconds.
    Clock(i64),
    /// All planned times have the same time of day on the wall clock.
    Calendar { months: u32, days: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EveryError {
    NotPositive,
    Mixed,
}

impl fmt::Display for EveryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotPositive => r#"argument "every" must be more than 0"#,
            Self::Mixed => r#"argument "every" must be either months and days or hours and smaller"#,
        })
    }
}

impl std::error::Error for EveryError {}

impl Every {
    pub fn new(months: i32, days: i32, micros: i64) -> Result<Self, EveryError> {
        match (u32::try_from(months), u32::try_from(days), micros) {
            (Ok(0), Ok(0), 1..) => Ok(Self::Clock(micros)),
            (Ok(months), Ok(days), 0) if months > 0 || days > 0 => Ok(Self::Calendar { months, days }),
            (Ok(_), Ok(_), 1..) => Err(EveryError::Mixed),
            _ => Err(EveryError::NotPositive),
        }
    }

    pub fn needs_zone(&self) -> bool {
        matches!(self, Self::Calendar { .. })
    }

    /// Returns the time from which a plan without a start counts its periods: the start of 1970 or, for whole weeks,
    /// the first Monday of 1970.
    pub(super) fn anchor(&self) -> i64 {
        match self {
            Self::Calendar { months: 0, days } if days % 7 == 0 => 4 * DAY,
            _ => 0,
        }
    }

    /// Counts whole periods from `anchor`, and returns the first time after `after`. All times are local if the period
    /// is in days or months.
    pub(super) fn next(&self, anchor: i64, after: i64) -> Option<i64> {
        match *self {
            Self::Clock(length) => step_after(anchor, length, after),
            Self::Calendar { months: 0, days } => step_after(anchor, i64::from(days) * DAY, after),
            Self::Calendar { months, days } => {
                // A month averages 30.436875 days. The length of several months differs from this average by less than
                // six days, so the search begins six days earlier.
                let length = i128::from(months) * 2_629_746_000_000 + i128::from(days) * i128::from(DAY);
                let ahead = i128::from(after) - i128::from(anchor) - 6 * i128::from(DAY);
                let mut number = i64::try_from(ahead.div_euclid(length)).ok()?;
                loop {
                    step();
                    let time = calendar_time(anchor, number, months, days)?;
                    if time > after {
                        return Some(time);
                    }
                    number += 1;
                }
            }
        }
    }
}

impl fmt::Display for Every {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Calendar { months, days } = *self else {
            let Self::Clock(micros) = *self else { return Ok(()) };
            let (seconds, rest) = (micros / 1_000_000, micros % 1_000_000);
            write!(f, "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)?;
            return if rest == 0 { Ok(()) } else { write!(f, "{}", format!(".{rest:06}").trim_end_matches('0')) };
        };
        let mut space = "";
        for (count, unit) in [(months / 12, "year"), (months % 12, "mon"), (days, "day")] {
            if count > 0 {
                write!(f, "{space}{count} {unit}{}", if count == 1 { "" } else { "s" })?;
                space = " ";
            }
        }
        Ok(())
    }
}

fn step_after(anchor: i64, length: i64, after: i64) -> Option<i64> {
    let (anchor, length, after) = (i128::from(anchor), i128::from(length), i128::from(after));
    let number = (after - anchor).div_euclid(length) + 1;
    i64::try_from(anchor + number * length).ok()
}

fn calendar_time(anchor: i64, number: i64, months: u32, days: u32) -> Option<i64> {
    let (day, time) = (anchor.div_euclid(DAY), anchor.rem_euclid(DAY));
    let date = Date::of(day).plus_months(number.checked_mul(i64::from(months))?)?;
    let day = date.number().checked_add(number.checked_mul(i64::from(days))?)?;
    day.checked_mul(DAY)?.checked_add(time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repeat::civil::{micros, moment};
    use crate::testing::at;

    fn months(months: i32) -> Every {
        Every::new(months, 0, 0).unwrap()
    }

    #[test]
    fn it_is_clock_time_or_calendar_time_and_never_both() {
        assert_eq!(Every::new(0, 0, 1), Ok(Every::Clock(1)));
        assert_eq!(Every::new(14, 3, 0), Ok(Every::Calendar { months: 14, days: 3 }));
        for (months, days, micros) in [(1, 0, 1), (0, 1, 1), (1, 1, 1)] {
            assert_eq!(Every::new(months, days, micros), Err(EveryError::Mixed));
        }
        for (months, days, micros) in [(0, 0, 0), (0, 0, -1), (1, -1, 0), (-1, 1, 0), (0, 1, -1), (i32::MIN, 0, 0)] {
            assert_eq!(Every::new(months, days, micros), Err(EveryError::NotPositive));
        }
        assert!(Every::new(0, 1, 0).unwrap().needs_zone());
        assert!(!Every::new(0, 0, 1).unwrap().needs_zone());
    }

    #[test]
    fn the_last_day_of_a_short_month_shortens_no_other() {
        let anchor = micros(at("2027-01-31T09:00:00Z"));
        let mut after = anchor;
        let mut days = Vec::new();
        for _ in 0..4 {
            after = months(1).next(anchor, after).unwrap();
            days.push(moment(after).unwrap().format("%m-%d %H").to_string());
        }
        assert_eq!(days, ["02-28 09", "03-31 09", "04-30 09", "05-31 09"]);
    }

    #[test]
    fn weeks_begin_on_a_monday() {
        let first = |days| moment(Every::new(0, days, 0).unwrap().anchor()).unwrap();
        assert_eq!(first(7), at("1970-01-05T00:00:00Z"));
        assert_eq!(first(14), at("1970-01-05T00:00:00Z"));
        assert_eq!(first(1), at("1970-01-01T00:00:00Z"));
        assert_eq!(months(1).anchor(), 0);
        assert_eq!(Every::new(1, 7, 0).unwrap().anchor(), 0);
        assert_eq!(Every::Clock(7 * DAY).anchor(), 0);
    }

    #[test]
    fn what_is_beyond_the_end_of_time_does_not_come() {
        assert_eq!(months(i32::MAX).next(0, 0), None);
        assert_eq!(Every::new(i32::MAX, i32::MAX, 0).unwrap().next(0, i64::MAX - 1), None);
        assert_eq!(Every::Clock(i64::MAX).next(1, 1), None);
        assert_eq!(Every::Clock(1).next(i64::MIN, i64::MAX), None);
        assert_eq!(Every::Clock(i64::MAX).next(0, -1), Some(0));
        assert_eq!(Every::Clock(2).next(i64::MAX, i64::MIN), Some(i64::MIN + 1));
    }

    #[test]
    fn it_is_shown_as_postgresql_writes_it() {
        let shown = |months, days, micros| Every::new(months, days, micros).unwrap().to_string();
        assert_eq!(shown(0, 1, 0), "1 day");
        assert_eq!(shown(26, 14, 0), "2 years 2 mons 14 days");
        assert_eq!(shown(1, 0, 0), "1 mon");
        assert_eq!(shown(0, 0, 900_000_000), "00:15:00");
        assert_eq!(shown(0, 0, 86_400_500_000), "24:00:00.5");
    }
}
