//! Finds the next local time that a cron expression matches, within a bounded number of months.

use super::Cron;
use super::parse::LAST_DAY;
use crate::repeat::civil::{DAY_SECONDS, Date, month_length, weekday};
use crate::repeat::steps::step;

/// A search looks this many seconds (41 years) ahead, because a leap day falls on the same weekday again after at most
/// 40 years.
pub(super) const SEARCHED: i64 = 41 * 366 * DAY_SECONDS;

/// Multiplying the seven bits of a weekday set by this number copies the set six times, because a month touches at most
/// six weeks.
const WEEKS: u64 = 1 | 1 << 7 | 1 << 14 | 1 << 21 | 1 << 28 | 1 << 35;

impl Cron {
    pub(super) fn next_local(&self, after: i64, before: i64) -> Option<i64> {
        let from = after.checked_add(1)?;
        let (number, second) = (from.div_euclid(DAY_SECONDS), from.rem_euclid(DAY_SECONDS) as u32);
        let Date { mut year, mut month, day } = Date::of(number);
        let mut days = self.days_of(year, month) & (!0 << day);
        if days & 1 << day != 0 {
            if let Some(time) = self.time_from(second) {
                return at(number, time, before);
            }
            days &= !(1 << day);
        }
        while days == 0 {
            step();
            (year, month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
            if (Date { year, month, day: 1 }).number() > before.div_euclid(DAY_SECONDS) {
                return None;
            }
            days = self.days_of(year, month);
        }
        let number = Date { year, month, day: days.trailing_zeros() }.number();
        at(number, self.first_time(), before)
    }

    /// In the result, bit 1 is the first day of the month.
    fn days_of(&self, year: i64, month: u32) -> u64 {
        if self.months & 1 << month == 0 {
            return 0;
        }
        let length = month_length(year, month);
        let first = weekday(Date { year, month, day: 1 }.number());
        let last_day = if self.days & LAST_DAY == 0 { 0 } else { 1 << length };
        let by_number = self.days & !LAST_DAY | last_day;
        let by_weekday = ((self.weekdays * WEEKS) >> first) << 1;
        let days = if self.both_days { by_number & by_weekday } else { by_number | by_weekday };
        days & ((1 << (length + 1)) - 2)
    }

    pub(super) fn first_time(&self) -> u32 {
        let Self { hours, minutes, seconds, .. } = self;
        (hours.trailing_zeros() * 60 + minutes.trailing_zeros()) * 60 + seconds.trailing_zeros()
    }

    pub(super) fn last_time(&self) -> u32 {
        (self.hours.ilog2() * 60 + self.minutes.ilog2()) * 60 + self.seconds.ilog2()
    }

    fn time_from(&self, second: u32) -> Option<u32> {
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let later = |bits: u64, from: u32| Some((bits & !0 << from).trailing_zeros()).filter(|&value| value < 64);
        let first = |bits: u64| bits.trailing_zeros();
        if self.hours & 1 << hour != 0 {
            if self.minutes & 1 << minute != 0
                && let Some(second) = later(self.seconds, second)
            {
                return Some((hour * 60 + minute) * 60 + second);
            }
            if let Some(minute) = later(self.minutes, minute + 1) {
                return Some((hour * 60 + minute) * 60 + first(self.seconds));
            }
        }
        let hour = later(self.hours, hour + 1)?;
        Some((hour * 60 + first(self.minutes)) * 60 + first(self.seconds))
    }

    /// Looks at 28 years, because weekdays and leap years then repeat.
    pub(super) fn has_neighbouring_days(&self) -> bool {
        let mut last_of_month = false;
        (0..28 * 12).any(|number| {
            step();
            let (year, month) = (2000 + number / 12, (number % 12 + 1) as u32);
            let days = self.days_of(year, month);
            let neighbours = days & days << 1 != 0 || last_of_month && days & 2 != 0;
            last_of_month = days & 1 << month_length(year, month) != 0;
            neighbours
        })
    }
}

fn at(day: i64, time: u32, before: i64) -> Option<i64> {
    Some(day * DAY_SECONDS + i64::from(time)).filter(|&local| local < before)
}
