use super::*;
use crate::argument_limits::MAX_LEVELS;
use crate::calendar::{Calendar, Hours, Length};
use crate::repeat::Fixed;
use crate::testing::{at, clock, limits, width};
use chrono::TimeDelta;
use proptest::prelude::*;
use std::rc::Rc;

const HOUR: i64 = 3_600_000_000;

fn h(hours: i64) -> Length {
    Length::Time(hours * HOUR)
}

fn waiting(start: Time) -> RowState<'static> {
    RowState::Waiting { start, seen: start, stops: Stops::never() }
}

fn told(level: u32) -> Alert {
    Alert { level, ..Alert::NONE }
}

fn hours(hours: &[i64]) -> Levels<Fixed> {
    Levels::new(Some(h(hours[0])), hours[1..].iter().copied().map(h).collect(), None).unwrap()
}

fn open(hours: &str, within: Option<Length>, escalate: &[Length]) -> Levels<Fixed> {
    let calendar = Calendar::new(Hours::new([hours]).unwrap(), vec![], Fixed::UTC);
    Levels::new(within, escalate.to_vec(), Some(Rc::new(calendar))).unwrap()
}

#[test]
fn levels_rise() {
    let new = |within, escalate: &[Length]| Levels::<Fixed>::new(within, escalate.to_vec(), None).map(drop);
    assert_eq!(new(Some(h(0)), &[]), Err(LevelError::Within));
    assert_eq!(new(Some(h(-1)), &[]), Err(LevelError::Within));
    assert_eq!(new(Some(h(3)), &[h(3)]), Err(LevelError::Escalate(1)));
    assert_eq!(new(Some(h(3)), &[h(6), h(5)]), Err(LevelError::Escalate(2)));
    assert_eq!(new(Some(h(3)), &[h(6); MAX_LEVELS]), Err(LevelError::TooMany));
    assert_eq!(new(None, &[h(0)]), Err(LevelError::Escalate(1)), "a level after its due time");
    let days = Length::Days;
    assert_eq!(new(Some(days(2)), &[h(1), days(3), h(2)]), Ok(()), "days and hours cannot be compared");
    assert_eq!(new(Some(days(2)), &[h(1), days(2)]), Err(LevelError::Escalate(2)));
    assert_eq!(new(Some(h(2)), &[days(1), h(2)]), Err(LevelError::Escalate(2)));
    let start = clock("07:00:00");
    assert_eq!(hours(&[3, 6]).time(2, start), Some(clock("13:00:00")));
    assert_eq!(hours(&[3, 6]).time(0, start), None);
    assert_eq!(hours(&[3, 6]).time(3, start), None);
}

#[test]
fn a_late_row_is_raised_to_the_highest_level_that_is_due() {
    let (levels, limits) = (hours(&[1, 2, 3, 4]), limits());
    let found = waiting(clock("07:00:00"));
    let now = clock("10:00:00");
    let next = Some(clock("11:00:00"));
    for open in 0..3 {
        assert_eq!(judge(found, told(open), &levels, &limits, now), Verdict::Raise(3, next));
    }
    assert_eq!(judge(found, told(3), &levels, &limits, now), Verdict::Stay(next));
    assert_eq!(judge(found, told(3), &levels, &limits, clock("11:00:00")), Verdict::Raise(4, None));
    assert_eq!(judge(found, told(4), &levels, &limits, now), Verdict::Stay(None));
    assert_eq!(judge(RowState::Met, told(1), &levels, &limits, now), Verdict::Settled);
    assert_eq!(judge(RowState::Gone, told(1), &levels, &limits, now), Verdict::Settled);
}

#[test]
fn a_row_that_is_not_late_yet_is_asked_about_at_its_slot() {
    let (levels, limits) = (hours(&[1, 2]), limits());
    let found = waiting(clock("09:30:00.5"));
    let first = limits.width.round_up(clock("10:30:00.5"));
    assert_eq!(judge(found, told(0), &levels, &limits, clock("10:00:00")), Verdict::Ahead(first));
    assert_eq!(
        judge(found, told(1), &levels, &limits, clock("10:00:00")),
        Verdict::Ahead(first),
        "its since has moved"
    );
    let second = limits.width.round_up(clock("11:30:00.5"));
    assert_eq!(judge(found, told(1), &levels, &limits, first), Verdict::Stay(Some(second)));
}

#[test]
fn a_long_name_is_cut_and_stays_different_from_others() {
    assert_eq!(object_name("orders", "_since"), "awty_orders_since");
    let (one, other) = ("ä".repeat(31) + "x", "ä".repeat(31) + "y");
    assert_eq!(object_name(&"x".repeat(58), ""), format!("awty_{}", "x".repeat(58)));
    assert!(object_name(&one, "_truncate").len() <= 63);
    assert!(object_name(&one, "_truncate").ends_with("_truncate"));
    assert_ne!(object_name(&one, "_insert"), object_name(&other, "_insert"));
}

#[test]
fn since_ever_is_late() {
    let (levels, limits) = (hours(&[1]), limits());
    assert_eq!(judge(waiting(Time::MIN_UTC), told(0), &levels, &limits, clock("10:00:00")), Verdict::Raise(1, None));
    assert!(matches!(judge(waiting(Time::MAX_UTC), told(0), &levels, &limits, clock("10:00:00")), Verdict::Ahead(_)));
}

proptest! {
    #[test]
    fn no_level_is_early_and_the_last_one_comes(
        since in 0_i64..200_000, first in 1_i64..90_000, steps in prop::collection::vec(1_i64..90_000, 0..4), began in 0_i64..400_000,
    ) {
        let limits = limits();
        let second = |second| clock("00:00:00") + TimeDelta::seconds(second);
        let mut total = first;
        let escalate: Vec<_> = steps.iter().map(|step| { total += step; Length::Time(total * 1_000_000) }).collect();
        let levels = Levels::<Fixed>::new(Some(Length::Time(first * 1_000_000)), escalate, None).unwrap();
        let found = waiting(second(since));
        let (mut now, mut open) = (second(began), 0);
        let mut next = start(found, told(open), &levels, &limits, now);
        while let Some(slot) = next {
            prop_assert!(slot > now);
            now = slot;
            next = match judge(found, told(open), &levels, &limits, now) {
                Verdict::Ahead(slot) => Some(slot),
                Verdict::Stay(slot) => slot,
                Verdict::Raise(level, slot) => {
                    prop_assert!(level > open);
                    prop_assert!(now >= levels.time(level, second(since)).unwrap());
                    let due = |level| levels.time(level, second(since)).is_some_and(|time| limits.width.round_up(time) <= now);
                    prop_assert!(!due(level + 1));
                    open = level;
                    slot
                }
                Verdict::Settled | Verdict::Remind(_) | Verdict::Tell(_) => None,
            };
        }
        prop_assert_eq!(open as usize, steps.len() + 1);
    }
}

#[test]
fn an_alert_that_is_not_told_is_told_at_its_level() {
    let (levels, limits) = (hours(&[1, 4]), limits());
    let found = waiting(clock("07:00:00"));
    let now = clock("10:00:00");
    let untold = Alert { is_told: false, ..told(1) };
    assert_eq!(judge(found, untold, &levels, &limits, now), Verdict::Tell(Some(clock("11:00:00"))));
    assert_eq!(start(found, untold, &levels, &limits, now), Some(clock("10:01:00")));
    assert_eq!(judge(found, untold, &levels, &limits, clock("11:00:00")), Verdict::Raise(2, None));
    let office = open(OFFICE, Some(h(8)), &[]);
    let friday = waiting(at("2030-05-03T09:00:00Z"));
    let saturday = at("2030-05-04T12:00:00Z");
    let monday = Verdict::Stay(Some(at("2030-05-06T09:00:00Z")));
    assert_eq!(judge(friday, untold, &office, &limits, saturday), monday, "told at the opening");
    assert_eq!(judge(friday, untold, &office, &limits, at("2030-05-06T09:00:00Z")), Verdict::Tell(None));
}

#[test]
fn a_held_alert_rises_and_is_told_at_the_end() {
    let (levels, limits) = (hours(&[1, 2, 5]), limits());
    let found = waiting(clock("07:00:00"));
    let end = clock("10:00:00");
    let held = |level| Alert { is_told: false, hold: Some(Hold::Until(end)), ..told(level) };
    let judged = |alert, now| judge(found, alert, &levels, &limits, clock(now));
    assert_eq!(judged(held(0), "07:30:00"), Verdict::Ahead(clock("08:00:00")));
    assert_eq!(judged(held(0), "08:00:00"), Verdict::Raise(1, Some(clock("09:00:00"))));
    assert_eq!(judged(held(2), "09:00:00"), Verdict::Stay(Some(end)), "the hold ends before the next level");
    assert_eq!(judged(held(2), "10:00:00"), Verdict::Tell(Some(clock("12:00:00"))));
    assert_eq!(judged(Alert { is_told: true, ..held(2) }, "10:00:00"), Verdict::Tell(Some(clock("12:00:00"))));
    assert_eq!(judged(held(2), "12:00:00"), Verdict::Raise(3, None));
    assert!(held(2).is_held(clock("09:59:59")) && !held(2).is_held(end) && held(2).is_hold_over(end));
    let endless = Alert { hold: Some(Hold::Released), ..held(3) };
    assert_eq!(judged(endless, "23:00:00"), Verdict::Stay(None));
    assert!(endless.is_held(clock("23:00:00")));
    let ahead = waiting(clock("09:30:00"));
    assert_eq!(judge(ahead, held(0), &levels, &limits, clock("09:31:00")), Verdict::Ahead(end), "it ends at level 0");
}

const OFFICE: &str = "mon-fri 09:00-17:00";

#[test]
fn levels_count_open_time() {
    let levels = open(OFFICE, Some(h(4)), &[h(10), Length::Days(1), Length::Days(3)]);
    let start = at("2030-05-03T15:00:00Z");
    let times: Vec<Time> = (1..=4).map_while(|level| levels.time(level, start)).collect();
    let expected = ["2030-05-06T11:00:00Z", "2030-05-06T17:00:00Z", "2030-05-06T17:00:00Z", "2030-05-08T15:00:00Z"];
    assert_eq!(times, expected.map(at), "a day is Monday 15:00, but not before the level of ten hours");
    assert_eq!(levels.time(5, start), None);
    assert_eq!(levels.due(Time::MIN_UTC), Time::MIN_UTC);
    assert_eq!(levels.due(Time::MAX_UTC), Time::MAX_UTC);
    let never = open("mon 09:00-09:01", Some(h(24)), &[]);
    assert_eq!(never.due(start), Time::MAX_UTC, "not within ten years");
}

#[test]
fn a_due_time_in_closed_time_counts_at_the_next_opening() {
    let levels = open(OFFICE, None, &[h(1), Length::Days(1)]);
    let saturday = at("2030-05-04T12:00:00Z");
    assert_eq!(levels.due(saturday), at("2030-05-06T09:00:00Z"));
    assert_eq!(levels.time(2, saturday), Some(at("2030-05-06T10:00:00Z")));
    assert_eq!(levels.time(3, saturday), Some(at("2030-05-07T09:00:00Z")));
    let plain = Levels::<Fixed>::new(None, vec![h(1)], None).unwrap();
    assert_eq!((plain.due(saturday), plain.time(2, saturday)), (saturday, Some(at("2030-05-04T13:00:00Z"))));
}

#[test]
fn in_closed_time_an_alert_is_raised_only_within_a_slot_after_its_time() {
    let (levels, limits) = (open(OFFICE, Some(h(8)), &[]), limits());
    let found = waiting(at("2030-05-03T09:00:00Z"));
    let judged = |now: &str| judge(found, told(0), &levels, &limits, at(now));
    assert_eq!(judged("2030-05-03T16:59:59Z"), Verdict::Ahead(at("2030-05-03T17:00:00Z")));
    assert_eq!(judged("2030-05-03T17:01:00Z"), Verdict::Raise(1, None), "within one slot");
    let monday = at("2030-05-06T09:00:00Z");
    for late in ["2030-05-03T17:01:00.000001Z", "2030-05-05T00:00:00Z", "2030-05-06T08:59:59Z"] {
        assert_eq!(judged(late), Verdict::Stay(Some(monday)), "{late}");
        assert_eq!(start(found, told(0), &levels, &limits, at(late)), Some(monday), "{late}");
    }
    assert_eq!(judged("2030-05-06T09:00:00Z"), Verdict::Raise(1, None));
    let met = judge(RowState::Met, told(1), &levels, &limits, at("2030-05-05T00:00:00Z"));
    assert_eq!(met, Verdict::Settled, "closed time delays no clearing");
}

#[test]
fn an_alert_whose_level_the_rule_no_longer_has_is_told_again_at_the_opening() {
    let (levels, limits) = (open(OFFICE, Some(h(8)), &[]), limits());
    let found = waiting(at("2030-05-02T09:00:00Z"));
    let released = Alert { is_told: false, ..told(2) };
    let judged = |now: &str| judge(found, released, &levels, &limits, at(now));
    assert_eq!(judged("2030-05-05T00:00:00Z"), Verdict::Stay(Some(at("2030-05-06T09:00:00Z"))));
    assert_eq!(judged("2030-05-06T09:00:00Z"), Verdict::Tell(None));
}

/// A replaced calendar or rule may move the time of a level that the alert has already.
#[test]
fn an_alert_whose_level_has_moved_into_the_future_is_told_at_the_opening() {
    let (levels, limits) = (open(OFFICE, Some(h(8)), &[h(20)]), limits());
    let found = waiting(at("2030-05-02T09:00:00Z"));
    let released = Alert { is_told: false, ..told(2) };
    let judged = |now: &str| judge(found, released, &levels, &limits, at(now));
    assert_eq!(levels.time(2, at("2030-05-02T09:00:00Z")), Some(at("2030-05-06T13:00:00Z")));
    assert_eq!(judged("2030-05-04T12:00:00Z"), Verdict::Stay(Some(at("2030-05-06T09:00:00Z"))));
    assert_eq!(judged("2030-05-06T09:00:00Z"), Verdict::Tell(None));
}

#[test]
fn an_opening_that_is_shorter_than_a_slot_counts_at_its_slot() {
    for (hours, seconds) in [("mon 09:10-09:20", 3_600), (OFFICE, 86_400)] {
        let limits = Limits { width: width(seconds), ..limits() };
        let minutes = |minutes: i64| Length::Time(minutes * 60_000_000);
        let levels = open(hours, Some(minutes(5)), &[minutes(8), minutes(12)]);
        let found = waiting(at("2030-05-01T12:00:00Z"));
        let (mut now, mut runs) = (at("2030-06-01T13:00:00Z"), 0);
        loop {
            runs += 1;
            assert!(runs < 5, "{hours} was never reached");
            match judge(found, told(0), &levels, &limits, now) {
                Verdict::Stay(Some(slot)) => now = slot,
                verdict => break assert!(matches!(verdict, Verdict::Raise(..)), "{verdict:?}"),
            }
        }
    }
}

#[test]
fn a_row_is_reminded_of_before_it_is_late() {
    let (limits, minute) = (limits(), 60_000_000);
    let levels = hours(&[10]).telling(vec![h(3), h(1), Length::Time(30 * minute)], None).unwrap();
    let found = waiting(clock("00:00:00"));
    let judged = |reminded: Option<&str>, now: &str| {
        let alert = Alert { reminded_at: reminded.map(clock), ..Alert::NONE };
        judge(found, alert, &levels, &limits, clock(now))
    };
    assert_eq!(judged(None, "00:00:00"), Verdict::Ahead(clock("07:00:00")));
    assert_eq!(judged(None, "07:00:00"), Verdict::Remind(clock("09:00:00")));
    assert_eq!(judged(Some("07:00:00.1"), "07:30:00"), Verdict::Ahead(clock("09:00:00")));
    assert_eq!(
        judged(Some("07:00:00.1"), "09:45:00"),
        Verdict::Remind(clock("10:00:00")),
        "overdue reminders come once"
    );
    assert_eq!(judged(None, "10:00:00"), Verdict::Raise(1, None), "none comes at level 1 or later");
    let late = RowState::Waiting { start: clock("00:00:00"), seen: clock("07:30:00"), stops: Stops::never() };
    assert_eq!(
        judge(late, Alert::NONE, &levels, &limits, clock("07:30:00")),
        Verdict::Ahead(clock("09:00:00")),
        "it had passed"
    );
    assert_eq!(
        judge(found, told(1), &levels, &limits, clock("07:00:00")),
        Verdict::Ahead(clock("07:01:00")),
        "cleared first"
    );
    let short = hours(&[1]).telling(vec![h(3), Length::Time(minute / 2)], None).unwrap();
    assert_eq!(
        start(found, Alert::NONE, &short, &limits, clock("00:00:00")),
        Some(clock("01:00:00")),
        "at the slot of level 1"
    );
    let office = open(OFFICE, Some(h(9)), &[]).telling(vec![Length::Days(1), h(2)], None).unwrap();
    let friday = waiting(at("2030-05-03T09:00:00Z"));
    let due: Vec<Time> = office.reminders(at("2030-05-03T09:00:00Z")).collect();
    assert_eq!(due, ["2030-05-03T10:00:00Z", "2030-05-03T16:00:00Z"].map(at), "level 1 is Monday 10:00");
    let saturday = judge(friday, Alert::NONE, &office, &limits, at("2030-05-04T12:00:00Z"));
    assert_eq!(saturday, Verdict::Ahead(at("2030-05-06T09:00:00Z")), "in open time");
    assert_eq!(
        judge(friday, Alert::NONE, &office, &limits, at("2030-05-06T09:00:00Z")),
        Verdict::Remind(at("2030-05-06T10:00:00Z"))
    );
}

#[test]
fn the_last_level_is_told_again_and_again() {
    let limits = limits();
    let levels = hours(&[1, 2]).telling(vec![], Some(h(3))).unwrap();
    let found = waiting(clock("00:00:00"));
    let at_level = |level, told_at: &str| Alert { told_at: Some(clock(told_at)), ..told(level) };
    let judged = |alert, now: &str| judge(found, alert, &levels, &limits, clock(now));
    assert_eq!(judged(Alert::NONE, "01:00:00.5"), Verdict::Raise(1, Some(clock("02:00:00"))));
    assert_eq!(judged(at_level(1, "01:00:00.5"), "02:00:00.5"), Verdict::Raise(2, Some(clock("05:00:00"))));
    assert_eq!(judged(at_level(2, "02:00:00.5"), "04:59:59"), Verdict::Stay(Some(clock("05:00:00"))));
    assert_eq!(judged(at_level(2, "02:00:00.5"), "05:00:00.5"), Verdict::Tell(Some(clock("08:00:00"))));
    assert_eq!(
        judged(at_level(2, "02:00:00.5"), "20:00:30"),
        Verdict::Tell(Some(clock("23:00:00"))),
        "missed ones are one"
    );
    let held = Alert { hold: Some(Hold::Released), ..at_level(2, "02:00:00.5") };
    assert_eq!(judged(held, "20:00:00"), Verdict::Stay(None), "a held alert is not told");
    let office = open(OFFICE, Some(h(8)), &[]).telling(vec![], Some(Length::Days(1))).unwrap();
    let friday = waiting(at("2030-05-03T09:00:00Z"));
    let told = Alert { told_at: Some(at("2030-05-03T17:00:00.5Z")), ..told(1) };
    let next = judge(friday, told, &office, &limits, at("2030-05-03T17:00:30Z"));
    assert!(matches!(next, Verdict::Stay(Some(slot)) if slot > at("2030-05-06T00:00:00Z")), "{next:?}");
}

#[test]
fn reminders_become_shorter() {
    let telling = |remind: &[Length], every| hours(&[10]).telling(remind.to_vec(), every).map(drop);
    assert_eq!(telling(&[h(0)], None), Err(LevelError::Remind(1)));
    assert_eq!(telling(&[h(1), h(1)], None), Err(LevelError::Remind(2)));
    assert_eq!(telling(&[Length::Days(1), h(30), Length::Days(1)], None), Err(LevelError::Remind(3)));
    assert_eq!(telling(&[h(9); 6], None), Err(LevelError::TooManyReminders));
    assert_eq!(telling(&[], Some(h(0))), Err(LevelError::Every));
    assert_eq!(telling(&[Length::Days(1), h(30), h(2)], Some(h(1))), Ok(()), "days and hours cannot be compared");
}

/// Minute 0 is on a Tuesday.
fn is_office(minute: i64) -> bool {
    let (day, of_day) = (minute.div_euclid(1440), minute.rem_euclid(1440));
    (day + 1).rem_euclid(7) < 5 && (540..1020).contains(&of_day)
}

proptest! {
    #[test]
    fn in_closed_time_nothing_is_raised_later_than_a_slot_after_its_time(
        began in 0_i64..20_000, first in 1_i64..2_000, steps in prop::collection::vec(1_i64..2_000, 0..4),
        delays in prop::collection::vec(0_i64..5_000, 0..20), hourly in any::<bool>(),
    ) {
        let limits = Limits { width: width(if hourly { 3_600 } else { 60 }), ..limits() };
        let minute = |minute: i64| at("2030-01-01T00:00:00Z") + TimeDelta::minutes(minute);
        let mut total = first;
        let lengths: Vec<i64> = std::iter::once(first).chain(steps.iter().map(|step| { total += step; total })).collect();
        let length = |minutes: &i64| Length::Time(minutes * 60_000_000);
        let levels = open(OFFICE, Some(length(&first)), &lengths[1..].iter().map(length).collect::<Vec<_>>());
        let oracle = |length: i64| {
            let mut left = length;
            (began..).find(|now| { left -= i64::from(is_office(*now)); left == 0 }).map(|last| minute(last + 1))
        };
        for (place, length) in lengths.iter().enumerate() {
            prop_assert_eq!(levels.time(place as u32 + 1, minute(began)), oracle(*length));
        }
        let found = waiting(minute(began));
        let (mut open, mut next, mut late) = (0, start(found, told(0), &levels, &limits, minute(began)), delays.into_iter().chain(std::iter::repeat(0)));
        let mut runs = 0;
        while let Some(slot) = next {
            runs += 1;
            prop_assert!(runs < 100, "it never ends");
            let now = slot + TimeDelta::minutes(late.next().unwrap());
            let closed = !is_office((now - minute(0)).num_minutes());
            next = match judge(found, told(open), &levels, &limits, now) {
                Verdict::Ahead(slot) => Some(slot),
                Verdict::Stay(slot) => slot,
                Verdict::Settled | Verdict::Remind(_) | Verdict::Tell(_) => None,
                Verdict::Raise(level, next) => {
                    let due = limits.width.round_up(levels.time(level, minute(began)).unwrap());
                    prop_assert!(now >= due && (!closed || now <= due + limits.width.delta()), "at {} due at {}", now, due);
                    open = level;
                    next
                }
            };
            prop_assert!(next.is_none_or(|next| next > now));
        }
        prop_assert_eq!(open as usize, lengths.len());
    }
}

#[test]
fn a_closing_is_a_due_time() {
    let own = open("mon-fri 09:00-17:00", None, &[h(1)]);
    let closing = at("2026-11-23T17:00:00Z");
    assert_eq!(own.due(closing), closing);
    assert_eq!(open("mon-fri 09:00-17:00", Some(h(8)), &[]).due(at("2026-11-23T09:00:00Z")), closing);
    let opening = at("2026-11-24T09:00:00Z");
    assert_eq!(own.due(closing + TimeDelta::microseconds(1)), opening);
    assert_eq!(own.due(opening), opening);
    assert_eq!(own.time(2, closing), Some(opening + TimeDelta::hours(1)));
}
