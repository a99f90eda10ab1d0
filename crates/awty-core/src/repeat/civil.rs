//! Converts Gregorian dates to day numbers and back, in every year that [`Time`] can hold.

use crate::Time;

pub(crate) const SECOND: i64 = 1_000_000;
pub(crate) const DAY_SECONDS: i64 = 86_400;
pub(crate) const DAY: i64 = DAY_SECONDS * SECOND;

/// Rounds down, because planned times are whole microseconds.
pub(crate) fn micros(t: Time) -> i64 {
    t.timestamp_micros()
}

pub(crate) fn moment(micros: i64) -> Option<Time> {
    Time::from_timestamp_micros(micros)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Date {
    pub(crate) year: i64,
    pub(crate) month: u32,
    pub(crate) day: u32,
}

impl Date {
    /// Day 0 is 1970-01-01. Years begin in March, so that a leap day comes last.
    pub(crate) fn of(number: i64) -> Self {
        let shifted = number + 719_468;
        let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * of_year + 2) / 153;
        let day = of_year - (153 * from_march + 2) / 5 + 1;
        let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
        Self { year: era * 400 + year_of_era + i64::from(month <= 2), month: month as u32, day: day as u32 }
    }

    pub(crate) fn number(self) -> i64 {
        let year = self.year - i64::from(self.month <= 2);
        let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let from_march = i64::from((self.month + 9) % 12);
        let of_year = (153 * from_march + 2) / 5 + i64::from(self.day) - 1;
        era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
    }

    pub(crate) fn plus_months(self, months: i64) -> Option<Self> {
        let months = (self.year * 12 + i64::from(self.month) - 1).checked_add(months)?;
        let (year, month) = (months.div_euclid(12), months.rem_euclid(12) as u32 + 1);
        Some(Self { year, month, day: self.day.min(month_length(year, month)) })
    }
}

pub(crate) fn month_length(year: i64, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Returns 0 for Sunday.
pub(crate) fn weekday(number: i64) -> u32 {
    (number + 4).rem_euclid(7) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::{Datelike, NaiveDate};

    #[test]
    fn dates_are_those_of_chrono() {
        let epoch = NaiveDate::from_ymd_opt(1970, 1, 1).unwrap();
        for number in (-800_000..800_000).step_by(97).chain(-800..800) {
            let known = epoch + chrono::TimeDelta::days(number);
            let date = Date::of(number);
            assert_eq!((date.year, date.month, date.day), (i64::from(known.year()), known.month(), known.day()));
            assert_eq!(date.number(), number);
            assert_eq!(weekday(number), known.weekday().num_days_from_sunday());
            assert_eq!(month_length(date.year, date.month), u32::from(known.num_days_in_month()));
        }
    }

    #[test]
    fn a_month_later_is_the_same_day_or_the_last() {
        let january = Date { year: 2027, month: 1, day: 31 };
        let after = |months| january.plus_months(months).map(|date| (date.year, date.month, date.day));
        assert_eq!(after(1), Some((2027, 2, 28)));
        assert_eq!(after(2), Some((2027, 3, 31)));
        assert_eq!(after(13), Some((2028, 2, 29)));
        assert_eq!(after(-2), Some((2026, 11, 30)));
        assert_eq!(after(i64::MAX), None);
    }

    #[test]
    fn the_ends_of_time_have_a_date() {
        for t in [Time::MIN_UTC, Time::MAX_UTC] {
            let number = t.timestamp().div_euclid(DAY_SECONDS);
            assert_eq!(Date::of(number).number(), number);
            assert_eq!(Date::of(number).year, i64::from(t.year()));
        }
        assert_eq!(moment(micros(Time::MAX_UTC) + 1), None);
        assert_eq!(moment(-1), Some(Time::UNIX_EPOCH - chrono::TimeDelta::microseconds(1)));
    }
}
