//! `awty.cancel()`.

use super::args::{Args, MAX_ENTITY_KEY, MAX_ENTITY_NAME, MAX_JOB};
use super::rights;
use crate::clock;
use crate::error::Result;
use crate::store::{future_job, history, job};
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
    let only = args.optional_name(2, "job", MAX_JOB)?;
    if let Some(name) = &only {
        let job = rights::job(name)?;
        if !rights::may_schedule(&job) {
            return Err(rights::denied(&job));
        }
    }
    let ids: Vec<i64> = future_job::lock_entity(entity_name.datum(), entity_key.datum(), only.as_ref())
        .into_iter()
        .filter(|(_, name)| {
            only.is_some() || matches!(job::find(name), Some(Ok(job)) if rights::may_schedule(&job))
        })
        .map(|(id, _)| id)
        .collect();
    Ok(i32::try_from(history::end(&ids, Outcome::Cancelled, clock::now(), None)).unwrap_or(i32::MAX))
}
