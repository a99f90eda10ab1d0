#![allow(clippy::unwrap_used)] // a panic is how a test fails

mod world;
mod zones;

use awty_core::calendar::{Calendar, Hours};
use awty_core::repeat::jitter::Jitter;
use awty_core::repeat::{Change, Changes, Occurrence, Plan, RepeatError, Repetition, Rhythm};
use awty_core::{Time, Width};
use chrono::TimeDelta;
use std::rc::Rc;
use world::{Dice, ZONES};
use zones::{at, zone};

fn cron(text: &str) -> Rhythm {
    Rhythm::new(None, Some(text)).unwrap()
}

fn every(parts: (i32, i32, i64)) -> Rhythm {
    Rhythm::new(Some(parts), None).unwrap()
}

#[test]
fn in_every_zone_the_open_moments_of_the_plan_stay() {
    let mut dice = Dice::new(37);
    let mut found = 0;
    for name in ZONES {
        let hours =
            dice.pick(&["mon-fri 09:00-17:00", "sat-sun 01:30-03:00", "wed 00:00-24:00", "mon-sun 02:00-02:30"]);
        let hours = Hours::new([hours, "tue 22:00-24:00"]).unwrap();
        let closed = (0..200).map(|_| 3650 + dice.below(20_000)).collect();
        let calendar = Rc::new(Calendar::new(hours, closed, zone(name)));
        let rhythm = match dice.below(4) {
            0 => every((0, 0, 3_600_000_000 * (1 + dice.below(30)))),
            1 => every((0, 1 + dice.below(3) as i32, 0)),
            2 => cron("*/20 * * * *"),
            _ => cron("30 2,9 * * *"),
        };
        let starts = (dice.below(2) == 0).then(|| at("1980-01-01T00:00:00Z") + TimeDelta::hours(dice.below(300_000)));
        let all = Plan::new(rhythm.clone(), zone(name), starts, None);
        let open = Plan::new(rhythm, zone(name), starts, None).within(Some(Rc::clone(&calendar)));
        let from = at("1985-01-01T00:00:00Z") + TimeDelta::minutes(dice.below(20_000_000));
        let first = all.next(from).unwrap();
        let until = first + TimeDelta::days(60);
        let expected: Vec<Time> =
            all.moments(from).take_while(|&t| t < until).filter(|&t| calendar.is_open(t)).collect();
        let moments: Vec<Time> = open.moments(from).take_while(|&t| t < until).collect();
        assert_eq!(moments, expected, "{} in {name} from {from}", all.rhythm());
        assert!(expected.iter().all(|&t| open.contains(t)));
        assert_eq!(open.last(from, until - TimeDelta::seconds(1)), expected.last().copied());
        found += moments.len();
    }
    assert!(found > 3_000, "only {found} moments were compared");
}

fn office() -> Option<Rc<Calendar<Changes>>> {
    calendar(&["mon-fri 09:00-17:00"])
}

fn calendar(hours: &[&str]) -> Option<Rc<Calendar<Changes>>> {
    let hours = Hours::new(hours.iter().copied()).unwrap();
    Some(Rc::new(Calendar::new(hours, vec![], Changes::new(0, vec![]))))
}

fn plan(rhythm: Rhythm, ends: Option<Time>) -> Plan<Changes> {
    Plan::new(rhythm, Changes::new(0, vec![]), None, ends)
}

#[test]
fn a_plan_without_an_open_moment_is_refused() {
    let now = at("2026-11-23T12:00:00Z");
    let night = plan(cron("0 3 * * *"), None).within(office());
    assert_eq!((night.next(now), night.is_shut(now)), (None, true));
    let error = night.check(Width::MINUTE, now).unwrap_err();
    assert_eq!(error, RepeatError::NeverOpen("cron expression \"0 3 * * *\"".into()));
    let sentence = "cron expression \"0 3 * * *\" does not come in the open time of its calendar within ten years";
    assert_eq!(error.to_string(), sentence);
    assert_eq!(plan(cron("0 9 * * *"), None).within(office()).check(Width::MINUTE, now), Ok(()));
    let over = plan(cron("0 9 * * *"), Some(at("2026-11-23T13:00:00Z"))).within(office());
    assert!(!over.is_shut(now));
    assert!(matches!(over.check(Width::MINUTE, now), Err(RepeatError::NoneBeforeEnd(_))));
}

fn repetition(rhythm: &str, calendar: Option<Rc<Calendar<Changes>>>, delay: TimeDelta) -> Repetition<Changes> {
    let (jitter, catch_up) = (Jitter { hash: 1 << 63, at_most: delay * 2 }, TimeDelta::zero());
    Repetition { plan: plan(cron(rhythm), None).within(calendar), jitter, width: Width::MINUTE, catch_up }
}

#[test]
fn the_moment_of_the_plan_decides_before_jitter() {
    let hourly = repetition("0 * * * *", office(), TimeDelta::minutes(30));
    assert_eq!(hourly.slot_after(at("2026-11-23T15:45:00Z")), Some(at("2026-11-23T16:30:00Z")));
    assert_eq!(hourly.slot_after(at("2026-11-23T16:30:00Z")), Some(at("2026-11-24T09:30:00Z")));
    let late = repetition("0 16 * * *", office(), TimeDelta::hours(3));
    assert_eq!(late.slot_after(at("2026-11-23T12:00:00Z")), Some(at("2026-11-23T19:00:00Z")));
}

#[test]
fn another_calendar_moves_the_pending_occurrence() {
    let now = at("2026-11-23T12:30:00Z");
    let before = repetition("0 * * * *", office(), TimeDelta::zero());
    let pending = Occurrence::new(before.begin(now).unwrap());
    assert_eq!(pending.first, at("2026-11-23T13:00:00Z"));
    let evening = repetition("0 * * * *", calendar(&["mon-fri 18:00-20:00"]), TimeDelta::zero());
    assert_eq!(before.replaced_by(&evening, &pending, now), Change::Moves(Some(at("2026-11-23T18:00:00Z"))));
    let never = repetition("0 * * * *", calendar(&["mon 18:30-18:31"]), TimeDelta::zero());
    assert_eq!(before.replaced_by(&never, &pending, now), Change::Moves(None));
    assert_eq!(before.replaced_by(&evening, &pending, at("2026-11-23T13:00:00Z")), Change::Stays { passed: None });
}

#[test]
fn a_search_for_an_open_moment_ends_after_thousands_of_closed_ones() {
    let clock = |minute: usize| format!("{:02}:{:02}", minute / 60, minute % 60);
    let hours = (0..1440).step_by(15).map(|minute| format!("mon-sun {}-{}", clock(minute), clock(minute + 1)));
    let hours: Vec<String> = hours.collect();
    let calendar = calendar(&hours.iter().map(String::as_str).collect::<Vec<_>>());
    let start = at("2026-01-01T00:07:00Z");
    let plan =
        |micros| Plan::new(every((0, 0, micros)), Changes::new(0, vec![]), Some(start), None).within(calendar.clone());
    assert_eq!(plan(900_020_000).next(start), None);
    assert_eq!(plan(901_000_000).next(start), Some(at("2026-01-06T00:15:00Z")));
}
