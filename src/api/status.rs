//! What is behind `awty.status`, and the trigger that tells sessions of changed jobs.

use crate::board::{self, Trouble};
use crate::{catalog, settings};
use pgrx::datum::{Interval, TimestampWithTimeZone};
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
        name!(trouble, Option<&'static str>),
    ),
> {
    let slot = Interval::new(0, 0, i64::from(settings::slot().seconds()) * 1_000_000).ok();
    if !board::is_present() {
        return TableIterator::once((false, slot, None, 0, Some("awty is not in shared_preload_libraries")));
    }
    let here = catalog::database();
    let (line, workers) = board::read(|board| {
        let workers = board.seats.iter().filter(|seat| seat.is_occupied() && seat.database == here).count();
        (board.database(here).copied(), workers)
    });
    let last_slot_run = line
        .filter(|line| line.last_slot_run != 0)
        .and_then(|line| TimestampWithTimeZone::try_from(line.last_slot_run).ok());
    let trouble = line.map_or(Trouble::None, |line| line.trouble).as_str();
    TableIterator::once((settings::enabled(), slot, last_slot_run, i32::try_from(workers).unwrap_or(i32::MAX), trouble))
}

/// Runs after each statement that changes `awty.job`, whoever ran it.
#[pg_trigger(sql = false)]
fn job_changed<'a>(
    trigger: &'a pgrx::PgTrigger<'a>,
) -> Result<Option<PgHeapTuple<'a, impl WhoAllocated>>, pgrx::spi::Error> {
    let relation = trigger.relation().map(|relation| relation.oid());
    if let Ok(oid) = relation {
        // SAFETY: an invalidation message for a relation that exists; sent to the other sessions at commit.
        unsafe { pgrx::pg_sys::CacheInvalidateRelcacheByRelid(oid) };
    }
    Ok(Option::<PgHeapTuple<'a, pgrx::AllocatedByRust>>::None)
}
