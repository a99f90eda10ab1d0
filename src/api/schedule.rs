//! `awty.schedule()` and `awty.next_slot()`.

use super::args::{Args, MAX_JOB};
use super::entity::Entity;
use super::rights;
use crate::error::{self, Error, Result};
use crate::function;
use crate::pg::{catalog, clock};
use crate::shmem::{self, State, wakeup};
use crate::store::future_job::{self, NewCheck};
use crate::store::job::Job;
use crate::store::{extension, history, origin};
use awty_core::policy;
use awty_core::{Conflict, OnConflict, Outcome, Time};
use pgrx::datum::TimestampWithTimeZone;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use std::cell::Cell;

/// How often a check may be taken from under a call before the call gives up.
const ROUNDS: u32 = 100;

/// Intervals beyond that, in either direction, are not even added to the time: a thousand years.
const MAX_DAYS: i64 = 365_250;

#[pg_extern(sql = false)]
fn schedule(fcinfo: pg_sys::FunctionCallInfo) -> std::result::Result<i64, ErrorReport> {
    Ok(schedule_check(&Args::new(fcinfo))?)
}

#[pg_extern(sql = false)]
fn next_slot(fcinfo: pg_sys::FunctionCallInfo) -> std::result::Result<Option<TimestampWithTimeZone>, ErrorReport> {
    let args = Args::new(fcinfo);
    let Some(time) = args.time(0, "t")? else { return Ok(None) };
    let width = match args.optional_name(1, "job", MAX_JOB)? {
        Some(name) => rights::visible_job(&name)?.options.limits.width,
        None => crate::settings::slot(),
    };
    Ok(TimestampWithTimeZone::try_from(clock::to_timestamp(width.due(time, clock::now()))).ok())
}

fn schedule_check(args: &Args) -> Result<i64> {
    rights::gate("awty.schedule()")?;
    let entity = Entity::of(args)?;
    let name = args.name(2, "job", MAX_JOB)?;
    let time = due_time(args)?;
    let job_args = args.jsonb(5)?;
    let on_conflict: OnConflict = args
        .choice(6, "on_conflict", "replace, keep, earliest, latest, error")?
        .ok_or(Error::Null { argument: "on_conflict" })?;

    let job = rights::schedulable_job(&name)?;
    function::of_job(&job)?;
    let now = clock::now();
    let slot = policy::schedule(time, &job.options.limits, now).map_err(|too_far| Error::TooFar {
        job: job.name.to_string(),
        time,
        max_horizon: too_far.horizon(),
    })?;
    let check = NewCheck {
        job: name.datum(),
        entity_name: entity.name.datum(),
        entity_key: entity.key.datum(),
        args: job_args,
        scheduled_by: catalog::current_role(),
        scheduled_at: now,
    };
    let id = write(&check, &job, slot, now, on_conflict, &entity)?;
    wakeup::at_commit(job.role, clock::to_timestamp(slot));
    warn_if_nothing_runs();
    Ok(id)
}

/// The time that the caller asks for, by `at` or `after`.
fn due_time(args: &Args) -> Result<Time> {
    let at = args.time(3, "at")?;
    let after = args.datum(4);
    match (at, after) {
        (Some(at), None) => Ok(at),
        (None, Some(after)) => {
            // What would overflow below is out of any range.
            let duration = args.duration(4, "after").ok().flatten();
            if duration.is_none_or(|duration| duration.num_days().abs() > MAX_DAYS) {
                return Err(Error::OutOfRange { argument: "after" });
            }
            // SAFETY: a plain function of PostgreSQL on a timestamptz and an interval; it minds months and time zones.
            let (start, then): (i64, TimestampWithTimeZone) = unsafe {
                let start = pg_sys::GetCurrentTransactionStartTimestamp();
                let then = pgrx::direct_function_call(
                    pg_sys::timestamptz_pl_interval,
                    &[Some(pg_sys::Datum::from(start)), Some(after)],
                );
                (start, then.ok_or(Error::OutOfRange { argument: "after" })?)
            };
            let then: i64 = then.into();
            if then < start {
                return Err(Error::Negative { argument: "after" });
            }
            clock::from_timestamp(then).ok_or(Error::OutOfRange { argument: "after" })
        }
        (both, _) => Err(Error::AtOrAfter { both: both.is_some() }),
    }
}

/// Writes the check, dealing with the one that may be pending already as `on_conflict` says.
fn write(check: &NewCheck, job: &Job, slot: Time, now: Time, on_conflict: OnConflict, entity: &Entity) -> Result<i64> {
    for _ in 0..ROUNDS {
        if let Some(id) = future_job::insert(check, slot) {
            wakeup::count_written();
            return Ok(id);
        }
        // Gone by now, or changed: look again.
        let Some(pending) = future_job::lock(check) else { continue };
        match on_conflict.decide(pending.slot, slot) {
            Conflict::Keep => return Ok(pending.id),
            Conflict::Replace => {
                wakeup::count_ended(1);
                history::end(&[pending.id], Outcome::Replaced, now, None);
            }
            Conflict::Refuse => {
                return Err(Error::AlreadyPending {
                    job: job.name.to_string(),
                    entity: entity.label(),
                    id: pending.id,
                });
            }
        }
    }
    Err(Error::Contended { job: job.name.to_string(), entity: entity.label() })
}

thread_local! {
    /// What this session last found: at which count of adoptions, and whether the database was held.
    static HELD: Cell<Option<(u64, bool)>> = const { Cell::new(None) };
}

/// Warns in a restored or cloned database that nothing will run before it is adopted, and where the library does not work with the SQL.
fn warn_if_nothing_runs() {
    let here = catalog::database();
    let (adoptions, state) = shmem::read(|shared| (shared.adoptions, shared.database(here).map(|line| line.state)));
    if let Some(State::Unserved(_)) = state
        && let Some(unserved) = extension::unserved()
    {
        Error::Unserved { installed: extension::installed(), unserved }.warn();
    }
    let held = match HELD.get() {
        Some((then, held)) if then == adoptions => held,
        _ => {
            let held = origin::is_foreign();
            HELD.set(Some((adoptions, held)));
            held
        }
    };
    if held && !crate::settings::auto_adopt() {
        error::log::database_held(&catalog::database_name());
    }
}
