//! A simple model of a calendar, which lists for each minute of ten years whether the calendar is open. In the tests,
//! all opening hours and clock changes fall on whole minutes.

use chrono::{DateTime, Offset, TimeZone};
use chrono_tz::Tz;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

pub const MINUTE: i64 = 60_000_000;
const DAY_MINUTES: i64 = 1440;
const FAR: usize = 26 * 60;

/// The first and last weekday are both included. Monday is 0. Times are in minutes since midnight.
#[derive(Clone, Copy)]
pub struct Element {
    pub days: (i64, i64),
    pub from: i64,
    pub to: i64,
}

impl Element {
    fn has(&self, weekday: i64, minute: i64) -> bool {
        let (first, last) = self.days;
        let in_days =
            if first <= last { first <= weekday && weekday <= last } else { weekday >= first || weekday <= last };
        in_days && self.from <= minute && minute < self.to
    }
}

pub struct Minutes {
    first: i64,
    local: Vec<i64>,
    open: Vec<bool>,
    /// For each minute, the number of open minutes before it.
    before: Vec<i64>,
    days: BTreeMap<i64, Vec<Range<usize>>>,
}

impl Minutes {
    pub fn new(tz: Tz, first: i64, count: usize, elements: &[Element], closed: &HashSet<i64>) -> Self {
        let mut this =
            Self { first, local: wall_clock(tz, first, count), open: vec![], before: vec![], days: BTreeMap::new() };
        let (mut day, mut before, mut of_day) = (i64::MIN, 0, vec![]);
        let mut periods: Vec<(i64, Range<usize>)> = Vec::new();
        for (minute, &local) in this.local.iter().enumerate() {
            if local.div_euclid(DAY_MINUTES) != day {
                day = local.div_euclid(DAY_MINUTES);
                // 1970-01-01 was a Thursday.
                let has = |minute| elements.iter().any(|element| element.has((day + 3).rem_euclid(7), minute));
                of_day = (0..DAY_MINUTES).map(|minute| !closed.contains(&day) && has(minute)).collect();
            }
            let open = of_day[(local - day * DAY_MINUTES) as usize];
            this.open.push(open);
            this.before.push(before);
            before += i64::from(open);
            match periods.last_mut() {
                _ if !open => (),
                Some((of, last)) if *of == day && last.end == minute => last.end += 1,
                _ => periods.push((day, minute..minute + 1)),
            }
        }
        this.before.push(before);
        for (day, period) in periods {
            this.days.entry(day).or_default().push(period);
        }
        this
    }

    fn at(&self, minute: usize, rest: i64) -> i64 {
        (self.first + minute as i64) * MINUTE + rest
    }

    fn minute(&self, t: i64) -> (usize, i64) {
        ((t.div_euclid(MINUTE) - self.first) as usize, t.rem_euclid(MINUTE))
    }

    pub fn is_open(&self, t: i64) -> bool {
        self.open[self.minute(t).0]
    }

    fn passed(&self, t: i64) -> i64 {
        let (minute, rest) = self.minute(t);
        self.before[minute] * MINUTE + if self.open[minute] { rest } else { 0 }
    }

    pub fn open_time(&self, since: i64, at: i64) -> i64 {
        self.passed(at.max(since)) - self.passed(since)
    }

    pub fn next_opening(&self, t: i64) -> Option<i64> {
        if self.is_open(t) {
            return Some(t);
        }
        let minute = self.minute(t).0;
        let ahead = self.open[minute..].iter().position(|&open| open)?;
        Some(self.at(minute + ahead, 0))
    }

    pub fn after_time(&self, since: i64, time: i64) -> Option<i64> {
        let wanted = self.passed(since) + time;
        let minute = self.before.partition_point(|&before| before * MINUTE < wanted).checked_sub(1)?;
        (minute < self.open.len()).then(|| self.at(minute, wanted - self.before[minute] * MINUTE))
    }

    pub fn before_time(&self, due: i64, time: i64) -> Option<i64> {
        let wanted = self.passed(due) - time;
        let minute = self.before.partition_point(|&before| before * MINUTE <= wanted).checked_sub(1)?;
        Some(self.at(minute, wanted - self.before[minute] * MINUTE))
    }

    /// Returns the time `number` open days after the first open minute at or after `since`.
    pub fn after_days(&self, since: i64, number: usize) -> Option<i64> {
        let (minute, rest) = self.minute(self.next_opening(since)?);
        let (day, time) = (self.local[minute].div_euclid(DAY_MINUTES), self.local[minute].rem_euclid(DAY_MINUTES));
        let (&day, periods) = self.days.range(day + 1..).nth(number - 1)?;
        let wanted = self.first_shown(day * DAY_MINUTES + time, rest)?;
        let moment = |minute| self.at(minute, 0);
        let next = periods.iter().find(|period| moment(period.end) > wanted);
        Some(next.map_or(moment(periods.last()?.end), |period| moment(period.start).max(wanted)))
    }

    pub fn before_days(&self, due: i64, number: usize) -> Option<i64> {
        let (minute, rest) = self.minute(due);
        let (day, time) = (self.local[minute].div_euclid(DAY_MINUTES), self.local[minute].rem_euclid(DAY_MINUTES));
        let (&day, periods) = self.days.range(..day).rev().nth(number - 1)?;
        let wanted = self.first_shown(day * DAY_MINUTES + time, rest)?;
        let moment = |minute| self.at(minute, 0);
        let last = periods.iter().rev().find(|period| moment(period.start) <= wanted);
        Some(last.map_or(moment(periods.first()?.start), |period| moment(period.end).min(wanted)))
    }

    fn first_shown(&self, local: i64, rest: i64) -> Option<i64> {
        let near = ((local - self.first) as usize).saturating_sub(FAR);
        let minute = near + self.local.get(near..)?.iter().position(|&shown| shown >= local)?;
        Some(self.at(minute, if self.local[minute] == local { rest } else { 0 }))
    }

    pub fn is_in_fold(&self, t: i64) -> bool {
        let minute = self.minute(t).0;
        let local = self.local[minute];
        let around = minute.saturating_sub(FAR)..(minute + FAR).min(self.local.len());
        self.local[around].iter().filter(|&&shown| shown == local).count() > 1
    }

    pub fn changes(&self) -> Vec<i64> {
        let changed = |&minute: &usize| self.local[minute] != self.local[minute - 1] + 1;
        (1..self.local.len()).filter(changed).map(|minute| self.at(minute, 0)).collect()
    }
}

fn wall_clock(tz: Tz, first: i64, count: usize) -> Vec<i64> {
    let offset = |minute: i64| {
        let t = DateTime::from_timestamp(minute * 60, 0).map(|t| t.naive_utc()).unwrap();
        i64::from(tz.offset_from_utc_datetime(&t).fix().local_minus_utc()) / 60
    };
    let mut local = Vec::with_capacity(count);
    for hour in (first..first + count as i64).step_by(60) {
        let same = offset(hour) == offset(hour + 60);
        let shift = offset(hour);
        local.extend((hour..hour + 60).map(|minute| minute + if same { shift } else { offset(minute) }));
    }
    local
}
