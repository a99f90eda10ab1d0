//! `awty.cancel()`.

use super::args::{Args, MAX_ENTITY_KEY, MAX_ENTITY_NAME, MAX_JOB};
use super::rights;
use crate::error::Result;
use crate::store::{future_job, history, job};
use crate::{clock, hint};
use awty_core::Outcome;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

#[pg_extern(sql = false)]
fn cancel(fcinfo: pg_sys::FunctionCallInfo) -> std::result::Result<i32, ErrorReport> {
    Ok(cancel_checks(&Args::new(fcinfo))?)
}

/// Ends the pending checks of an entity. Without a job, those of jobs that the caller may not schedule stay, unseen.
fn cancel_checks(args: &Args) -> Result<i32> {
    rights::gate("awty.cancel()")?;
    let entity_name = args.name(0, "entity_name", MAX_ENTITY_NAME)?;
    let entity_key = args.name(1, "entity_key", MAX_ENTITY_KEY)?;
    let jobs = match args.optional_name(2, "job", MAX_JOB)? {
        Some(name) => {
            rights::schedulable_job(&name)?;
            vec![name]
        }
        None => future_job::jobs_of_entity(entity_name.datum(), entity_key.datum())
            .into_iter()
            .filter(|name| matches!(job::find(name), Some(Ok(job)) if rights::may_schedule(&job)))
            .collect(),
    };
    // Only what may be cancelled is locked, so that nobody holds up checks of others.
    let ids: Vec<i64> =
        jobs.iter().filter_map(|job| future_job::lock_of(entity_name.datum(), entity_key.datum(), job)).collect();
    hint::count_ended(ids.len() as u64);
    history::end(&ids, Outcome::Cancelled, clock::now(), None);
    Ok(i32::try_from(ids.len()).unwrap_or(i32::MAX))
}
