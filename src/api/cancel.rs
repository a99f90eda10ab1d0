//! `awty.cancel()`.

use super::args::{Args, MAX_JOB};
use super::entity::Entity;
use super::rights;
use crate::error::Result;
use crate::pg::clock;
use crate::shmem::wakeup;
use crate::store::job::Job;
use crate::store::{future_job, history};
use awty_core::Outcome;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

#[pg_extern(sql = false)]
fn cancel(fcinfo: pg_sys::FunctionCallInfo) -> std::result::Result<i64, ErrorReport> {
    Ok(cancel_checks(&Args::new(fcinfo))?)
}

/// Ends the pending checks of an entity. Without a job, those of jobs that the caller may not schedule stay, unseen.
fn cancel_checks(args: &Args) -> Result<i64> {
    rights::gate_write("awty.cancel()")?;
    let entity = Entity::of(args)?;
    let jobs = match args.optional_name(2, "job", MAX_JOB)? {
        Some(name) => vec![rights::schedulable_job(&name)?],
        None => entity.jobs(rights::may_schedule),
    };
    // Only what may be cancelled is locked, so that nobody holds up checks of others.
    let lock = |job: &Job| future_job::lock_of(entity.name.datum(), entity.key.datum(), &job.name);
    let ids: Vec<i64> = jobs.iter().filter_map(lock).collect();
    wakeup::count_ended(ids.len() as u64);
    history::end(&ids, Outcome::Cancelled, clock::now(), None);
    Ok(ids.len() as i64)
}
