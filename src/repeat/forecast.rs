//! Computes future occurrences. Returns none if PostgreSQL no longer knows the time zone.

use super::terms;
use crate::call::args::Args;
use crate::call::argument_limits::MAX_JOB;
use crate::call::argument_limits::MAX_STEPS;
use crate::error::{Error, Result};
use crate::pg::clock;
use crate::store::job;
use awty_core::repeat::{Plan, Zone};
use awty_core::{Time, Width, later};
use chrono::TimeDelta;
use pgrx::datum::TimestampWithTimeZone;
use pgrx::pg_sys;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

const PIECE: TimeDelta = TimeDelta::days(1);

#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn planned(
    fcinfo: pg_sys::FunctionCallInfo,
) -> std::result::Result<
    TableIterator<'static, (name!(slot, Option<TimestampWithTimeZone>), name!(checks, i64))>,
    ErrorReport,
> {
    let counted = count(&Args::new(fcinfo))?;
    Ok(TableIterator::new(
        counted.into_iter().map(|(slot, checks)| (clock::to_timestamptz(slot), checks.cast_signed())),
    ))
}

fn count(args: &Args) -> Result<Vec<(Time, u64)>> {
    let Some((rhythm, zone)) = terms::stored(args) else { return Ok(Vec::new()) };
    let plan = Plan::new(rhythm, zone, args.time(5, "starts")?, args.time(6, "ends")?);
    let (Some(after), Some(until)) = (args.time(3, "after")?, args.time(4, "until")?) else { return Ok(Vec::new()) };
    let step = args.duration(7, "step")?;
    let width = match job::find(&args.name(8, "job", MAX_JOB)?) {
        Some(Ok(job)) => job.options.limits.width,
        _ => crate::settings::slot(),
    };
    let mut counted = Vec::new();
    let (mut from, mut next) = (after, plan.next(after));
    while let Some(moment) = next.filter(|&moment| moment <= until) {
        if i64::try_from(counted.len()).unwrap_or(i64::MAX) >= MAX_STEPS {
            return Err(Error::TooManySteps { max: MAX_STEPS });
        }
        let (begin, end) = bin(width.round_up(moment), step, width);
        let last = end.min(until);
        counted.push((begin, pieces(&plan, from, last)));
        (from, next) = (last, plan.next(last));
    }
    Ok(counted)
}

fn bin(slot: Time, step: Option<TimeDelta>, width: Width) -> (Time, Time) {
    let Some(step) = step.and_then(|step| step.num_microseconds()) else { return (slot, slot) };
    let origin = clock::from_timestamp(0).unwrap_or(slot);
    let past = (slot - origin).num_microseconds().unwrap_or(0).rem_euclid(step);
    let begin = slot - TimeDelta::microseconds(past);
    let next = width.round_up(later(begin, TimeDelta::microseconds(step)));
    (begin, next - width.delta())
}

fn pieces<Z: Zone>(plan: &Plan<Z>, after: Time, until: Time) -> u64 {
    let (mut from, mut count) = (after, 0);
    while from < until {
        pgrx::check_for_interrupts!();
        let to = later(from, PIECE).min(until);
        count += plan.count(from, to);
        from = to;
    }
    count
}
