//! The planned times of `every` or `cron` in a time zone, restricted by a start, an end and a calendar.
//!
//! Invariant: planned times are whole microseconds in increasing order.

use super::civil::{micros, moment};
use super::error::RepeatError;
use super::local_time::{Zone, first_shown, shown_until, span_at};
use super::steps::step;
use super::{Cron, Every};
use crate::calendar::{Calendar, REACH};
use crate::{Time, Width, later};
use chrono::TimeDelta;
use std::fmt;
use std::rc::Rc;

/// A search gives up after this many planned times at which the calendar is closed, which is enough for ten years of a
/// daily plan.
const MISSES: u32 = 4_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rhythm {
    Every(Every),
    Cron(Cron),
}

impl Rhythm {
    /// Returns true if the user must give a time zone. There is no default, because users do not expect UTC.
    pub fn needs_zone(&self) -> bool {
        match self {
            Self::Every(every) => every.needs_zone(),
            Self::Cron(cron) => cron.needs_zone(),
        }
    }
}

impl fmt::Display for Rhythm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Every(every) => write!(f, "every \"{every}\""),
            Self::Cron(cron) => write!(f, "cron expression \"{}\"", cron.text()),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Plan<Z> {
    rhythm: Rhythm,
    zone: Z,
    starts: Option<Time>,
    ends: Option<Time>,
    calendar: Option<Rc<Calendar<Z>>>,
    /// Time from which `every` counts: in UTC for lengths in hours, minutes or seconds, and in local time for lengths
    /// in days or months.
    anchor: i64,
}

impl<Z: Zone> Plan<Z> {
    /// All planned times are between `starts` and `ends`, which are both included.
    pub fn new(rhythm: Rhythm, zone: Z, starts: Option<Time>, ends: Option<Time>) -> Self {
        let starts = starts.map(whole);
        let anchor = match (&rhythm, starts.map(micros)) {
            (Rhythm::Cron(_), _) => 0,
            (Rhythm::Every(Every::Clock(_)), Some(start)) => start,
            (Rhythm::Every(every @ Every::Clock(_)), None) => first_shown(&zone, every.anchor()),
            (Rhythm::Every(_), Some(start)) => start.saturating_add(span_at(&zone, start).shift()),
            (Rhythm::Every(every), None) => every.anchor(),
        };
        Self { rhythm, zone, starts, ends, calendar: None, anchor }
    }

    pub fn within(self, calendar: Option<Rc<Calendar<Z>>>) -> Self {
        Self { calendar, ..self }
    }

    pub fn rhythm(&self) -> &Rhythm {
        &self.rhythm
    }

    pub fn next(&self, after: Time) -> Option<Time> {
        self.next_until(after, Time::MAX_UTC)
    }

    /// Returns the next planned time up to `until`. The limit saves time, because a longer search in a calendar may
    /// take milliseconds.
    fn next_until(&self, after: Time, until: Time) -> Option<Time> {
        let until = self.ends.map_or(until, |end| end.min(until));
        let next = match &self.calendar {
            Some(calendar) => self.next_open(calendar, after, until)?,
            None => self.next_planned(after)?,
        };
        (next <= until).then_some(next)
    }

    fn next_planned(&self, after: Time) -> Option<Time> {
        match self.starts {
            // With `every`, returns the start without a search by local time. The search could miss a start in the hour
            // that repeats when clocks are set back.
            Some(start) if after < start && matches!(self.rhythm, Rhythm::Every(_)) => Some(start),
            Some(start) if after < start => moment(self.next_micros(micros(start) - 1)?),
            _ => moment(self.next_micros(micros(after))?),
        }
    }

    fn next_open(&self, calendar: &Calendar<Z>, after: Time, until: Time) -> Option<Time> {
        let mut next = self.next_planned(after)?;
        let last = later(next, REACH).min(until);
        for _ in 0..MISSES {
            step();
            if next > last {
                break;
            }
            let opening = calendar.next_opening(next)?;
            if opening == next {
                return Some(next);
            }
            next = self.next_planned(just_before(opening))?;
        }
        None
    }

    pub fn is_shut(&self, after: Time) -> bool {
        let planned =
            |calendar| self.next_planned(after).is_some() && self.next_open(calendar, after, Time::MAX_UTC).is_none();
        self.calendar.as_deref().is_some_and(planned)
    }

    fn next_micros(&self, after: i64) -> Option<i64> {
        match &self.rhythm {
            Rhythm::Cron(cron) => cron.next(&self.zone, after),
            Rhythm::Every(every @ Every::Clock(_)) => every.next(self.anchor, after),
            Rhythm::Every(every) => {
                let local = every.next(self.anchor, shown_until(&self.zone, after))?;
                Some(first_shown(&self.zone, local))
            }
        }
    }

    pub fn moments(&self, after: Time) -> impl Iterator<Item = Time> {
        self.moments_until(after, Time::MAX_UTC)
    }

    pub fn moments_until(&self, after: Time, until: Time) -> impl Iterator<Item = Time> {
        std::iter::successors(self.next_until(after, until), move |&last| self.next_until(last, until))
    }

    pub fn count(&self, after: Time, until: Time) -> u64 {
        let Some(first) = self.next_until(after, until) else { return 0 };
        let until = self.ends.map_or(until, |end| end.min(until));
        match self.rhythm {
            Rhythm::Every(Every::Clock(length)) => {
                1 + (micros(until) - micros(first)).unsigned_abs() / length.unsigned_abs()
            }
            _ => self.moments_until(after, until).fold(0, |count, _| count + 1),
        }
    }

    pub fn contains(&self, t: Time) -> bool {
        self.next(just_before(t)) == Some(t)
    }

    pub fn last(&self, since: Time, until: Time) -> Option<Time> {
        let mut last = self.next_until(since, until)?;
        let mut high = until;
        while let Some(next) = self.next_until(last, until) {
            let middle = next.max(last + (high - last) / 2);
            match self.next_until(middle, until) {
                Some(later) => last = later,
                None => (last, high) = (next, middle),
            }
        }
        Some(last)
    }

    /// Returns the shortest time between two planned times. A longer time than a day counts as a day.
    pub fn closest(&self) -> TimeDelta {
        match &self.rhythm {
            Rhythm::Every(Every::Clock(length)) => TimeDelta::microseconds(*length).min(TimeDelta::days(1)),
            Rhythm::Every(Every::Calendar { .. }) => TimeDelta::days(1),
            Rhythm::Cron(cron) => cron.closest(),
        }
    }

    pub fn check(&self, server: Width, now: Time) -> Result<(), RepeatError> {
        if self.closest() < server.delta() {
            return Err(RepeatError::TooClose { closest: self.closest(), slot: server });
        }
        if self.ends.is_some_and(|end| end <= now || self.starts.is_some_and(|start| end <= start)) {
            return Err(RepeatError::EndsTooEarly);
        }
        match (self.next(now), self.ends) {
            (Some(_), _) => Ok(()),
            _ if self.is_shut(now) => Err(RepeatError::NeverOpen(self.rhythm.to_string())),
            (None, None) => Err(RepeatError::NeverComes(self.rhythm.to_string())),
            (None, Some(_)) => Err(RepeatError::NoneBeforeEnd(self.rhythm.to_string())),
        }
    }
}

fn whole(t: Time) -> Time {
    match t.timestamp_subsec_nanos() % 1000 {
        0 => t,
        nanos => crate::later(t, TimeDelta::nanoseconds(i64::from(1000 - nanos))),
    }
}

pub(super) fn just_before(t: Time) -> Time {
    earlier(t, TimeDelta::microseconds(1))
}

pub(super) fn earlier(t: Time, delta: TimeDelta) -> Time {
    t.checked_sub_signed(delta).unwrap_or(Time::MIN_UTC)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::Hours;
    use crate::repeat::Fixed;
    use crate::repeat::steps::counted;
    use crate::testing::at;

    #[test]
    fn a_count_is_the_number_of_moments() {
        let (after, until) = (at("2026-03-28T12:00:00Z"), at("2026-03-28T13:00:00Z"));
        let seconds = |seconds: i64| Rhythm::Every(Every::Clock(seconds * 1_000_000));
        for rhythm in [seconds(7), seconds(3600), seconds(7200), Rhythm::new(None, Some("*/7 * * * *")).unwrap()] {
            for (starts, ends) in [
                (None, None),
                (Some("12:00:05Z"), None),
                (None, Some("12:59:59Z")),
                (Some("12:10:00Z"), Some("12:10:01Z")),
            ] {
                let day = |time: &str| at(&format!("2026-03-28T{time}"));
                let plan = Plan::new(rhythm.clone(), Fixed::UTC, starts.map(day), ends.map(day));
                let moments = plan.moments(after).take_while(|&moment| moment <= until).count();
                assert_eq!(plan.count(after, until), moments as u64, "{plan:?}");
            }
        }
        let plan = Plan::new(seconds(1), Fixed::UTC, None, None);
        assert_eq!(plan.count(after, after + TimeDelta::days(30)), 2_592_000);
    }

    #[test]
    fn a_search_in_a_calendar_ends_at_the_requested_time() {
        let hours: Vec<String> = (0..24).map(|hour| format!("tue-sun {hour:02}:29-{hour:02}:30")).collect();
        let hours = Hours::new(hours.iter().map(String::as_str).chain(["mon 12:30-12:31"])).unwrap();
        let calendar = Rc::new(Calendar::new(hours, Vec::new(), Fixed::UTC));
        let rhythm = Rhythm::new(None, Some("30 * * * *")).unwrap();
        let plan = Plan::new(rhythm, Fixed::UTC, None, None).within(Some(calendar));
        let (monday, hour) = (at("2026-11-23T12:30:00Z"), TimeDelta::hours(1));
        let (found, steps) = counted(|| plan.moments_until(monday, monday + hour).count());
        assert!(found == 0 && steps < 20, "{found} moments after {steps} steps");
        let week = monday + TimeDelta::weeks(1);
        assert_eq!(plan.moments_until(monday, week).collect::<Vec<_>>(), [week]);
        assert_eq!(plan.moments_until(monday, week - hour).count(), 0);
    }
}
