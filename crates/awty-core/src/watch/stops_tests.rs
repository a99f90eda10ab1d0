use super::*;
use crate::calendar::{Calendar, Hours, Length};
use crate::limits::Limits;
use crate::repeat::Fixed;
use crate::testing::{at, clock, limits, width};
use crate::{Time, later};
use chrono::TimeDelta;
use proptest::prelude::*;
use std::ops::Range;
use std::rc::Rc;

const HOUR: i64 = 3_600_000_000;

fn h(hours: i64) -> Length {
    Length::Time(hours * HOUR)
}

fn levels(within: i64, escalate: &[i64]) -> Levels<Fixed> {
    Levels::new(Some(h(within)), escalate.iter().copied().map(h).collect(), None).unwrap()
}

fn office(within: Length) -> Levels<Fixed> {
    let calendar = Calendar::new(Hours::new(["mon-fri 09:00-17:00"]).unwrap(), vec![], Fixed::UTC);
    Levels::new(Some(within), vec![], Some(Rc::new(calendar))).unwrap()
}

fn stops(past: &[[&str; 2]], since: Option<&str>) -> Stops {
    Stops::new(past.iter().map(|[begin, end]| clock(begin)..clock(end)).collect(), since.map(clock))
}

fn told(level: u32) -> Alert {
    Alert { level, ..Alert::NONE }
}

#[test]
fn each_stop_that_begins_before_a_time_moves_it() {
    let levels = levels(3, &[6]);
    let due = |past: &[[&str; 2]]| {
        let stops = stops(past, None);
        (1..=2)
            .map(|level| levels.moved(levels.time(level, clock("00:00:00")).unwrap(), &stops, Time::MIN_UTC))
            .collect::<Vec<_>>()
    };
    assert_eq!(due(&[]), ["03:00:00", "06:00:00"].map(clock));
    assert_eq!(due(&[["01:00:00", "02:00:00"]]), ["04:00:00", "07:00:00"].map(clock));
    assert_eq!(due(&[["03:00:00", "05:00:00"]]), ["03:00:00", "08:00:00"].map(clock));
    assert_eq!(due(&[["02:59:59", "05:00:00"]]), ["05:00:01", "08:00:01"].map(clock));
    assert_eq!(due(&[["01:00:00", "02:00:00"], ["03:30:00", "03:40:00"]]), ["04:10:00", "07:10:00"].map(clock));
    assert_eq!(levels.moved(Time::MIN_UTC, &stops(&[["01:00:00", "02:00:00"]], None), Time::MIN_UTC), Time::MIN_UTC);
    assert_eq!(levels.moved(Time::MAX_UTC, &stops(&[["01:00:00", "02:00:00"]], None), Time::MIN_UTC), Time::MAX_UTC);
}

#[test]
fn only_the_open_time_of_a_stop_counts() {
    let levels = office(h(8));
    let friday = at("2030-05-03T09:00:00Z");
    let moved =
        |begin, end| levels.moved(levels.due(friday), &Stops::new(vec![at(begin)..at(end)], None), Time::MIN_UTC);
    assert_eq!(moved("2030-05-03T10:00:00Z", "2030-05-03T12:00:00Z"), at("2030-05-06T11:00:00Z"));
    assert_eq!(moved("2030-05-02T20:00:00Z", "2030-05-03T09:00:00Z"), at("2030-05-03T17:00:00Z"), "closed time");
    assert_eq!(moved("2030-05-03T16:00:00Z", "2030-05-06T09:30:00Z"), at("2030-05-06T10:30:00Z"));
}

#[test]
fn a_stopped_row_is_neither_raised_nor_cleared() {
    let (levels, limits) = (levels(1, &[2]), limits());
    let day = |now: &str| Verdict::Stay(Some(later(clock(now), TimeDelta::days(1))));
    let judged = |stops: &Stops, alert, now: &str| {
        let start = clock("00:00:00");
        judge(RowState::Waiting { start, seen: start, stops }, alert, &levels, &limits, clock(now))
    };
    let stopped = stops(&[], Some("00:30:00"));
    for (alert, now) in [(told(0), "01:00:00"), (told(0), "05:00:00"), (told(1), "00:45:00"), (told(2), "05:00:00")] {
        assert_eq!(judged(&stopped, alert, now), day(now));
    }
    let untold = Alert { is_told: false, hold: Some(Hold::Until(clock("06:00:00"))), ..told(1) };
    assert_eq!(judged(&stopped, untold, "05:00:00"), Verdict::Stay(Some(clock("06:00:00"))), "the end of a hold");
    let over = stops(&[["00:30:00", "04:00:00"]], None);
    assert_eq!(judged(&over, told(0), "04:00:00"), Verdict::Ahead(clock("04:30:00")));
    assert_eq!(judged(&over, told(0), "04:30:00"), Verdict::Raise(1, Some(clock("05:30:00"))));
    let missed = stops(&[["01:30:00", "04:00:00"]], None);
    assert_eq!(judged(&missed, told(0), "04:00:00"), Verdict::Raise(1, Some(clock("04:30:00"))), "after the stop");
    assert_eq!(judge(RowState::Met, told(1), &levels, &limits, clock("05:00:00")), Verdict::Settled);
}

#[test]
fn a_stop_moves_reminders_and_repeated_tellings() {
    let levels = levels(10, &[]).telling(vec![h(3)], Some(h(2))).unwrap();
    let judged = |stops: &Stops, alert, seen: &str, now: &str| {
        judge(
            RowState::Waiting { start: clock("00:00:00"), seen: clock(seen), stops },
            alert,
            &levels,
            &limits(),
            clock(now),
        )
    };
    let early = stops(&[["01:00:00", "02:00:00"]], None);
    assert_eq!(judged(&early, Alert::NONE, "00:00:00", "07:00:00"), Verdict::Ahead(clock("08:00:00")));
    assert_eq!(judged(&early, Alert::NONE, "00:00:00", "08:00:00"), Verdict::Remind(clock("11:00:00")));
    assert_eq!(judged(&early, Alert::NONE, "07:30:00", "08:00:00"), Verdict::Remind(clock("11:00:00")));
    let between = stops(&[["07:30:00", "08:30:00"]], None);
    assert_eq!(judged(&between, Alert::NONE, "00:00:00", "09:00:00"), Verdict::Remind(clock("11:00:00")));
    let told = Alert { told_at: Some(clock("11:00:00.5")), ..told(1) };
    assert_eq!(judged(&early, told, "00:00:00", "12:00:00"), Verdict::Stay(Some(clock("13:00:00"))), "an old stop");
    let later = stops(&[["01:00:00", "02:00:00"], ["11:30:00", "12:00:00"]], None);
    assert_eq!(judged(&later, told, "00:00:00", "12:00:00"), Verdict::Stay(Some(clock("13:30:00"))));
}

#[test]
fn a_stop_is_clipped() {
    let seen = |known: Option<&Clock>, is_stopped, at: &str, earliest: &str| {
        let seen = Seen { start: clock("01:00:00"), is_stopped, at: clock(at), earliest: clock(earliest) };
        Clock::seen(known, seen)
    };
    let early = seen(None, true, "00:30:00", "01:00:00");
    assert_eq!(early.stops, stops(&[], Some("01:00:00")), "not before the clock");
    assert_eq!(seen(None, true, "02:00:00", "02:30:00").stops.since(), Some(clock("02:30:00")), "not before a level");
    assert_eq!(seen(Some(&early), true, "03:00:00", "01:00:00"), early, "it continues");
    let before = seen(Some(&early), false, "00:45:00", "01:00:00");
    assert_eq!(before.stops, Stops::NONE, "it ends no earlier than it began");
    let first = seen(Some(&early), false, "02:00:00", "01:00:00");
    assert_eq!(first.stops, stops(&[["01:00:00", "02:00:00"]], None));
    assert_eq!(seen(Some(&first), false, "03:00:00", "01:00:00"), first);
    let second = seen(Some(&first), true, "01:30:00", "01:00:00");
    assert_eq!(second.stops.since(), Some(clock("02:00:00")), "not before the end of the last stop");
    let moved = Seen { start: clock("01:10:00"), is_stopped: true, at: clock("04:00:00"), earliest: clock("01:10:00") };
    assert_eq!(Clock::seen(Some(&second), moved).stops, stops(&[], Some("04:00:00")), "another start");
}

#[test]
fn of_too_many_stops_the_two_oldest_are_joined() {
    let mut stops = Stops::NONE;
    let minute = |minute: i64| clock("00:00:00") + TimeDelta::minutes(minute);
    for number in 0..1_001 {
        stops.begin(minute(number * 3), Time::MIN_UTC);
        stops.end(minute(number * 3 + 1));
    }
    assert_eq!((stops.past().len(), MAX_STOPS), (1_000, 1_000));
    assert_eq!(stops.past()[..2], [minute(0)..minute(4), minute(6)..minute(7)], "with the gap between them");
    assert_eq!(stops.past().last(), Some(&(minute(3_000)..minute(3_001))));
}

/// Minute 0 is on a Tuesday.
fn is_office(minute: i64) -> bool {
    let (day, of_day) = (minute.div_euclid(1440), minute.rem_euclid(1440));
    (day + 1).rem_euclid(7) < 5 && (540..1020).contains(&of_day)
}

proptest! {
    #[test]
    fn a_due_time_is_reached_by_counting_minutes(
        began in 0_i64..10_000, within in 1_i64..3_000, in_office in any::<bool>(),
        changes in prop::collection::vec(1_i64..1_500, 0..12),
    ) {
        let minute = |minute: i64| at("2030-01-01T00:00:00Z") + TimeDelta::minutes(minute);
        let length = Length::Time(within * 60_000_000);
        let levels = if in_office { office(length) } else { Levels::new(Some(length), vec![], None).unwrap() };
        let is_open = |minute| !in_office || is_office(minute);
        let mut time = began;
        let times: Vec<i64> = changes.iter().map(|step| { time += step; time }).collect();
        let stops: Vec<Range<i64>> = times.chunks_exact(2).map(|pair| pair[0]..pair[1]).collect();
        let mut left = within;
        let counts = |minute: &i64| is_open(*minute) && !stops.iter().any(|stop| stop.contains(minute));
        let due = (began..).find(|minute| { left -= i64::from(counts(minute)); left == 0 }).unwrap() + 1;
        let mut row = Clock { start: minute(began), stops: Stops::NONE };
        for stop in &stops {
            for (is_stopped, time) in [(true, stop.start), (false, stop.end)] {
                let seen = Seen { start: minute(began), is_stopped, at: minute(time), earliest: minute(began) };
                row = Clock::seen(Some(&row), seen);
            }
        }
        let past: Vec<_> = stops.iter().map(|stop| minute(stop.start)..minute(stop.end)).collect();
        prop_assert_eq!(row.stops.past(), &past[..]);
        prop_assert_eq!(levels.moved(levels.due(minute(began)), &row.stops, Time::MIN_UTC), minute(due));
        let limits = Limits { width: width(60), ..limits() };
        let mut now = minute(began);
        for known in 0..=stops.len() {
            let so_far = Stops::new(past[..known].to_vec(), None);
            let state = RowState::Waiting { start: minute(began), seen: minute(began), stops: &so_far };
            if let Verdict::Raise(..) = judge(state, Alert::NONE, &levels, &limits, now) {
                prop_assert!(now >= minute(due));
            }
            now = past.get(known).map_or(now, |stop| stop.end);
        }
    }
}
