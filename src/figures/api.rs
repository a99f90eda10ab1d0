//! Invariant: these functions only read. They also work on a standby and without the preloaded library.

use super::statements::job_stat::{self, COUNTED, Pending};
use crate::call::args::Args;
use crate::call::argument_limits::MAX_STEPS;
use crate::error::{Error, Result};
use crate::pg::relations::{self, JOB_STAT};
use crate::pg::text::Text;
use crate::pg::{catalog, clock};
use crate::shmem;
use crate::store::right::{self, Granted, Right};
use crate::store::to_interval;
use awty_core::figures::Figures;
use awty_core::{Outcome, Time};
use pgrx::datum::{Interval, TimestampWithTimeZone};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use std::collections::HashSet;

type Timestamptz = Option<TimestampWithTimeZone>;

/// Counts the pending checks of one job, because the checks of other jobs may be many.
#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn job_pending(
    fcinfo: pg_sys::FunctionCallInfo,
) -> TableIterator<
    'static,
    (
        name!(job, Vec<u8>),
        name!(pending, i64),
        name!(overdue, i64),
        name!(oldest_overdue, Timestamptz),
        name!(failing, i64),
        name!(held, i64),
        name!(next_slot, Timestamptz),
    ),
> {
    let name = Args::new(fcinfo).get::<Text>(0);
    let row = name.as_ref().and_then(right::granted).filter(is_counted).map(|Granted { job, paused, .. }| {
        let Pending { pending, overdue, oldest_overdue, next_slot, failing, held } =
            job_stat::pending(&job, clock::now());
        let pending = if pending > COUNTED { pending.max(job_stat::estimate(&job)) } else { pending };
        let (overdue, oldest_overdue) = if paused { (0, None) } else { (overdue, oldest_overdue) };
        (job.as_bytes().to_vec(), pending + held, overdue, oldest_overdue, failing, held, next_slot)
    });
    TableIterator::new(row)
}

fn is_counted(job: &Granted) -> bool {
    let caller = catalog::current_role();
    catalog::is_monitor(caller) || job.has(Right::Read, |role| catalog::can_become(caller, role))
}

#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn job_counter() -> TableIterator<
    'static,
    (
        name!(job, Option<Vec<u8>>),
        name!(runs, i64),
        name!(done, i64),
        name!(failed, i64),
        name!(timed_out, i64),
        name!(retries, i64),
        name!(other, i64),
        name!(met, i64),
        name!(late, i64),
        name!(run_time, Option<Interval>),
        name!(max_run_time, Option<Interval>),
        name!(last_run_at, Timestamptz),
        name!(last_outcome, Option<&'static str>),
        name!(last_success_at, Timestamptz),
        name!(last_failure_at, Timestamptz),
        name!(late_10ms, i64),
        name!(late_100ms, i64),
        name!(late_1s, i64),
        name!(late_10s, i64),
        name!(late_1min, i64),
        name!(later, i64),
        name!(stats_since, Timestamptz),
    ),
> {
    let is_monitor = catalog::is_monitor(catalog::current_role());
    let readable: HashSet<Vec<u8>> =
        right::all().iter().filter(|job| is_counted(job)).map(|job| job.job.as_bytes().to_vec()).collect();
    let may_see = |job: &[u8]| if job.is_empty() { is_monitor } else { readable.contains(job) };
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let rows = counted().into_iter().filter(|(job, figures, _)| may_see(job) && !figures.is_empty());
    let rows = rows.map(|(job, figures, since)| {
        let Figures { runs, done, failed, timed_out, retries, other, met, .. } = figures;
        let Figures { late_rows, run_time, max_run_time, late, .. } = figures;
        let late = late.map(number);
        (
            (!job.is_empty()).then_some(job),
            number(runs),
            number(done),
            number(failed),
            number(timed_out),
            number(retries),
            number(other),
            number(met),
            number(late_rows),
            to_interval(run_time),
            to_interval(max_run_time),
            at(figures.last_run_at),
            figures.last_end.map(|(_, outcome): (Time, Outcome)| outcome.as_str()),
            at(figures.last_success_at),
            at(figures.last_failure_at),
            late[0],
            late[1],
            late[2],
            late[3],
            late[4],
            late[5],
            at(Some(since)),
        )
    });
    TableIterator::new(rows.collect::<Vec<_>>())
}

fn counted() -> Vec<shmem::Counted> {
    let here = catalog::database();
    if shmem::is_present()
        && let Some(table) = relations::oid(JOB_STAT)
    {
        let live = shmem::read(|shared| shared.has_figures_of(here, table).then(|| shared.figures(here)));
        if let Some(live) = live {
            return live;
        }
    }
    job_stat::all().into_iter().map(|row| (row.job.as_bytes().to_vec(), row.figures, row.since)).collect()
}

fn at(time: Option<Time>) -> Timestamptz {
    time.and_then(clock::to_timestamptz)
}

#[pg_extern(sql = false)]
fn as_ahead(fcinfo: pg_sys::FunctionCallInfo) -> std::result::Result<Option<Interval>, ErrorReport> {
    let args = Args::new(fcinfo);
    check_forecast(&args)?;
    Ok(args.get(0))
}

fn check_forecast(args: &Args) -> Result<()> {
    let ahead = args.duration(0, "ahead")?.ok_or(Error::Null { argument: "ahead" })?;
    if ahead.num_microseconds().is_none_or(|micros| micros <= 0) {
        return Err(Error::NotPositive { argument: "ahead" });
    }
    let Some(step) = args.duration(1, "step")? else { return Ok(()) };
    if args.get::<Interval>(1).is_some_and(|step| step.months() != 0) {
        return Err(Error::StepOfMonths);
    }
    let micros = step.num_microseconds().unwrap_or(0);
    if micros <= 0 {
        return Err(Error::NotPositive { argument: "step" });
    }
    if ahead.num_microseconds().unwrap_or(i64::MAX) / micros > MAX_STEPS {
        return Err(Error::TooManySteps { max: MAX_STEPS });
    }
    Ok(())
}
