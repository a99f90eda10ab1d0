use super::usable;
use crate::call::args::{Args, calls};
use crate::call::argument_limits::MAX_CALENDAR;
use crate::error::{CalendarError, Error, Result};
use crate::pg::clock;
use crate::pg::text::Text;
use crate::pg::zone::Local;
use awty_core::calendar::{Calendar, Length};
use awty_core::{Time, later};
use chrono::TimeDelta;
use pgrx::datum::{Interval, TimestampWithTimeZone};

const PIECE: TimeDelta = TimeDelta::days(36_525);

calls! {
    fn due -> Option<TimestampWithTimeZone> = due_time;
    fn open_time -> Option<Interval> = open;
}

fn due_time(args: &Args) -> Result<Option<TimestampWithTimeZone>> {
    let since = args.get::<TimestampWithTimeZone>(0);
    let (Some(since), Some(within), Some(name)) = (since, args.get::<Interval>(1), name(args)?) else {
        return Ok(None);
    };
    let length =
        Length::new("within", within.months(), within.days(), within.micros()).map_err(CalendarError::Length)?;
    let known = usable(&name)?;
    if since.is_infinity() || since.is_neg_infinity() {
        return Ok(Some(since));
    }
    let due = args.time(0, "since")?.and_then(|since| known.calendar.due(since, length));
    let due = due.and_then(clock::to_timestamptz);
    due.map(Some).ok_or_else(|| CalendarError::NoResult { calendar: name.to_string() }.into())
}

fn open(args: &Args) -> Result<Option<Interval>> {
    let times = (args.get::<TimestampWithTimeZone>(0), args.get::<TimestampWithTimeZone>(1));
    let ((Some(from), Some(to)), Some(name)) = (times, name(args)?) else { return Ok(None) };
    let known = usable(&name)?;
    let zero = i64::from(from) >= i64::from(to);
    let open = if zero { TimeDelta::zero() } else { counted(&known.calendar, args)? };
    let micros = open.num_microseconds().unwrap_or(i64::MAX);
    Interval::new(0, 0, micros).map(Some).map_err(|_| Error::OutOfRange { argument: "at" })
}

fn counted(calendar: &Calendar<Local>, args: &Args) -> Result<TimeDelta> {
    let time = |index, argument| -> Result<Time> { args.time(index, argument)?.ok_or(Error::Null { argument }) };
    let (mut from, to) = (time(0, "since")?, time(1, "at")?);
    let mut open = TimeDelta::zero();
    while from < to {
        pgrx::check_for_interrupts!();
        let next = later(from, PIECE).min(to);
        open += calendar.open_time(from, next);
        from = next;
    }
    Ok(open)
}

fn name(args: &Args) -> Result<Option<Text>> {
    args.optional_name(2, "calendar", MAX_CALENDAR)
}
