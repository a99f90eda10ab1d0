//! Invariant: a counter in shared memory is the stored counter plus all runs since the stored counter was read.

use super::statements::job_stat::{self, StoredFigures};
use crate::pg::catalog;
use crate::pg::relations::{self, JOB_STAT};
use crate::pg::text::Text;
use crate::shmem;
use awty_core::Time;
use pgrx::pg_sys;

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

pub fn stored(database: pg_sys::Oid, gone: Option<Vec<Text>>) {
    match gone {
        Some(gone) => shmem::write_each(&gone, |shared, job| shared.forget_job(database, job.as_bytes())),
        None => shmem::write(|shared| shared.figures_are_not_stored(database)),
    }
}

pub fn store(_now: Time) -> Option<Vec<Text>> {
    let here = catalog::database();
    let table = relations::oid(JOB_STAT)?;
    let (new, keep) = shmem::write(|shared| shared.has_figures_of(here, table).then(|| shared.figures_to_store(here)))
        .unwrap_or_default();
    let stored = new.into_iter().map(|(job, figures, since)| StoredFigures { job: Text::from(job), figures, since });
    let mut gone: Vec<Text> = stored.filter(|row| !job_stat::store(row)).map(|row| row.job).collect();
    if let Some(names) = keep {
        job_stat::keep_only(&names);
    }
    gone.extend(job_stat::gone());
    Some(gone)
}
