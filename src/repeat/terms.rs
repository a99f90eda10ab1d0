//! Invariant: a time zone is stored in PostgreSQL's spelling. If no planned time depends on the zone, UTC is stored.

use super::statements::repetition::Definition;
use crate::calendar::Known;
use crate::call::args::Args;
use crate::call::argument_limits::{MAX_CRON, MAX_ZONE};
use crate::call::zone_name;
use crate::error::{Error, Result};
use crate::pg::clock;
use crate::pg::zone::{self, Local};
use awty_core::Time;
use awty_core::repeat::{RepeatError, Rhythm, Zone, check_every, check_length};
use chrono::TimeDelta;
use pgrx::datum::Interval;

pub struct Arguments {
    pub rhythm: Rhythm,
    pub local: Local,
    pub terms: Definition,
}

pub fn refused(error: RepeatError, job: &str) -> Error {
    Error::Repeat { error, job: job.to_owned(), zone: zone::of_session() }
}

pub fn read(args: &Args, first: usize, job: &str, calendar: Option<&Known>) -> Result<Arguments> {
    let every = every(args, first);
    let cron = args.text(first + 1, "cron", MAX_CRON)?.map(|cron| cron.to_string());
    let zone = args.text(first + 2, "zone", MAX_ZONE)?.map(|zone| zone.to_string());
    let rhythm = Rhythm::new(every, cron.as_deref()).map_err(|error| refused(error, job))?;
    if let Some(every) = args.get::<Interval>(first) {
        check_every(clock::delta(&every)).map_err(|error| refused(error, job))?;
    }
    let zone = match zone {
        Some(zone) => zone_name::known(zone)?,
        None => rhythm.without_zone().map(|()| "UTC".to_owned()).map_err(|error| match calendar {
            Some(calendar) => Error::Repeat { error, job: job.to_owned(), zone: Some(calendar.zone.clone()) },
            None => refused(error, job),
        })?,
    };
    let local = zone::find(&zone).ok_or_else(|| zone_name::unknown(&zone))?;
    let (jitter, catch_up) = (TimeDelta::zero(), TimeDelta::zero());
    Ok(Arguments {
        rhythm,
        local,
        terms: Definition { every, cron, zone, starts: None, ends: None, jitter, catch_up, calendar: None },
    })
}

fn every(args: &Args, index: usize) -> Option<(i32, i32, i64)> {
    args.get::<Interval>(index).map(|every| (every.months(), every.days(), every.micros()))
}

pub fn stored(args: &Args) -> Option<(Rhythm, Local)> {
    let cron = args.text(1, "cron", MAX_CRON).ok()?.map(|cron| cron.to_string());
    let rhythm = Rhythm::new(every(args, 0), cron.as_deref()).ok()?;
    Some((rhythm, stored_zone(args, 2)??))
}

/// Returns `None` if the argument is invalid. Returns `Some(None)` if PostgreSQL does not know the zone.
pub fn stored_zone(args: &Args, index: usize) -> Option<Option<Local>> {
    let zone = args.text(index, "zone", MAX_ZONE).ok()??;
    Some(zone::find(&zone.to_string()))
}

pub fn length(args: &Args, index: usize, argument: &'static str, job: &str) -> Result<TimeDelta> {
    let length = args.duration(index, argument)?.ok_or(Error::Null { argument })?;
    check_length(argument, length).map_err(|error| refused(error, job))?;
    Ok(length)
}

pub fn local_time(name: &str, time: Time) -> String {
    let offset = zone::find(name).map_or(0, |zone| zone.span_at(time.timestamp_micros()).offset);
    let local = time.naive_utc() + TimeDelta::seconds(i64::from(offset));
    let format = if local.and_utc().timestamp() % 60 == 0 { "%Y-%m-%d %H:%M" } else { "%Y-%m-%d %H:%M:%S" };
    format!("{} {name}", local.format(format))
}
