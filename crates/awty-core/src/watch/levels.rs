//! Computes when a table's row becomes late, and when its alert rises to each level.

use super::Stops;
use crate::argument_limits::{MAX_LEVELS, MAX_REMINDERS};
use crate::calendar::{Calendar, Length};
use crate::repeat::Zone;
use crate::{Time, Width, later};
use chrono::TimeDelta;
use std::mem::discriminant;
use std::rc::Rc;

/// Lengths of time until each level of a row's alert. The lengths count from the start of the row's clock or, without
/// `within`, from the row's due time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Levels<Z> {
    within: Option<Length>,
    escalate: Vec<Length>,
    remind: Vec<Length>,
    every: Option<Length>,
    /// Without a calendar, all time is open.
    calendar: Option<Rc<Calendar<Z>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelError {
    Within,
    Escalate(usize),
    TooMany,
    /// Position (from 1) of the first reminder with a wrong length. A reminder's length must be positive, and shorter
    /// than the previous length in the same unit (days or hours).
    Remind(usize),
    TooManyReminders,
    Every,
}

impl<Z: Zone> Levels<Z> {
    /// # Errors
    /// [`LevelError`] if a length is not positive, or not longer than the previous length in the same unit (days or
    /// hours).
    pub fn new(
        within: Option<Length>,
        escalate: Vec<Length>,
        calendar: Option<Rc<Calendar<Z>>>,
    ) -> Result<Self, LevelError> {
        if within.is_some_and(|within| amount(within) <= 0) {
            return Err(LevelError::Within);
        }
        if escalate.len() >= MAX_LEVELS {
            return Err(LevelError::TooMany);
        }
        let levels = Self { within, escalate, remind: Vec::new(), every: None, calendar };
        for (place, length) in levels.escalate.iter().enumerate() {
            let before = levels.below(place + 1).find(|other| is_same_kind(other, length)).map_or(0, amount);
            if amount(*length) <= before {
                return Err(LevelError::Escalate(place + 1));
            }
        }
        Ok(levels)
    }

    /// Adds the reminders before the alert's first level, and the interval at which awty repeats an alert of the last
    /// level.
    pub fn telling(mut self, remind: Vec<Length>, every: Option<Length>) -> Result<Self, LevelError> {
        if remind.len() > MAX_REMINDERS {
            return Err(LevelError::TooManyReminders);
        }
        for (place, length) in remind.iter().enumerate() {
            let before = remind[..place].iter().rev().find(|other| is_same_kind(other, length));
            if amount(*length) <= 0 || before.is_some_and(|before| amount(*before) <= amount(*length)) {
                return Err(LevelError::Remind(place + 1));
            }
        }
        if every.is_some_and(|every| amount(every) <= 0) {
            return Err(LevelError::Every);
        }
        (self.remind, self.every) = (remind, every);
        Ok(self)
    }

    pub fn reminders(&self, start: Time) -> impl Iterator<Item = Time> {
        let due = self.due(start);
        self.remind.iter().filter_map(move |length| self.before(due, *length))
    }

    fn before(&self, due: Time, length: Length) -> Option<Time> {
        if [Time::MIN_UTC, Time::MAX_UTC].contains(&due) {
            return None;
        }
        match (&self.calendar, length) {
            (None, Length::Time(time)) => due.checked_sub_signed(TimeDelta::microseconds(time)),
            (None, Length::Days(days)) => due.checked_sub_signed(TimeDelta::days(days.into())),
            (Some(calendar), length) => calendar.before(due, length),
        }
    }

    pub fn again(&self, told_at: Time) -> Option<Time> {
        self.every.map(|every| self.after(told_at, Some(every)))
    }

    pub fn calendar(&self) -> Option<&Calendar<Z>> {
        self.calendar.as_deref()
    }

    pub fn due(&self, start: Time) -> Time {
        self.after(start, self.within)
    }

    /// Returns when a level is due. Level 1 is the lowest level. Returns [`Time::MAX_UTC`] if the calendar does not
    /// reach that far.
    pub fn time(&self, level: u32, start: Time) -> Option<Time> {
        let place = usize::try_from(level).ok()?.checked_sub(1)?;
        let Some(before) = place.checked_sub(1) else { return Some(self.due(start)) };
        let length = *self.escalate.get(before)?;
        let own = self.after(start, Some(length));
        // A level must not be due before a lower level. Levels in the same unit (hours or days) are already in order,
        // so only the nearest lower level in the other unit can be later.
        let other = self.below(place).find(|other| !is_same_kind(other, &length));
        Some(other.map_or(own, |other| own.max(self.after(start, Some(other)))))
    }

    /// Postpones `time` by the length of the row's past stops, because the row's clock does not run during a stop.
    /// Ignores the part of a stop before `from`.
    pub fn moved(&self, time: Time, stops: &Stops, from: Time) -> Time {
        stops.past().iter().filter(|stop| stop.end > from).fold(time, |time, stop| {
            if stop.start >= time {
                return time;
            }
            let begin = stop.start.max(from);
            let length = match &self.calendar {
                Some(calendar) => calendar.open_time(begin, stop.end),
                None => stop.end - begin,
            };
            match length.num_microseconds() {
                Some(0) => time,
                Some(length) => self.after(time, Some(Length::Time(length))),
                None => Time::MAX_UTC,
            }
        })
    }

    /// Returns the calendar's next opening if an alert must wait for the opening. Returns `None` if the alert may be
    /// raised now.
    ///
    /// While the calendar is closed, an alert may be raised until one slot width after `due`. If an open period has no
    /// slot, the first slot after the opening counts as open.
    pub(super) fn shut_until(&self, due: Time, width: Width, now: Time) -> Option<Time> {
        let calendar = self.calendar.as_deref()?;
        if now <= later(due, width.delta()) || calendar.is_open(now) {
            return None;
        }
        let before = width.floor(now).checked_sub_signed(width.delta())?;
        let opening = calendar.next_opening(before).map(|opening| width.round_up(opening));
        if opening.is_some_and(|slot| slot <= now && !calendar.is_open(slot)) {
            return None;
        }
        Some(calendar.next_opening(now).unwrap_or(Time::MAX_UTC))
    }

    fn below(&self, place: usize) -> impl Iterator<Item = Length> {
        self.escalate[..place - 1].iter().rev().copied().chain(self.within)
    }

    /// Returns the time at which `length` has passed since `start`. Without a length, returns the calendar's first open
    /// time at or after `start`.
    ///
    /// The moment of closing counts as open, because `length` may end at a closing.
    fn after(&self, start: Time, length: Option<Length>) -> Time {
        if start == Time::MIN_UTC {
            return start;
        }
        match (&self.calendar, length) {
            (None, None) => start,
            (None, Some(Length::Time(time))) => later(start, TimeDelta::microseconds(time)),
            (None, Some(Length::Days(days))) => later(start, TimeDelta::days(days.into())),
            (Some(calendar), None) if calendar.is_open(before(start)) => start,
            (Some(calendar), None) => calendar.next_opening(start).unwrap_or(Time::MAX_UTC),
            (Some(calendar), Some(length)) => calendar.due(start, length).unwrap_or(Time::MAX_UTC),
        }
    }
}

fn before(time: Time) -> Time {
    time.checked_sub_signed(TimeDelta::microseconds(1)).unwrap_or(time)
}

fn is_same_kind(one: &Length, other: &Length) -> bool {
    discriminant(one) == discriminant(other)
}

fn amount(length: Length) -> i64 {
    match length {
        Length::Days(days) => days.into(),
        Length::Time(time) => time,
    }
}
