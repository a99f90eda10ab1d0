//! A simple model of cron expressions, which looks at each minute.

use awty_core::Time;
use chrono::{Datelike, LocalResult, NaiveDate, NaiveDateTime, Offset, TimeDelta, TimeZone, Timelike};
use chrono_tz::Tz;

pub struct Vixie {
    minutes: Vec<bool>,
    hours: Vec<bool>,
    days: Vec<bool>,
    months: Vec<bool>,
    weekdays: Vec<bool>,
    last_day: bool,
    star_day: bool,
    star_weekday: bool,
    pub fixed: bool,
}

impl Vixie {
    pub fn new(text: &str) -> Self {
        let fields: Vec<&str> = text.split(' ').collect();
        let mut weekdays = bits(fields[4], 0, 7);
        weekdays[0] |= weekdays[7];
        weekdays[7] = weekdays[0];
        Self {
            minutes: bits(fields[0], 0, 59),
            hours: bits(fields[1], 0, 23),
            days: bits(&fields[2].replace('L', "0"), 0, 31),
            months: bits(fields[3], 1, 12),
            weekdays,
            last_day: fields[2].split(',').any(|item| item == "L"),
            star_day: fields[2].starts_with('*'),
            star_weekday: fields[4].starts_with('*'),
            fixed: !fields[0].starts_with('*') && !fields[1].starts_with('*'),
        }
    }

    pub fn matches(&self, t: NaiveDateTime) -> bool {
        self.matches_day(t.date()) && self.hours[t.hour() as usize] && self.minutes[t.minute() as usize]
    }

    pub fn matches_day(&self, date: NaiveDate) -> bool {
        let is_last = date.succ_opt().is_some_and(|next| next.day() == 1);
        let by_day = self.days[date.day() as usize] || self.last_day && is_last;
        let by_weekday = self.weekdays[date.weekday().num_days_from_sunday() as usize];
        let days = if self.star_day || self.star_weekday { by_day && by_weekday } else { by_day || by_weekday };
        days && self.months[date.month() as usize]
    }
}

/// As in Vixie cron, a step counts from the low end of its range.
fn bits(list: &str, low: usize, high: usize) -> Vec<bool> {
    let mut bits = vec![false; high + 1];
    let low = if high == 31 { 1 } else { low };
    for item in list.split(',') {
        let (range, step) = item.split_once('/').unwrap_or((item, "1"));
        let (from, to) = match (range, range.split_once('-')) {
            ("*", _) => (low, high),
            (_, Some((from, to))) => (from.parse().unwrap(), to.parse().unwrap()),
            (value, None) => (value.parse().unwrap(), value.parse().unwrap()),
        };
        let mut value: usize = from;
        while value <= to {
            bits[value] = true;
            value += step.parse::<usize>().unwrap();
        }
    }
    bits
}

pub fn first_shown(tz: Tz, local: NaiveDateTime) -> Time {
    match tz.from_local_datetime(&local) {
        LocalResult::Single(t) | LocalResult::Ambiguous(t, _) => t.to_utc(),
        LocalResult::None => {
            let shows = |t: Time| t.naive_utc() + tz.offset_from_utc_datetime(&t.naive_utc()).fix() >= local;
            let mut t = local.and_utc() - TimeDelta::hours(16);
            while !shows(t) {
                t += TimeDelta::minutes(1);
            }
            while shows(t - TimeDelta::seconds(1)) {
                t -= TimeDelta::seconds(1);
            }
            t
        }
    }
}

pub fn shown(tz: Tz, local: NaiveDateTime) -> Vec<Time> {
    match tz.from_local_datetime(&local) {
        LocalResult::Single(t) => vec![t.to_utc()],
        LocalResult::Ambiguous(first, second) => vec![first.to_utc(), second.to_utc()],
        LocalResult::None => vec![],
    }
}

pub fn moments(vixie: &Vixie, tz: Tz, from: NaiveDate, days: u64) -> Vec<Time> {
    let mut moments = Vec::new();
    for minute in 0..days as i64 * 1440 {
        let local = from.and_time(chrono::NaiveTime::MIN) + TimeDelta::minutes(minute);
        if vixie.matches(local) {
            if vixie.fixed { moments.push(first_shown(tz, local)) } else { moments.extend(shown(tz, local)) }
        }
    }
    moments.sort();
    moments.dedup();
    moments
}
