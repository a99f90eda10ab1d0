//! Weekly opening hours such as `mon-fri 09:00-17:00`.
//!
//! Invariant: the ranges of a weekday are sorted, disjoint and not adjacent, so that equal hours have equal texts.

use super::hours_error::{Fault, HoursError};
use crate::repeat::civil::{DAY, SECOND};
use std::ops::Range;

const MINUTE: i64 = 60 * SECOND;
const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// Open ranges of each weekday, in microseconds since local midnight. The first weekday is Monday.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hours([Vec<Range<i64>>; 7]);

impl Hours {
    /// Parses elements such as `mon-thu 09:00-12:30`, and joins overlapping hours.
    ///
    /// ```
    /// # use awty_core::calendar::Hours;
    /// let hours = Hours::new(["mon-fri 9:00-12:00", "MON 11:00-14:00"]).expect("both can be read");
    /// assert_eq!(hours.elements(), ["mon 09:00-14:00", "tue-fri 09:00-12:00"]);
    /// ```
    pub fn new<'a>(elements: impl IntoIterator<Item = &'a str>) -> Result<Self, HoursError> {
        let mut week: [Vec<Range<i64>>; 7] = Default::default();
        for element in elements {
            let (days, range) = parse(element).map_err(|fault| HoursError::new(element, fault))?;
            for day in days.each() {
                week[day].push(range.clone());
            }
        }
        Ok(Self(week.map(union)))
    }

    pub fn always() -> Self {
        Self(std::array::from_fn(|_| std::iter::once(0..DAY).collect()))
    }

    pub(super) fn of_weekday(&self, weekday: usize) -> &[Range<i64>] {
        &self.0[weekday]
    }

    pub fn weekdays(&self) -> usize {
        self.0.iter().filter(|ranges| !ranges.is_empty()).count()
    }

    pub fn elements(&self) -> Vec<String> {
        let mut elements = Vec::new();
        for (first, ranges) in self.0.iter().enumerate() {
            for range in ranges {
                let has = |day: usize| self.0[day].contains(range);
                if first > 0 && has(first - 1) {
                    continue;
                }
                let last = (first..7).take_while(|&day| has(day)).last().unwrap_or(first);
                elements.push(text(Days { first, last }, range));
            }
        }
        elements
    }
}

/// If `last` is before `first`, as in `sat-mon`, the range continues in the next week.
#[derive(Clone, Copy)]
struct Days {
    first: usize,
    last: usize,
}

impl Days {
    fn each(self) -> impl Iterator<Item = usize> {
        let count = (self.last + 7 - self.first) % 7 + 1;
        (self.first..self.first + count).map(|day| day % 7)
    }

    fn next(self) -> Self {
        Self { first: (self.first + 1) % 7, last: (self.last + 1) % 7 }
    }
}

fn union(mut ranges: Vec<Range<i64>>) -> Vec<Range<i64>> {
    ranges.sort_by_key(|range| range.start);
    let mut union: Vec<Range<i64>> = Vec::new();
    for range in ranges {
        match union.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => union.push(range),
        }
    }
    union
}

fn parse(element: &str) -> Result<(Days, Range<i64>), Fault> {
    let mut words = element.split_whitespace();
    let (Some(days), Some(times), None) = (words.next(), words.next(), words.next()) else { return Err(Fault::Form) };
    let (first, last) = days.split_once('-').unwrap_or((days, days));
    let days = Days { first: weekday(first)?, last: weekday(last)? };
    let (from, to) = times.split_once('-').ok_or(Fault::Form)?;
    let start = minutes(from).filter(|&minutes| minutes < 1440).ok_or_else(|| Fault::Start(from.into()))? * MINUTE;
    let end = minutes(to).ok_or_else(|| Fault::End(to.into()))? * MINUTE;
    match (start, end) {
        (start, end) if start < end => Ok((days, start..end)),
        (start, end) if start == end => Err(Fault::Empty),
        (start, 0) => Err(Fault::Backwards { instead: vec![text(days, &(start..DAY))] }),
        (start, end) => {
            Err(Fault::Backwards { instead: vec![text(days, &(start..DAY)), text(days.next(), &(0..end))] })
        }
    }
}

fn weekday(word: &str) -> Result<usize, Fault> {
    DAYS.iter().position(|day| day.eq_ignore_ascii_case(word)).ok_or_else(|| Fault::Day(word.into()))
}

fn minutes(word: &str) -> Option<i64> {
    let (hour, minute) = word.split_once(':')?;
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !(1..=2).contains(&hour.len()) || minute.len() != 2 || !digits(hour) || !digits(minute) {
        return None;
    }
    let (hour, minute): (i64, i64) = (hour.parse().ok()?, minute.parse().ok()?);
    Some(hour * 60 + minute).filter(|&minutes| minute < 60 && minutes <= 1440)
}

fn text(days: Days, range: &Range<i64>) -> String {
    let (first, last) = (DAYS[days.first], DAYS[days.last]);
    let days = if first == last { first.to_owned() } else { format!("{first}-{last}") };
    let clock = |time: i64| format!("{:02}:{:02}", time / MINUTE / 60, time / MINUTE % 60);
    format!("{days} {}-{}", clock(range.start), clock(range.end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn canonical(elements: &[&str]) -> Vec<String> {
        Hours::new(elements.iter().copied()).unwrap().elements()
    }

    fn refused(element: &str) -> (String, String) {
        let error = Hours::new(["mon 09:00-17:00", element]).unwrap_err();
        (error.to_string(), error.hint())
    }

    #[test]
    fn equal_hours_have_equal_elements() {
        let office = ["mon-thu 09:00-12:30", "mon-thu 13:30-17:30", "fri 09:00-14:00"];
        assert_eq!(canonical(&office), office);
        assert_eq!(canonical(&["fri-mon 9:00-10:00"]), ["mon 09:00-10:00", "fri-sun 09:00-10:00"]);
        assert_eq!(canonical(&["Mon-MON 00:00-24:00"]), ["mon 00:00-24:00"]);
        assert_eq!(canonical(&["tue-mon 00:00-12:00", "mon-sun 12:00-24:00"]), ["mon-sun 00:00-24:00"]);
        assert_eq!(canonical(&["mon 13:00-14:00", "  mon\t09:00-13:30  ", "mon 10:00-11:00"]), ["mon 09:00-14:00"]);
        assert_eq!(Hours::always().elements(), ["mon-sun 00:00-24:00"]);
        assert!(canonical(&[]).is_empty());
    }

    #[test]
    fn weekdays_with_hours_are_counted() {
        assert_eq!(Hours::new(["mon-thu 09:00-12:30", "mon-fri 13:30-17:30"]).unwrap().weekdays(), 5);
        assert_eq!(Hours::always().weekdays(), 7);
    }

    #[test]
    fn hours_over_midnight_are_written_as_two() {
        let (message, hint) = refused("mon 17:00-09:00");
        assert_eq!(message, r#"hours "mon 17:00-09:00" end before they begin"#);
        assert_eq!(hint, r#"Write "mon 17:00-24:00" and "tue 00:00-09:00"."#);
        assert_eq!(refused("thu-sun 22:00-6:00").1, r#"Write "thu-sun 22:00-24:00" and "fri-mon 00:00-06:00"."#);
        assert_eq!(refused("mon 17:00-00:00").1, r#"Write "mon 17:00-24:00"."#);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let form = r#"Write days and times as in "mon-fri 09:00-17:00"."#;
        for (element, fault) in [
            ("", "it has no days and times"),
            ("mon", "it has no days and times"),
            ("mon 09:00", "it has no days and times"),
            ("mon 09:00-12:00 13:00-17:00", "it has no days and times"),
            ("mon, tue 09:00-17:00", "it has no days and times"),
            ("monday 09:00-17:00", r#""monday" is not a day from mon to sun"#),
            ("mon- 09:00-17:00", r#""" is not a day from mon to sun"#),
            ("mon-tue-wed 09:00-17:00", r#""tue-wed" is not a day from mon to sun"#),
            ("mon 9-17", r#""9" is not a time from 00:00 to 23:59"#),
            ("mon 24:00-24:00", r#""24:00" is not a time from 00:00 to 23:59"#),
            ("mon +9:00-17:00", r#""+9:00" is not a time from 00:00 to 23:59"#),
            ("mon 09:60-17:00", r#""09:60" is not a time from 00:00 to 23:59"#),
            ("mon 09:00-24:01", r#""24:01" is not a time from 00:00 to 24:00"#),
            ("mon 09:00-017:00", r#""017:00" is not a time from 00:00 to 24:00"#),
            ("mon 09:00-09:00", "they end when they begin"),
        ] {
            assert_eq!(refused(element), (format!("hours \"{element}\" cannot be read: {fault}"), form.to_owned()));
        }
        let long = "x".repeat(70_000);
        assert_eq!(refused(&long).0.len(), r#"hours "…" cannot be read: it has no days and times"#.len() + 64);
    }

    proptest! {
        #[test]
        fn the_union_has_each_minute_of_each_element(
            elements in prop::collection::vec((0_usize..7, 0_usize..7, 0_i64..1440, 1_i64..1441), 0..12),
        ) {
            let all: Vec<_> = elements.into_iter().filter(|(_, _, from, to)| from < to).collect();
            let write = |&(first, last, from, to): &(usize, usize, i64, i64)| {
                text(Days { first, last }, &(from * MINUTE..to * MINUTE))
            };
            let texts: Vec<String> = all.iter().map(write).collect();
            let hours = Hours::new(texts.iter().map(String::as_str)).unwrap();
            for day in 0..7 {
                for minute in 0..1440 {
                    let in_days = |first: usize, last: usize| {
                        if first <= last { (first..=last).contains(&day) } else { day >= first || day <= last }
                    };
                    let expected = all.iter().any(|&(first, last, from, to)| in_days(first, last) && (from..to).contains(&minute));
                    let open = hours.of_weekday(day).iter().any(|range| range.contains(&(minute * MINUTE)));
                    prop_assert_eq!(open, expected);
                }
            }
            let again = hours.elements();
            prop_assert_eq!(Hours::new(again.iter().map(String::as_str)).unwrap(), hours);
        }
    }
}
