//! Cron expressions, and the times that they match in a time zone.
//!
//! Invariant: days match as in Vixie cron. A time is *fixed* unless its minute field or hour field begins with `*`.
//! When clocks change, a fixed time comes exactly once. Any other time comes each time the clocks show it.

mod fault;
mod field;
#[cfg(test)]
mod fuzz;
mod parse;
mod search;
#[cfg(test)]
mod tests;

pub use fault::{MOST_SHOWN, Unreadable};

use super::civil::SECOND;
use super::local_time::{Zone, first_shown, shown_until, span_at};
use chrono::TimeDelta;
use search::SEARCHED;

#[derive(Clone, Debug)]
pub struct Cron {
    text: String,
    seconds: u64,
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    /// Bit 0 is Sunday.
    weekdays: u64,
    /// True if one of the two day fields begins with `*`. A day must then match both fields; otherwise one field is
    /// enough.
    both_days: bool,
    fixed: bool,
    needs_zone: bool,
}

impl Cron {
    pub fn new(text: &str) -> Result<Self, Unreadable> {
        let fields = parse::fields(text).map_err(|fault| Unreadable::new(text, fault))?;
        let [second, minute, hour, day, month, weekday] = fields;
        let whole = |values: parse::Values, field: &field::Field| values.star && values.bits == field.all();
        Ok(Self {
            text: text.to_owned(),
            seconds: second.bits,
            minutes: minute.bits,
            hours: hour.bits,
            days: day.bits,
            months: month.bits,
            weekdays: weekday.bits,
            both_days: day.star || weekday.star,
            fixed: !minute.star && !hour.star,
            needs_zone: !(whole(hour, &field::HOUR)
                && whole(day, &field::DAY)
                && whole(month, &field::MONTH)
                && whole(weekday, &field::WEEKDAY)),
        })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn needs_zone(&self) -> bool {
        self.needs_zone
    }

    /// Takes and returns microseconds.
    pub(super) fn next(&self, zone: &impl Zone, after: i64) -> Option<i64> {
        if self.fixed {
            let shown = shown_until(zone, after).div_euclid(SECOND);
            let local = self.next_local(shown, shown.saturating_add(SEARCHED))?;
            return Some(first_shown(zone, local.checked_mul(SECOND)?));
        }
        self.next_shown(zone, after.div_euclid(SECOND))?.checked_mul(SECOND)
    }

    fn next_shown(&self, zone: &impl Zone, mut after: i64) -> Option<i64> {
        let end = after.saturating_add(SEARCHED);
        let mut span = span_at(zone, after.saturating_add(1).saturating_mul(SECOND));
        loop {
            let offset = i64::from(span.offset);
            let until = span.until.div_euclid(SECOND).min(end);
            if let Some(local) = self.next_local(after.saturating_add(offset), until.saturating_add(offset)) {
                return Some(local - offset);
            }
            if until == end || span.until == i64::MAX {
                return None;
            }
            after = until - 1;
            span = span_at(zone, span.until);
        }
    }

    pub(super) fn closest(&self) -> TimeDelta {
        let (seconds, minutes, hours) = (self.seconds, self.minutes, self.hours);
        let within = |bits: u64| i64::from(bits.ilog2() - bits.trailing_zeros());
        let in_minute = within(seconds);
        let in_hour = within(minutes) * 60 + in_minute;
        let day = super::civil::DAY_SECONDS;
        let mut closest = apart(seconds).unwrap_or(day);
        closest = closest.min(apart(minutes).map_or(day, |minutes| minutes * 60 - in_minute));
        closest = closest.min(apart(hours).map_or(day, |hours| hours * 3600 - in_hour));
        let over_midnight = day - i64::from(self.last_time() - self.first_time());
        if over_midnight < closest && self.has_neighbouring_days() {
            closest = over_midnight;
        }
        TimeDelta::seconds(closest)
    }
}

impl PartialEq for Cron {
    /// Equal cron expressions match the same times in every zone.
    fn eq(&self, other: &Self) -> bool {
        let fields = |cron: &Self| {
            let days = (cron.days, cron.months, cron.weekdays, cron.both_days);
            (cron.seconds, cron.minutes, cron.hours, days, cron.fixed)
        };
        fields(self) == fields(other)
    }
}

impl Eq for Cron {}

fn apart(bits: u64) -> Option<i64> {
    (1..64).find(|distance| bits & bits >> distance != 0)
}
