//! Invariant: these functions only read, and take no lock above ACCESS SHARE. They also work on a standby and without
//! the preloaded library.

use crate::call::args::{Args, calls};
use crate::call::argument_limits::MAX_JOB;
use crate::error::{Error, Result};
use crate::pg::catalog::{self, CannotConnect};
use crate::pg::changes;
use crate::pg::clock::{self, Timestamp};
use crate::pg::text::Text;
use crate::pg::trigger::Firing;
use crate::process::sync_rep;
use crate::restore::Hold;
use crate::shmem::{self, DatabaseProblem, Occupancy};
use crate::store::{self, extension, job, origin};
use crate::{function, settings, version};
use chrono::TimeDelta;
use pgrx::datum::{Interval, TimestampWithTimeZone};
use pgrx::pg_sys;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn runtime() -> TableIterator<
    'static,
    (
        name!(preloaded, bool),
        name!(enabled, bool),
        name!(slot, Option<Interval>),
        name!(last_slot_run, Option<TimestampWithTimeZone>),
        name!(workers, i32),
        name!(held, Option<&'static str>),
        name!(unserved, Option<Vec<String>>),
        name!(trouble, Option<String>),
        name!(trouble_at, Option<TimestampWithTimeZone>),
        name!(heartbeat, Option<TimestampWithTimeZone>),
        name!(library, &'static str),
        name!(settings_read, Option<TimestampWithTimeZone>),
    ),
> {
    let held = origin::hold().map(|why| match why {
        Hold::Foreign => "the checks of this database come from another one",
        Hold::Restored => "this server was restored from a backup",
    });
    let slot = Interval::new(0, 0, i64::from(settings::slot().seconds()) * 1_000_000).ok();
    let unserved =
        extension::unserved().map(|unserved| pair(&Error::Unserved { installed: extension::installed(), unserved }));
    if !shmem::is_present() {
        return TableIterator::once((
            false,
            false,
            slot,
            None,
            0,
            held,
            unserved,
            None,
            None,
            None,
            version::LIBRARY,
            None,
        ));
    }
    let here = catalog::database();
    let (line, workers, heartbeat, settings_read) = shmem::read(|shared| {
        let workers = shared.workers.iter().filter(|entry| entry.is_occupied() && entry.database == here).count();
        (shared.database(here).copied(), workers, shared.heartbeat, shared.settings_read)
    });
    // Leaves `trouble` empty for a version mismatch, because the column `unserved` already reports the mismatch.
    let trouble = line.filter(|line| !matches!(line.trouble, DatabaseProblem::None | DatabaseProblem::Unserved(_)));
    TableIterator::once((
        true,
        settings::enabled(),
        slot,
        line.and_then(|line| timestamptz(line.last_slot_run)),
        i32::try_from(workers).unwrap_or(i32::MAX),
        held,
        unserved,
        trouble.and_then(|line| line.trouble.text()),
        trouble.and_then(|line| timestamptz(line.trouble_at)),
        timestamptz(heartbeat).filter(|_| shmem::has_launcher()),
        version::LIBRARY,
        timestamptz(settings_read),
    ))
}

fn timestamptz(timestamp: Timestamp) -> Option<TimestampWithTimeZone> {
    TimestampWithTimeZone::try_from(timestamp).ok().filter(|_| timestamp != 0)
}

#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn worker() -> TableIterator<
    'static,
    (
        name!(pid, i32),
        name!(role, pg_sys::Oid),
        name!(is_busy, bool),
        name!(check_ids, Vec<i64>),
        name!(started_at, Option<TimestampWithTimeZone>),
        name!(timeout, Option<Interval>),
    ),
> {
    if !shmem::is_present() {
        return TableIterator::new(Vec::new());
    }
    let (here, now, mono) = (catalog::database(), clock::now(), clock::mono());
    let rows = shmem::read(|shared| {
        let taken = |entry: &&shmem::WorkerEntry| entry.occupancy() == Occupancy::Taken && entry.database == here;
        let row = |entry: &shmem::WorkerEntry| {
            let started_at = entry.run.map(|run| now - clock::delta_of(mono.since(run.began)));
            let check_ids = entry.run.map_or_else(Vec::new, |_| entry.claims().to_vec());
            let timeout = entry.run.map(|run| run.timeout);
            (entry.pid, entry.role, entry.busy_since.is_some(), check_ids, started_at, timeout)
        };
        shared.workers.iter().filter(taken).map(row).collect::<Vec<_>>()
    });
    let rows = rows.into_iter().map(|(pid, role, is_busy, check_ids, started_at, timeout)| {
        let started_at = started_at.and_then(|at| timestamptz(clock::to_timestamp(at)));
        let timeout = timeout.and_then(|timeout| store::to_interval(clock::delta_of(timeout)));
        (pid, role, is_busy, check_ids, started_at, timeout)
    });
    TableIterator::new(rows.collect::<Vec<_>>())
}

#[pg_extern(sql = false)]
fn waits_for_standby(pid: i32) -> bool {
    sync_rep::is_process_waiting(pid)
}

#[pg_extern(sql = false)]
fn cannot_connect(role: pg_sys::Oid) -> Option<&'static str> {
    match catalog::can_connect(catalog::database(), role) {
        Ok(()) | Err(CannotConnect::NoDatabase) => None,
        Err(CannotConnect::Gone) => Some("gone"),
        Err(CannotConnect::NoLogin) => Some("no login"),
        Err(CannotConnect::NoConnect) => Some("no connect"),
    }
}

calls! {
    fn cannot_call -> Option<Vec<String>> = job_trouble;
    fn nearest -> Option<Text> = nearest_name;
}

fn job_trouble(args: &Args) -> Result<Option<Vec<String>>> {
    let name: Text = args.name(0, "job", MAX_JOB)?;
    let job = match job::find(&name) {
        None => return Ok(None),
        Some(Err(message)) => return Ok(Some(pair(&Error::BrokenJob { job: name.to_string(), message }))),
        Some(Ok(job)) => job,
    };
    Ok(function::check(&job).err().map(|error| pair(&error)))
}

/// Minimum of `max_lag`. On a healthy server, checks may start a second late, because the launcher may look for due
/// checks only once a second.
const MIN_LAG: (TimeDelta, &str) = (TimeDelta::seconds(5), "5 seconds");

#[pg_extern(sql = false)]
fn as_max_lag(fcinfo: pg_sys::FunctionCallInfo) -> std::result::Result<Option<Interval>, ErrorReport> {
    let args = Args::new(fcinfo);
    match args.duration(0, "max_lag")? {
        None => Err(Error::Null { argument: "max_lag" }.into()),
        Some(lag) if lag < MIN_LAG.0 => Err(Error::TooShort { argument: "max_lag", min: MIN_LAG.1 }.into()),
        Some(_) => Ok(args.get(0)),
    }
}

fn nearest_name(args: &Args) -> Result<Option<Text>> {
    let names = args.get::<Vec<Option<Text>>>(1).unwrap_or_default();
    let shown: Vec<(String, Text)> = names.into_iter().flatten().map(|name| (name.to_string(), name)).collect();
    let Some(wanted) = args.get::<Text>(0) else { return Ok(None) };
    let nearest = awty_core::nearest(&wanted.to_string(), shown.iter().map(|(shown, _)| shown.as_str()));
    Ok(shown.iter().find(|(shown, _)| Some(shown.as_str()) == nearest).map(|(_, name)| name.clone()))
}

fn pair(error: &Error) -> Vec<String> {
    let (message, hint) = error.in_words();
    vec![message, hint]
}

#[pg_extern(sql = false)]
fn job_changed(fcinfo: pg_sys::FunctionCallInfo) -> std::result::Result<(), ErrorReport> {
    if Firing::of(fcinfo).is_none() {
        return Err(Error::NotTrigger { function: "awty_internal.job_changed()" }.into());
    }
    changes::rows_changed();
    Ok(())
}
