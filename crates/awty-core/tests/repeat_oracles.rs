//! Compares the planned times that awty computes with the times that a simple model computes.

#![allow(clippy::unwrap_used)] // a panic is how a test fails

mod oracle;
mod world;
mod zones;

use awty_core::Time;
use awty_core::repeat::{Fixed, Plan, Rhythm, Zone};
use chrono::{Days, Months, NaiveDate, NaiveTime, TimeDelta};
use oracle::Vixie;
use proptest::prelude::*;
use world::{Dice, ZONES};
use zones::{at, tz, zone};

fn any_expression(dice: &mut Dice) -> String {
    let minute = dice.pick(&["*", "*/15", "0", "30", "0,30", "5-55/10", "*/7", "59", "1,2,58", "*/2,1"]);
    let hour = dice.pick(&["*", "*/2", "0", "1", "2", "3", "0-5", "1,2,3", "23", "*/5", "12", "0-23"]);
    let day = dice.pick(&["*", "*", "*", "*/2", "1", "L", "1,L", "10-20", "25-31"]);
    let month = dice.pick(&["*", "*", "*", "3,4,10,11", "*/3"]);
    let weekday = dice.pick(&["*", "*", "0", "7", "6,0", "*/2", "1-5"]);
    format!("{minute} {hour} {day} {month} {weekday}")
}

fn cron(text: &str) -> Rhythm {
    Rhythm::new(None, Some(text)).unwrap_or_else(|error| panic!("{error}"))
}

fn days(dice: &mut Dice, zone: &impl Zone) -> NaiveDate {
    let any = dice.below(4_070_908_800) * 1_000_000;
    let near = if dice.below(5) == 0 { i64::MAX } else { zone.span_at(any).until };
    let t = if near == i64::MAX { any } else { near };
    Time::from_timestamp_micros(t).unwrap().date_naive() - Days::new(2)
}

#[test]
fn in_every_zone_a_plan_is_what_looking_at_each_minute_gives() {
    let mut dice = Dice::new(16);
    let mut found = 0;
    for name in ZONES {
        let (tz, zone) = (tz(name), zone(name));
        for _ in 0..40 {
            let (text, first) = (any_expression(&mut dice), days(&mut dice, &zone));
            let expected = oracle::moments(&Vixie::new(&text), tz, first, 5);
            // No zone differs from UTC by more than 16 hours.
            let from = first.and_time(NaiveTime::MIN).and_utc() + TimeDelta::hours(16);
            let to = from + TimeDelta::hours(88);
            let expected: Vec<_> = expected.into_iter().filter(|&t| t > from && t < to).collect();
            let plan = Plan::new(cron(&text), &zone, None, None);
            let moments: Vec<_> = plan.moments(from).take_while(|&t| t < to).collect();
            assert_eq!(moments, expected, "{text} in {name} from {from}");
            for _ in 0..10 {
                let after = from + TimeDelta::microseconds(dice.below(88 * 3_600_000_000));
                let next = expected.iter().find(|&&t| t > after);
                assert_eq!(plan.next(after).filter(|&t| t < to).as_ref(), next, "{text} in {name} after {after}");
            }
            found += expected.len();
        }
    }
    assert!(found > 20_000, "only {found} moments were compared");
}

#[test]
fn in_every_zone_the_moments_of_130_years_are_in_order() {
    let mut dice = Dice::new(17);
    for name in ZONES {
        let zone = zone(name);
        for text in [any_expression(&mut dice), "30 2 * * *".into(), "*/30 0-3 * * 0".into()] {
            let plan = Plan::new(cron(&text), &zone, None, None);
            let mut last = at("1969-12-31T00:00:00Z");
            for moment in plan.moments(last).take_while(|&t| t < at("2100-12-31T00:00:00Z")).take(4000) {
                assert!(moment > last, "{text} in {name}: {moment} comes after {last}");
                last = moment;
            }
        }
    }
}

#[test]
fn calendar_time_is_what_adding_months_and_days_to_the_start_gives() {
    let mut dice = Dice::new(18);
    for name in ZONES {
        let (tz, zone) = (tz(name), zone(name));
        for _ in 0..8 {
            let (months, step) =
                [(0, 1), (0, 7), (1, 0), (1, 1), (3, 0), (0, 10), (12, 0), (5, 3)][dice.below(8) as usize];
            let starts = at("1970-01-01T00:00:00Z") + TimeDelta::seconds(dice.below(40 * 365 * 86_400));
            let local = starts.with_timezone(&tz).naive_local();
            let plan = Plan::new(Rhythm::new(Some((months, step, 0)), None).unwrap(), &zone, Some(starts), None);
            let time = |number: i32| {
                let date = local.checked_add_months(Months::new((number * months) as u32)).unwrap();
                oracle::first_shown(tz, date + TimeDelta::days(i64::from(number * step)))
            };
            let mut expected: Vec<_> = (1..150).map(time).filter(|&t| t > starts).collect();
            expected.insert(0, starts);
            expected.dedup();
            let moments: Vec<_> = plan.moments(starts - TimeDelta::days(1)).take(expected.len()).collect();
            assert_eq!(moments, expected, "{months} months and {step} days in {name} from {starts}");
        }
    }
}

fn field(low: u32, high: u32) -> impl Strategy<Value = String> {
    let value = low..=high;
    let range = (low..=high, low..=high).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b)));
    let step = 1..=(high - low).min(6);
    let item = prop_oneof![
        4 => value.prop_map(|value| value.to_string()),
        2 => range.clone(),
        1 => (range, step.clone()).prop_map(|(range, step)| format!("{range}/{step}")),
        2 => step.prop_map(|step| format!("*/{step}")),
    ];
    prop_oneof![2 => Just("*".to_owned()), 3 => prop::collection::vec(item, 1..4).prop_map(|items| items.join(","))]
}

fn expression() -> impl Strategy<Value = String> {
    let day = prop_oneof![5 => field(1, 31), 1 => Just("L".to_owned()), 1 => Just("13,L".to_owned())];
    (field(0, 59), field(0, 23), day, field(1, 12), field(0, 7))
        .prop_map(|(minute, hour, day, month, weekday)| format!("{minute} {hour} {day} {month} {weekday}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn the_next_minute_is_the_one_that_vixie_cron_would_find(text in expression(), after in 0_i64..4_102_444_800) {
        let vixie = Vixie::new(&text);
        let after = Time::from_timestamp(after, 0).unwrap();
        let next = Plan::new(cron(&text), Fixed::UTC, None, None).next(after);
        let mut minute = after - TimeDelta::seconds(after.timestamp() % 60) + TimeDelta::minutes(1);
        let far = after + TimeDelta::days(400);
        while minute < far && !vixie.matches(minute.naive_utc()) {
            let midnight = (minute.date_naive() + Days::new(1)).and_time(NaiveTime::MIN).and_utc();
            minute = if vixie.matches_day(minute.date_naive()) { minute + TimeDelta::minutes(1) } else { midnight };
        }
        if minute < far {
            prop_assert_eq!(next, Some(minute));
        } else {
            prop_assert!(next.is_none_or(|next| next >= far));
        }
    }

    #[test]
    fn clock_time_is_what_adding_it_again_and_again_gives(
        length in 1_i64..200_000_000_000, starts in 0_i64..4_102_444_800_000_000, ahead in 0_i64..1000, part in 0.0..1.0,
    ) {
        let starts = Time::from_timestamp_micros(starts).unwrap();
        let plan = Plan::new(Rhythm::new(Some((0, 0, length)), None).unwrap(), Fixed::UTC, Some(starts), None);
        let mut moment = starts;
        for _ in 0..ahead {
            moment += TimeDelta::microseconds(length);
        }
        let within = TimeDelta::microseconds((length as f64 * part) as i64);
        prop_assert_eq!(plan.next(moment + within), Some(moment + TimeDelta::microseconds(length)));
        prop_assert!(plan.contains(moment));
    }
}
