//! The figures of jobs between shared memory, where workers count, and `awty_internal.job_stat`, where they outlive the server.
//!
//! Invariant: what is in shared memory is what was read from the table and what has been counted since, each once; so the table may be
//! written from it as a whole.
//! Does not: count.

use super::task::task;
use crate::pg::catalog;
use crate::pg::relations::{self, JOB_STAT};
use crate::pg::text::Text;
use crate::shmem;
use crate::store::job_stat::{self, Stored};
use awty_core::Time;
use pgrx::pg_sys;

/// Reads the figures that were stored, once after a start of the server and once for each extension. Called before workers can count.
pub fn read_back(now: Time) {
    let here = catalog::database();
    let Some(table) = relations::oid(JOB_STAT) else { return };
    if shmem::read(|shared| shared.has_figures_of(here, table)) {
        return;
    }
    let stored: Vec<_> =
        job_stat::all().into_iter().map(|row| (row.job.as_bytes().to_vec(), row.figures, row.since)).collect();
    shmem::write(|shared| shared.take_figures(here, table, &stored, now));
}

/// Stores what has changed.
pub fn store(database: pg_sys::Oid) {
    let Some(Some(gone)) = task(database, store_new) else {
        // Next time all of it.
        shmem::write(|shared| shared.figures_are_not_stored(database));
        return;
    };
    if !gone.is_empty() {
        shmem::write(|shared| gone.iter().for_each(|job| shared.forget_job(database, job.as_bytes())));
    }
}

/// Returns the jobs that are not registered any more; `None` if shared memory has nothing to store.
fn store_new(_now: Time) -> Option<Vec<Text>> {
    let here = catalog::database();
    let table = relations::oid(JOB_STAT)?;
    let (new, keep) = shmem::write(|shared| shared.has_figures_of(here, table).then(|| shared.figures_to_store(here)))
        .unwrap_or_default();
    let stored = new.into_iter().map(|(job, figures, since)| Stored { job: Text::from(job), figures, since });
    let gone = stored.filter(|row| !job_stat::store(row)).map(|row| row.job).collect();
    if let Some(names) = keep {
        job_stat::keep_only(&names);
    }
    Some(gone)
}
