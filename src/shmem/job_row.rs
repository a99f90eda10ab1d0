//! What shared memory has of each job: what its runs have come to, and what the log has been told of it.
//!
//! Invariant: a row that leaves is noted in its database's line, so that the maintainer removes it from the table.
//! Does not: decide which one leaves (see `awty_core::job_table`).

use super::SharedState;
use awty_core::figures::Figures;
use awty_core::job_table::{JobRow, TargetName};
use awty_core::{Mono, Passed, Time};
use pgrx::pg_sys;
use std::collections::HashSet;

/// The name of a job, what its runs have come to, and since when that is counted.
pub type Counted = (Vec<u8>, Figures, Time);

impl SharedState {
    /// The row of a job, made if there is none and there is room.
    pub fn job_row(&mut self, database: pg_sys::Oid, job: &[u8], now: Time) -> Option<&mut JobRow> {
        let (row, left) = self.jobs.row(database.to_u32(), job, now);
        if let Some(left) = left
            && let Some(line) = self.databases.iter_mut().find(|line| line.oid.to_u32() == left)
        {
            line.jobs_left = true;
        }
        row
    }

    /// So much has failed in a job: may the log have an entry about it, and what was passed over before?
    pub fn may_log(
        &mut self,
        database: pg_sys::Oid,
        job: &[u8],
        failed: Passed,
        now: Time,
        mono: Mono,
    ) -> Option<Passed> {
        match self.job_row(database, job, now) {
            Some(row) => row.log.note(failed, mono),
            None => Some(Passed::default()),
        }
    }

    /// What the log has not been told of the jobs of a database, where it is time to.
    pub fn log_summaries(&mut self, database: pg_sys::Oid, mono: Mono) -> Vec<(Vec<u8>, Passed)> {
        self.jobs.summaries(database.to_u32(), mono)
    }

    /// Counts what the runs of a job have come to, of which the first began at that time.
    pub fn count_runs(&mut self, database: pg_sys::Oid, job: &[u8], figures: &Figures, since: Time) {
        if let Some(row) = self.job_row(database, job, since) {
            if row.figures.runs == 0 {
                row.since = since;
            }
            row.figures.add(figures);
            row.is_new = true;
        }
    }

    /// The same of the work of leases, with what failed of it.
    pub fn count_leases(
        &mut self,
        database: pg_sys::Oid,
        job: &[u8],
        figures: &Figures,
        failed: Passed,
        (now, mono): (Time, Mono),
    ) {
        if figures.runs > 0 {
            self.count_runs(database, job, figures, figures.last_run_at.unwrap_or(now));
        }
        if failed.events > 0
            && let Some(row) = self.job_row(database, job, now)
        {
            row.log.leave(failed, mono);
        }
    }

    /// A worker outside has asked for checks of a job, and perhaps has got some.
    pub fn note_claim(&mut self, database: pg_sys::Oid, job: &[u8], served: bool, now: Time) {
        if let Some(row) = self.job_row(database, job, now) {
            row.claimed_at = Some(now);
            if served {
                row.served_at = Some(now);
            }
        }
    }

    /// The target that the claims of a job have stopped at; empty: none.
    pub fn target_of(&self, database: pg_sys::Oid, job: &[u8]) -> Vec<u8> {
        let row = self.jobs.of(database.to_u32()).find(|row| row.name() == job);
        row.map_or_else(Vec::new, |row| row.target.as_bytes().to_vec())
    }

    /// A claim has stopped there.
    pub fn note_target(&mut self, database: pg_sys::Oid, job: &[u8], target: &[u8], now: Time) {
        if let Some(row) = self.job_row(database, job, now) {
            row.target = TargetName::new(target);
        }
    }

    /// When a worker outside last asked for checks of a job, and when it last got some.
    pub fn claims_of(&self, database: pg_sys::Oid, job: &[u8]) -> (Option<Time>, Option<Time>) {
        let row = self.jobs.of(database.to_u32()).find(|row| row.name() == job);
        row.map_or((None, None), |row| (row.claimed_at, row.served_at))
    }

    /// Have the figures of a database been read back from that table?
    pub fn has_figures_of(&self, database: pg_sys::Oid, table: pg_sys::Oid) -> bool {
        self.database(database).is_some_and(|line| line.jobs_of == table)
    }

    /// Takes in what was read back from a table. What has been counted for another one, of an extension that is gone, is forgotten.
    pub fn take_figures(&mut self, database: pg_sys::Oid, table: pg_sys::Oid, stored: &[Counted], now: Time) {
        let before = self.database_or_new(database).map(|line| std::mem::replace(&mut line.jobs_of, table));
        if before.is_some_and(|before| before != pg_sys::InvalidOid) {
            self.jobs.forget_database(database.to_u32());
        }
        for (job, figures, since) in stored {
            if let Some(row) = self.job_row(database, job, now) {
                row.figures.add(figures);
                row.since = row.since.min(*since);
            }
        }
    }

    /// What has been counted of each job of a database.
    pub fn figures(&self, database: pg_sys::Oid) -> Vec<Counted> {
        self.jobs.of(database.to_u32()).map(|row| (row.name().to_vec(), row.figures, row.since)).collect()
    }

    /// What has been counted since it was last stored; and the names of all rows, if one has left since.
    pub fn figures_to_store(&mut self, database: pg_sys::Oid) -> (Vec<Counted>, Option<HashSet<Vec<u8>>>) {
        let has_left = self.database_mut(database).is_some_and(|line| std::mem::take(&mut line.jobs_left));
        let keep = has_left.then(|| self.jobs.of(database.to_u32()).map(|row| row.name().to_vec()).collect());
        let rows = self
            .jobs
            .of_mut(database.to_u32())
            .filter_map(|row| std::mem::take(&mut row.is_new).then(|| (row.name().to_vec(), row.figures, row.since)));
        (rows.collect(), keep)
    }

    /// They could not be stored.
    pub fn figures_are_not_stored(&mut self, database: pg_sys::Oid) {
        self.jobs.of_mut(database.to_u32()).filter(|row| row.figures.runs > 0).for_each(|row| row.is_new = true);
        if let Some(line) = self.database_mut(database) {
            line.jobs_left = true;
        }
    }

    /// Forgets a job that is not registered any more, or that is another one of the same name.
    pub fn forget_job(&mut self, database: pg_sys::Oid, job: &[u8]) {
        self.jobs.forget(database.to_u32(), job);
        // Whether it was here or not, it may be in the table.
        if let Some(line) = self.database_mut(database) {
            line.jobs_left = true;
        }
    }
}
