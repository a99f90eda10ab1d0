#![allow(clippy::unwrap_used)] // a panic is how a test fails

mod zones;

use awty_core::repeat::{Plan, Rhythm};
use awty_core::{Time, Width};
use chrono::TimeDelta;
use zones::{at, zone};

const DAY: (i32, i32, i64) = (0, 1, 0);

fn between(rhythm: Rhythm, name: &str, starts: Option<Time>, from: &str, to: &str) -> Vec<Time> {
    let plan = Plan::new(rhythm, zone(name), starts, None);
    plan.moments(at(from) - TimeDelta::microseconds(1)).take_while(|&t| t < at(to)).collect()
}

fn cron(text: &str, name: &str, from: &str, to: &str) -> Vec<Time> {
    between(Rhythm::new(None, Some(text)).unwrap(), name, None, from, to)
}

fn every(parts: (i32, i32, i64), name: &str, starts: &str, to: &str) -> Vec<Time> {
    between(Rhythm::new(Some(parts), None).unwrap(), name, Some(at(starts)), starts, to)
}

fn all<const N: usize>(moments: [&str; N]) -> Vec<Time> {
    moments.map(at).to_vec()
}

const SPRING: (&str, &str) = ("2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z");
const AUTUMN: (&str, &str) = ("2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z");

fn berlin(text: &str, (from, to): (&str, &str)) -> Vec<Time> {
    cron(text, "Europe/Berlin", from, to)
}

#[test]
fn a_fixed_time_in_a_gap_comes_once_at_its_end() {
    assert_eq!(berlin("30 2 * * *", SPRING), all(["2026-03-29T01:00:00Z"]));
}

#[test]
fn moments_that_fall_together_are_one() {
    assert_eq!(berlin("0,30 2 * * *", SPRING), all(["2026-03-29T01:00:00Z"]));
    assert_eq!(berlin("0 2,3 * * *", SPRING), all(["2026-03-29T01:00:00Z"]));
    assert_eq!(berlin("*/10 30 2 * * *", SPRING), all(["2026-03-29T01:00:00Z"]));
}

#[test]
fn a_fixed_time_in_a_fold_comes_once_the_first_time() {
    assert_eq!(berlin("30 2 * * *", AUTUMN), all(["2026-10-25T00:30:00Z"]));
    let seconds = berlin("*/20 30 2 * * *", AUTUMN);
    assert_eq!(seconds, all(["2026-10-25T00:30:00Z", "2026-10-25T00:30:20Z", "2026-10-25T00:30:40Z"]));
}

#[test]
fn every_quarter_of_an_hour_is_one_of_real_time_on_both_days() {
    for (day, count) in [(SPRING, 92), (AUTUMN, 100)] {
        let moments = berlin("*/15 * * * *", day);
        assert_eq!(moments.len(), count);
        assert_eq!(moments[0], at(day.0));
        assert!(moments.windows(2).all(|pair| pair[1] - pair[0] == TimeDelta::minutes(15)));
    }
}

#[test]
fn minutes_of_an_hour_follow_the_clock_on_the_wall() {
    assert_eq!(berlin("*/5 2 * * *", SPRING), all([]));
    let moments = berlin("*/5 2 * * *", AUTUMN);
    assert_eq!(moments.len(), 24);
    assert_eq!((moments[0], moments[23]), (at("2026-10-25T00:00:00Z"), at("2026-10-25T01:55:00Z")));
    assert!(moments.windows(2).all(|pair| pair[1] - pair[0] == TimeDelta::minutes(5)));
}

#[test]
fn a_gap_at_midnight_keeps_the_weekday() {
    let friday = cron("30 0 * * fri", "Africa/Cairo", "2026-04-23T12:00:00Z", "2026-04-24T21:00:00Z");
    assert_eq!(friday, all(["2026-04-23T22:00:00Z"]));
}

#[test]
fn a_change_by_half_an_hour_is_a_change() {
    let lord_howe = |text, from, to| cron(text, "Australia/Lord_Howe", from, to);
    let autumn = ("2026-04-04T13:00:00Z", "2026-04-05T13:30:00Z");
    assert_eq!(lord_howe("45 1 * * *", autumn.0, autumn.1), all(["2026-04-04T14:45:00Z"]));
    let spring = lord_howe("15 2 * * *", "2026-10-03T13:30:00Z", "2026-10-04T13:00:00Z");
    assert_eq!(spring, all(["2026-10-03T15:30:00Z"]));
    let hours = lord_howe("0 * * * *", "2026-04-04T13:30:00Z", "2026-04-04T17:00:00Z");
    assert_eq!(hours, all(["2026-04-04T14:00:00Z", "2026-04-04T15:30:00Z", "2026-04-04T16:30:00Z"]));
}

#[test]
fn a_day_that_does_not_exist_comes_at_its_end() {
    let friday = cron("0 9 * * fri", "Pacific/Apia", "2011-12-28T00:00:00Z", "2012-01-05T00:00:00Z");
    assert_eq!(friday, all(["2011-12-30T10:00:00Z"]));
    let days = every(DAY, "Pacific/Apia", "2011-12-28T19:00:00Z", "2012-01-01T00:00:00Z");
    // Samoa skipped 30 December 2011.
    let expected = ["2011-12-28T19:00:00Z", "2011-12-29T19:00:00Z", "2011-12-30T10:00:00Z", "2011-12-30T19:00:00Z"];
    assert_eq!(days, [all(expected), all(["2011-12-31T19:00:00Z"])].concat());
}

#[test]
fn leap_days_come_in_leap_years_and_the_thirtieth_of_february_never() {
    for name in ["UTC", "Europe/Berlin", "Pacific/Apia"] {
        let leap_days = cron("0 0 29 2 *", name, "2095-01-01T00:00:00Z", "2105-01-01T00:00:00Z");
        let dates: Vec<_> = leap_days.iter().map(|t| (*t + TimeDelta::hours(14)).format("%Y-%m").to_string()).collect();
        assert_eq!(dates, ["2096-02", "2104-02"], "{name}");
        let never = Rhythm::new(None, Some("0 0 30 2 *")).unwrap();
        let error = Plan::new(never, zone(name), None, None).check(Width::MINUTE, at("2026-11-22T12:00:00Z"));
        assert_eq!(error.unwrap_err().to_string(), r#"cron expression "0 0 30 2 *" never comes"#);
    }
}

#[test]
fn a_day_stays_at_its_time_and_24_hours_move() {
    let day_before = "2026-03-28T08:00:00Z";
    let days = every(DAY, "Europe/Berlin", day_before, "2026-03-30T20:00:00Z");
    assert_eq!(days, all([day_before, "2026-03-29T07:00:00Z", "2026-03-30T07:00:00Z"]));
    let hours = every((0, 0, 86_400_000_000), "Europe/Berlin", day_before, "2026-03-30T20:00:00Z");
    assert_eq!(hours, all([day_before, "2026-03-29T08:00:00Z", "2026-03-30T08:00:00Z"]));
    let day_before = "2026-10-24T07:00:00Z";
    let days = every(DAY, "Europe/Berlin", day_before, "2026-10-26T20:00:00Z");
    assert_eq!(days, all([day_before, "2026-10-25T08:00:00Z", "2026-10-26T08:00:00Z"]));
    let hours = every((0, 0, 86_400_000_000), "Europe/Berlin", day_before, "2026-10-26T20:00:00Z");
    assert_eq!(hours, all([day_before, "2026-10-25T07:00:00Z", "2026-10-26T07:00:00Z"]));
}

#[test]
fn a_calendar_day_follows_the_rule_of_fixed_times() {
    let spring = every(DAY, "Europe/Berlin", "2026-03-28T01:30:00Z", "2026-03-31T00:00:00Z");
    assert_eq!(spring, all(["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]));
    let autumn = every(DAY, "Europe/Berlin", "2026-10-24T00:30:00Z", "2026-10-27T00:00:00Z");
    assert_eq!(autumn, all(["2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]));
    // Clocks show 02:30 twice, and the plan starts at the second 02:30.
    let second = every(DAY, "Europe/Berlin", "2026-10-25T01:30:00Z", "2026-10-27T00:00:00Z");
    assert_eq!(second, all(["2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"]));
}

#[test]
fn offsets_decide_and_not_what_a_country_calls_summer() {
    // Daylight saving time has a negative offset in Dublin and Casablanca.
    let spring = cron("30 1 * * *", "Europe/Dublin", "2026-03-28T12:00:00Z", "2026-03-29T12:00:00Z");
    assert_eq!(spring, all(["2026-03-29T01:00:00Z"]));
    let autumn = cron("30 1 * * *", "Europe/Dublin", "2026-10-24T12:00:00Z", "2026-10-25T12:00:00Z");
    assert_eq!(autumn, all(["2026-10-25T00:30:00Z"]));
    let ramadan = cron("30 2 * * *", "Africa/Casablanca", "2026-02-14T12:00:00Z", "2026-02-15T12:00:00Z");
    assert_eq!(ramadan, all(["2026-02-15T01:30:00Z"]));
}

#[test]
fn without_a_start_it_counts_from_1970_of_the_zone_and_weeks_from_a_monday() {
    let first = |parts, name, from: &str| {
        let plan = Plan::new(Rhythm::new(Some(parts), None).unwrap(), zone(name), None, None);
        plan.next(at(from)).unwrap()
    };
    let from = "2026-11-22T12:00:00Z";
    assert_eq!(first((0, 7, 0), "Asia/Tokyo", from), at("2026-11-22T15:00:00Z"));
    assert_eq!(first((0, 14, 0), "UTC", from), at("2026-11-23T00:00:00Z"));
    assert_eq!(first((0, 21, 0), "UTC", from), at("2026-12-07T00:00:00Z"));
    assert_eq!(first((1, 0, 0), "Europe/Berlin", from), at("2026-11-30T23:00:00Z"));
    assert_eq!(first((3, 0, 0), "UTC", from), at("2027-01-01T00:00:00Z"));
    assert_eq!(first((0, 0, 3_600_000_000), "Asia/Kolkata", from), at("2026-11-22T12:30:00Z"));
    assert_eq!(first((0, 0, 3_600_000_000), "UTC", from), at("2026-11-22T13:00:00Z"));
}

#[test]
fn a_plan_has_its_start_and_its_end() {
    let rhythm = |text| Rhythm::new(None, Some(text)).unwrap();
    let (nine, ten) = (at("2026-11-23T09:00:00Z"), at("2026-11-23T10:00:00Z"));
    let moments = |starts, ends, after: &str| -> Vec<Time> {
        Plan::new(rhythm("0 * * * *"), zone("UTC"), Some(starts), Some(ends)).moments(at(after)).collect()
    };
    assert_eq!(moments(nine, ten, "2026-01-01T00:00:00Z"), [nine, ten]);
    assert_eq!(moments(nine, ten, "2026-11-23T09:00:00Z"), [ten]);
    assert_eq!(moments(nine, ten, "2026-11-23T10:00:00Z"), all([]));
    let micro = TimeDelta::microseconds(1);
    assert_eq!(moments(nine + micro, ten - micro, "2026-01-01T00:00:00Z"), all([]));
}
