//! Compares calendars with a simple model, in time zones of the whole world.

#![allow(clippy::unwrap_used)] // a panic is how a test fails

mod minutes;
mod world;
mod zones;

use awty_core::Time;
use awty_core::calendar::{Calendar, Hours, Length, REACH};
use awty_core::repeat::Remembered;
use minutes::{Element, MINUTE, Minutes};
use std::collections::HashSet;
use world::{Dice, ZONES};
use zones::{Real, at, tz, zone};

const DAY: i64 = 1440 * MINUTE;
/// Number of minutes in ten years, plus a margin of a few days.
const COUNT: usize = 3660 * 1440;

fn elements(dice: &mut Dice) -> (Vec<Element>, Vec<String>) {
    const NAMES: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    let count = 1 + dice.below(6);
    let element = |dice: &mut Dice| {
        let times = dice.pick(&[
            "00:00-24:00",
            "09:00-12:30",
            "13:30-17:30",
            "00:00-00:01",
            "23:00-24:00",
            "01:15-03:00",
            "02:00-03:00",
            "",
        ]);
        let clock = |text: &str| text[..2].parse::<i64>().unwrap() * 60 + text[3..].parse::<i64>().unwrap();
        let (from, to) = match times.split_once('-') {
            Some((from, to)) => (clock(from), clock(to)),
            None => {
                let from = dice.below(1440);
                (from, from + 1 + dice.below(1440 - from))
            }
        };
        Element { days: (dice.below(7), dice.below(7)), from, to }
    };
    let elements: Vec<Element> = (0..count).map(|_| element(dice)).collect();
    let text = |&Element { days: (first, last), from, to }: &Element| {
        let days = format!("{}-{}", NAMES[first as usize], NAMES[last as usize]);
        format!("{days} {}:{:02}-{}:{:02}", from / 60, from % 60, to / 60, to % 60)
    };
    let texts = elements.iter().map(text).collect();
    (elements, texts)
}

struct Case {
    name: &'static str,
    calendar: Calendar<Remembered<Real>>,
    minutes: Minutes,
    changes: Vec<i64>,
    first: i64,
}

impl Case {
    fn new(name: &'static str, dice: &mut Dice) -> Self {
        let first = at("1975-01-01T00:00:00Z").timestamp_micros() + dice.below(50 * 365) * DAY;
        let (elements, texts) = elements(dice);
        let closed: HashSet<i64> = (0..dice.below(400)).map(|_| first / DAY + dice.below(3660)).collect();
        let minutes = Minutes::new(tz(name), first / MINUTE, COUNT, &elements, &closed);
        let hours = Hours::new(texts.iter().map(String::as_str)).unwrap();
        let changes = minutes.changes();
        Self { name, calendar: Calendar::new(hours, closed.into_iter().collect(), zone(name)), minutes, changes, first }
    }

    fn moment(&self, dice: &mut Dice) -> i64 {
        let any = self.first + 2 * DAY + dice.below(3655 * DAY);
        let t = match self.changes.len() {
            0 => any,
            count if dice.below(3) > 0 => {
                self.changes[dice.below(count as i64) as usize] + dice.below(4 * DAY) - 2 * DAY
            }
            _ => any,
        };
        let t = t.clamp(self.first + 2 * DAY, self.first + 3657 * DAY);
        if dice.below(2) == 0 { t - t.rem_euclid(MINUTE) } else { t }
    }

    fn same(&self, found: Option<Time>, expected: Option<i64>, what: &str) -> i64 {
        let known = self.first + 2 * DAY..self.first + 3658 * DAY;
        let found = found.map(|t| t.timestamp_micros()).filter(|t| known.contains(t));
        let expected = expected.filter(|t| known.contains(t));
        let shown = |t: Option<i64>| t.map(|t| time(t).to_string());
        assert_eq!(
            shown(found),
            shown(expected),
            "{what} in {} with {:?}",
            self.name,
            self.calendar.hours().elements()
        );
        i64::from(found.is_some())
    }
}

fn time(t: i64) -> Time {
    Time::from_timestamp_micros(t).unwrap()
}

fn length(dice: &mut Dice) -> i64 {
    let most = [DAY / 24, DAY, 40 * DAY][dice.below(3) as usize];
    let t = 1 + dice.below(most);
    if dice.below(2) == 0 { (t / MINUTE / 15 + 1) * 15 * MINUTE } else { t }
}

fn compare(case: &Case, dice: &mut Dice) -> i64 {
    let Case { name, calendar, minutes, .. } = case;
    let (t, other) = (case.moment(dice), case.moment(dice));
    assert_eq!(calendar.is_open(time(t)), minutes.is_open(t), "{} in {name}", time(t));
    case.same(calendar.next_opening(time(t)), minutes.next_opening(t), &format!("opening from {}", time(t)));
    let open = calendar.open_time(time(t), time(other)).num_microseconds().unwrap();
    assert_eq!(open, minutes.open_time(t, other), "from {} to {} in {name}", time(t), time(other));

    let hours = length(dice);
    let most = [3, 40][dice.below(2) as usize];
    let days = 1 + dice.below(most);
    let what = format!("{hours} us or {days} days from {}", time(t));
    let (by_hours, by_days, number) = (Length::Time(hours), Length::Days(days as u32), days as usize);
    case.same(calendar.due(time(t), by_hours), minutes.after_time(t, hours), &what)
        + case.same(calendar.due(time(t), by_days), minutes.after_days(t, number), &what)
        + case.same(calendar.before(time(t), by_hours), minutes.before_time(t, hours), &what)
        + case.same(calendar.before(time(t), by_days), minutes.before_days(t, number), &what)
}

fn a_later_start_is_never_due_earlier(case: &Case, dice: &mut Dice) {
    let mut starts: Vec<i64> = (0..10).map(|_| case.moment(dice)).collect();
    starts.extend(starts.clone().into_iter().map(|t| t + dice.below(DAY)));
    starts.sort_unstable();
    let (hours, days) = (Length::Time(length(dice)), Length::Days(1 + dice.below(9) as u32));
    let due = |t, length| case.calendar.due(time(t), length).unwrap_or(Time::MAX_UTC);
    let rises = |starts: &[i64], length: Length| {
        for pair in starts.windows(2) {
            let in_order = due(pair[0], length) <= due(pair[1], length);
            assert!(in_order, "{length:?} from {} and {} in {}", time(pair[0]), time(pair[1]), case.name);
        }
    };
    rises(&starts, hours);
    starts.retain(|&t| !case.minutes.is_in_fold(t));
    rises(&starts, days);
}

fn nothing_is_due_after_ten_years(case: &Case, dice: &mut Dice) {
    let (t, days) = (time(case.moment(dice)), 3600 + dice.below(200));
    for length in [Length::Time(days * DAY), Length::Days(days as u32)] {
        let due = case.calendar.due(t, length);
        assert!(due.is_none_or(|due| due <= t + REACH), "{length:?} from {t} in {}", case.name);
    }
}

#[test]
fn in_every_zone_a_calendar_is_what_counting_each_minute_gives() {
    let mut dice = Dice::new(34);
    let mut found = 0;
    for name in ZONES {
        let case = Case::new(name, &mut dice);
        found += (0..200).map(|_| compare(&case, &mut dice)).sum::<i64>();
        for _ in 0..10 {
            a_later_start_is_never_due_earlier(&case, &mut dice);
            nothing_is_due_after_ten_years(&case, &mut dice);
        }
    }
    assert!(found > 40_000, "only {found} moments were compared");
}
