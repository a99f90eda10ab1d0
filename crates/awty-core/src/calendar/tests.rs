use super::*;
use crate::repeat::{Changes, Fixed};
use crate::testing::at;

const HOUR: i64 = 3_600_000_000;

fn berlin() -> Changes {
    Changes::new(3600, vec![(at("2026-03-29T01:00:00Z"), 7200), (at("2026-10-25T01:00:00Z"), 3600)])
}

fn day(text: &str) -> i64 {
    at(&format!("{text}T00:00:00Z")).timestamp() / 86_400
}

fn in_berlin(hours: &[&str], closed: &[&str]) -> Calendar<Changes> {
    let closed = closed.iter().map(|text| day(text)).collect();
    Calendar::new(Hours::new(hours.iter().copied()).unwrap(), closed, berlin())
}

fn in_utc(hours: &[&str], closed: &[&str]) -> Calendar<Fixed> {
    let closed = closed.iter().map(|text| day(text)).collect();
    Calendar::new(Hours::new(hours.iter().copied()).unwrap(), closed, Fixed::UTC)
}

fn office() -> Calendar<Fixed> {
    in_utc(&["mon-thu 09:00-12:30", "mon-thu 13:30-17:30", "fri 09:00-14:00"], &[])
}

fn due(calendar: &Calendar<impl Zone>, since: &str, length: Length) -> String {
    let due = calendar.due(at(since), length).expect("it is within reach");
    due.format("%a %m-%dT%H:%M").to_string()
}

fn before(calendar: &Calendar<impl Zone>, due: &str, length: Length) -> String {
    let reminder = calendar.before(at(due), length).expect("it is within reach");
    reminder.format("%a %m-%dT%H:%M").to_string()
}

#[test]
fn a_range_includes_its_start_and_excludes_its_end() {
    let office = office();
    assert!(office.is_open(at("2026-11-23T09:00:00Z")));
    assert!(!office.is_open(at("2026-11-23T08:59:59.999999Z")));
    assert!(office.is_open(at("2026-11-23T12:29:59.999999Z")));
    assert!(!office.is_open(at("2026-11-23T12:30:00Z")));
    assert!(!office.is_open(at("2026-11-28T10:00:00Z")));
    assert_eq!(office.next_opening(at("2026-11-23T10:00:00Z")), Some(at("2026-11-23T10:00:00Z")));
    assert_eq!(office.next_opening(at("2026-11-23T12:30:00Z")), Some(at("2026-11-23T13:30:00Z")));
    assert_eq!(office.next_opening(at("2026-11-27T14:00:00Z")), Some(at("2026-11-30T09:00:00Z")));
}

#[test]
fn hours_end_at_the_closing_that_completes_them() {
    let nine_to_five = in_utc(&["mon-fri 09:00-17:00"], &[]);
    assert_eq!(due(&nine_to_five, "2026-11-23T09:00:00Z", Length::Time(8 * HOUR)), "Mon 11-23T17:00");
    assert_eq!(due(&nine_to_five, "2026-11-23T09:00:00Z", Length::Time(8 * HOUR + 60_000_000)), "Tue 11-24T09:01");
    assert_eq!(due(&nine_to_five, "2026-11-27T16:30:00Z", Length::Time(HOUR)), "Mon 11-30T09:30");
    assert_eq!(due(&office(), "2026-11-23T12:00:00Z", Length::Time(HOUR)), "Mon 11-23T14:00");
}

#[test]
fn days_are_open_days() {
    let office = office();
    assert_eq!(due(&office, "2026-11-20T10:00:00Z", Length::Days(2)), "Tue 11-24T10:00");
    assert_eq!(due(&office, "2026-11-20T16:00:00Z", Length::Days(2)), "Wed 11-25T09:00");
    let long = in_utc(&["mon 08:00-20:00", "tue-thu 09:00-12:30", "tue-thu 13:30-17:30"], &[]);
    assert_eq!(due(&long, "2026-11-23T08:30:00Z", Length::Days(1)), "Tue 11-24T09:00");
    assert_eq!(due(&long, "2026-11-23T13:00:00Z", Length::Days(1)), "Tue 11-24T13:30");
    assert_eq!(due(&long, "2026-11-23T19:00:00Z", Length::Days(1)), "Tue 11-24T17:30");
}

#[test]
fn closed_days_are_no_open_days() {
    let closed = ["2026-12-25", "2026-12-24", "2026-12-25"];
    let office = in_utc(&["mon-fri 09:00-17:00"], &closed);
    assert_eq!(office.closed(), [day("2026-12-24"), day("2026-12-25")]);
    assert_eq!(due(&office, "2026-12-23T16:00:00Z", Length::Days(1)), "Mon 12-28T16:00");
    assert_eq!(due(&office, "2026-12-23T16:00:00Z", Length::Time(2 * HOUR)), "Mon 12-28T10:00");
    assert_eq!(before(&office, "2026-12-28T16:00:00Z", Length::Days(1)), "Wed 12-23T16:00");
    assert!(!office.is_open(at("2026-12-24T10:00:00Z")));
}

#[test]
fn a_reminder_is_as_late_as_its_length_allows() {
    let office = office();
    assert_eq!(before(&office, "2026-11-24T10:00:00Z", Length::Time(HOUR)), "Tue 11-24T09:00");
    assert_eq!(before(&office, "2026-11-24T10:00:00Z", Length::Time(2 * HOUR)), "Mon 11-23T16:30");
    assert_eq!(before(&office, "2026-11-23T10:00:00Z", Length::Days(1)), "Fri 11-20T10:00");
    let late = in_utc(&["mon-wed 09:00-12:30", "mon-wed 13:30-17:30", "thu 06:00-20:00"], &[]);
    assert_eq!(before(&late, "2026-11-26T13:00:00Z", Length::Days(1)), "Wed 11-25T12:30");
    assert_eq!(before(&late, "2026-11-26T19:00:00Z", Length::Days(2)), "Tue 11-24T17:30");
    assert_eq!(before(&late, "2026-11-26T07:00:00Z", Length::Days(3)), "Mon 11-23T09:00");
    assert_eq!(before(&late, "2026-11-25T17:30:00Z", Length::Days(1)), "Tue 11-24T17:30");
}

#[test]
fn skipped_time_does_not_exist_and_repeated_time_counts_twice() {
    let night = in_berlin(&["sun 01:00-04:00"], &[]);
    let open = |from, to| night.open_time(at(from), at(to)).num_hours();
    assert_eq!(open("2026-03-22T00:00:00Z", "2026-03-23T00:00:00Z"), 3);
    assert_eq!(open("2026-03-29T00:00:00Z", "2026-03-30T00:00:00Z"), 2);
    assert_eq!(open("2026-10-24T22:00:00Z", "2026-10-26T00:00:00Z"), 4);
    let daily = in_berlin(&["mon-sun 00:00-24:00"], &[]);
    assert_eq!(daily.due(at("2026-03-28T01:30:00Z"), Length::Days(1)), Some(at("2026-03-29T01:00:00Z")));
    assert_eq!(daily.due(at("2026-10-24T00:30:00Z"), Length::Days(1)), Some(at("2026-10-25T00:30:00Z")));
    assert_eq!(daily.due(at("2026-10-25T01:30:00Z"), Length::Days(1)), Some(at("2026-10-26T01:30:00Z")));
    let gap = in_berlin(&["sun 02:00-03:00"], &[]);
    assert_eq!(gap.due(at("2026-03-22T01:15:00Z"), Length::Days(1)), Some(at("2026-04-05T00:15:00Z")));
}

#[test]
fn what_is_not_within_ten_years_has_no_answer() {
    let never = in_utc(&[], &[]);
    let t = at("2026-11-23T09:00:00Z");
    assert_eq!(
        (never.next_opening(t), never.due(t, Length::Time(1)), never.due(t, Length::Days(1))),
        (None, None, None)
    );
    assert_eq!((never.before(t, Length::Time(1)), never.before(t, Length::Days(1))), (None, None));
    let always = Calendar::new(Hours::always(), vec![], Fixed::UTC);
    assert_eq!(always.due(t, Length::Days(3653)), Some(t + REACH));
    assert_eq!(always.due(t, Length::Days(3654)), None);
    assert_eq!(always.due(t, Length::Days(u32::MAX)), None);
    assert_eq!(always.due(t, Length::Time(3653 * 24 * HOUR)), Some(t + REACH));
    assert_eq!(always.due(t, Length::Time(3653 * 24 * HOUR + 1)), None);
    assert_eq!(always.before(t, Length::Time(3653 * 24 * HOUR)), Some(t - REACH));
    assert_eq!(always.before(t, Length::Time(i64::MAX)), None);
    for t in [Time::MIN_UTC, Time::MAX_UTC] {
        for length in [Length::Days(1), Length::Time(1)] {
            let _ = (always.due(t, length), always.before(t, length), always.next_opening(t), always.is_open(t));
        }
    }
    assert_eq!(always.due(Time::MAX_UTC, Length::Time(1)), None);
}

#[test]
fn the_last_closed_day_has_a_time() {
    let closed = |days| Calendar::new(Hours::always(), days, Fixed::UTC).day_out_of_reach();
    let last = Time::MAX_UTC.timestamp().div_euclid(86_400);
    assert_eq!(closed(vec![]), None);
    assert_eq!(closed(vec![last, -2_440_588]), None);
    assert_eq!(closed(vec![last + 1, 0]).as_deref(), Some("262143-01-01"));
    assert_eq!(closed(vec![2_145_042_905]).as_deref(), Some("5874897-12-31"));
}

#[test]
fn open_time_is_never_negative() {
    let office = office();
    let (from, to) = (at("2026-11-23T10:00:00Z"), at("2026-11-30T10:00:00Z"));
    assert_eq!(office.open_time(from, to), TimeDelta::minutes(5 * 60 + 30 + 3 * 450 + 300 + 60 + 60));
    assert_eq!(office.open_time(to, from), TimeDelta::zero());
    assert_eq!(office.open_time(from, from), TimeDelta::zero());
}
