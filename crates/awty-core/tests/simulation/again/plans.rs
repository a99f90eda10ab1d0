//! Lists the tested plans and their planned times. The test computes the times itself, without the code under test.

use awty_core::repeat::jitter::{self, Jitter};
use awty_core::repeat::{Changes, Every, Plan, Repetition, Rhythm};
use awty_core::{Time, Width};
use chrono::TimeDelta;
use std::sync::LazyLock;

pub const FIRST: Time = Time::from_timestamp(21_000 * 86_400, 0).unwrap();
pub const DAYS: i64 = 30;

/// Clock changes of the simulated zone: hour and new offset in minutes. The changes repeat every 48 hours.
const CHANGES: [(i64, i32); 8] = [(0, 0), (5, 60), (11, 0), (17, -30), (26, 60), (33, 120), (37, 60), (44, 75)];

pub struct Shape {
    plan: Plan<&'static Changes>,
    moments: Vec<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    pub shape: usize,
    pub jitter: Jitter,
    pub catch_up: TimeDelta,
}

thread_local! {
    static SHAPES: &'static [Shape] = Box::leak(all().into());
}

pub fn shapes() -> &'static [Shape] {
    SHAPES.with(|shapes| *shapes)
}

fn all() -> Vec<Shape> {
    let hour = |hours| FIRST + TimeDelta::hours(hours);
    let seconds = |seconds: i64| Every::Clock(seconds * 1_000_000);
    vec![
        every(seconds(45), FIRST + TimeDelta::seconds(7), None),
        every(seconds(600), FIRST, Some(hour(24 * 6))),
        every(seconds(5400), FIRST + TimeDelta::microseconds(1), None),
        cron("*/15 * * * *", |minute| minute % 15 == 0, false),
        cron("*/20 2,3 * * *", |minute| minute % 20 == 0 && (2..4).contains(&(minute / 60)), false),
        cron("30 1,2,3 * * *", |minute| minute % 60 == 30 && (1..4).contains(&(minute / 60)), true),
        cron("0,1,5 0-23 * * *", |minute| [0, 1, 5].contains(&(minute % 60)), true),
        days(),
    ]
}

static ZONE: LazyLock<Changes> = LazyLock::new(|| {
    let days = (0..DAYS / 2).flat_map(|day| CHANGES.map(|(hours, minutes)| (48 * day + hours, minutes * 60)));
    Changes::new(0, days.map(|(hours, seconds)| (FIRST + TimeDelta::hours(hours), seconds)).collect())
});

fn ahead(minute: i64) -> i64 {
    let passed = CHANGES.iter().rev().find(|&&(hours, _)| hours <= minute / 60 % 48);
    passed.map_or(0, |&(_, minutes)| i64::from(minutes))
}

fn every(every: Every, starts: Time, ends: Option<Time>) -> Shape {
    let Every::Clock(length) = every else { panic!("clock time") };
    let last = ends.unwrap_or(FIRST + TimeDelta::days(DAYS));
    let moments = std::iter::successors(Some(starts), |&t| Some(t + TimeDelta::microseconds(length)));
    let moments = moments.take_while(|&t| t <= last).collect();
    Shape { plan: Plan::new(Rhythm::Every(every), &*ZONE, Some(starts), ends), moments }
}

fn cron(text: &str, matches: fn(i64) -> bool, fixed: bool) -> Shape {
    let rhythm = Rhythm::new(None, Some(text)).unwrap_or_else(|error| panic!("{error}"));
    Shape { plan: Plan::new(rhythm, &*ZONE, Some(FIRST), None), moments: minutes(matches, fixed) }
}

fn days() -> Shape {
    let every = Every::Calendar { months: 0, days: 1 };
    Shape {
        plan: Plan::new(Rhythm::Every(every), &*ZONE, Some(FIRST), None),
        moments: minutes(|minute| minute == 0, true),
    }
}

fn minutes(matches: fn(i64) -> bool, fixed: bool) -> Vec<Time> {
    let mut latest = -1;
    let mut moments = Vec::new();
    for minute in 0..DAYS * 1440 {
        let local = minute + ahead(minute);
        let new = if fixed { latest + 1..local + 1 } else { local..local + 1 };
        if new.into_iter().any(|local| matches(local.rem_euclid(1440))) {
            moments.push(FIRST + TimeDelta::minutes(minute));
        }
        latest = latest.max(local);
    }
    moments
}

impl Terms {
    pub fn repetition(&self, width: Width) -> Repetition<&'static Changes> {
        let plan = shapes()[self.shape].plan.clone();
        Repetition { plan, jitter: self.jitter, width, catch_up: self.catch_up }
    }

    fn moments(&self) -> &'static [Time] {
        &shapes()[self.shape].moments
    }

    fn delayed(&self, index: usize) -> Time {
        let (moment, Jitter { hash, at_most }) = (self.moments()[index], self.jitter);
        let distance = self.moments().get(index + 1).map_or(at_most, |&next| next - moment);
        moment + jitter::delay(hash, at_most.min(distance))
    }

    pub fn open(&self, gone: Time, now: Time, width: Width) -> impl Iterator<Item = (Time, Time)> {
        let begin = self.moments().partition_point(|&moment| moment <= gone);
        let recent = now.checked_sub_signed(self.jitter.at_most + TimeDelta::days(2)).unwrap_or(Time::MIN_UTC);
        let begin = begin.max(self.moments().partition_point(|&moment| moment <= recent));
        let slots = (begin..self.moments().len())
            .map(move |index| (self.moments()[index], width.round_up(self.delayed(index))));
        slots.skip_while(move |&(_, slot)| slot <= now)
    }

    pub fn last_delayed_by(&self, t: Time) -> Time {
        let begun = self.moments().partition_point(|&moment| moment <= t);
        let index = (0..begun).rev().find(|&index| self.delayed(index) <= t);
        index.map_or(Time::MIN_UTC, |index| self.moments()[index])
    }

    pub fn last_before(&self, moment: Time) -> Time {
        let index = self.moments().partition_point(|&before| before < moment);
        index.checked_sub(1).map_or(Time::MIN_UTC, |index| self.moments()[index])
    }
}
