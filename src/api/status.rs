//! What is behind `awty.status`, and the trigger that tells sessions of changed jobs.

use crate::error::Error;
use crate::pg::catalog;
use crate::settings;
use crate::shmem::{self, Trouble};
use crate::version;
use pgrx::datum::{Interval, TimestampWithTimeZone};
use pgrx::pg_sys;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

/// One row of what the processes know of this database; without the library in memory, that nothing runs.
#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn runtime() -> TableIterator<
    'static,
    (
        name!(enabled, bool),
        name!(slot, Option<Interval>),
        name!(last_slot_run, Option<TimestampWithTimeZone>),
        name!(workers, i32),
        name!(trouble, Option<String>),
        name!(library, &'static str),
    ),
> {
    let slot = Interval::new(0, 0, i64::from(settings::slot().seconds()) * 1_000_000).ok();
    if !shmem::is_present() {
        return TableIterator::once((
            false,
            slot,
            None,
            0,
            Some("awty is not in shared_preload_libraries".into()),
            version::LIBRARY,
        ));
    }
    let here = catalog::database();
    let (line, workers) = shmem::read(|shared| {
        let workers = shared.workers.iter().filter(|entry| entry.is_occupied() && entry.database == here).count();
        (shared.database(here).copied(), workers)
    });
    let last_slot_run = line
        .filter(|line| line.last_slot_run != 0)
        .and_then(|line| TimestampWithTimeZone::try_from(line.last_slot_run).ok());
    // SAFETY: a getter.
    let is_primary = !unsafe { pg_sys::RecoveryInProgress() };
    // Shared memory only knows what the last inspection has found.
    let trouble = match (version::unserved(), line.map_or(Trouble::None, |line| line.trouble)) {
        (Some(unserved), _) => Trouble::Unserved(unserved),
        _ if is_primary && !shmem::has_launcher() => Trouble::NoLauncher,
        (None, Trouble::Unserved(_)) => Trouble::None,
        (None, other) => other,
    };
    let workers = i32::try_from(workers).unwrap_or(i32::MAX);
    TableIterator::once((settings::enabled(), slot, last_slot_run, workers, trouble.text(), version::LIBRARY))
}

/// Runs after each statement that changes `awty.job`, whoever ran it.
#[pg_extern(sql = false)]
fn job_changed(fcinfo: pg_sys::FunctionCallInfo) -> Result<(), ErrorReport> {
    // SAFETY: PostgreSQL's own call information, whose context is a TriggerData if a trigger calls.
    let relation = unsafe {
        if !pgrx::trigger_support::called_as_trigger(fcinfo) {
            return Err(Error::NotTrigger { function: "awty_internal.job_changed()" }.into());
        }
        (*(*fcinfo).context.cast::<pg_sys::TriggerData>()).tg_relation
    };
    // SAFETY: the trigger's relation, which is open; the message is sent to the other sessions at commit.
    unsafe { pg_sys::CacheInvalidateRelcache(relation) };
    Ok(())
}
