//! Invariant: if a job loses its row in shared memory, `jobs_left` is set, so that the maintainer removes the job from
//! `awty_internal.job_stat`.

use super::SharedState;
use awty_core::figures::Figures;
use awty_core::job_table::{JobRow, TargetName};
use awty_core::{Mono, Passed, Time};
use pgrx::pg_sys;
use std::collections::HashSet;

pub type Counted = (Vec<u8>, Figures, Time);

impl SharedState {
    pub fn job_row(&mut self, database: pg_sys::Oid, job: &[u8], now: Time) -> Option<&mut JobRow> {
        let (row, left) = self.jobs.row(database.to_u32(), job, now);
        if let Some(left) = left
            && let Some(line) = self.databases.iter_mut().find(|line| line.oid.to_u32() == left)
        {
            line.jobs_left = true;
        }
        row
    }

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

    pub fn log_summaries(&mut self, database: pg_sys::Oid, mono: Mono) -> Vec<(Vec<u8>, Passed)> {
        self.jobs.summaries(database.to_u32(), mono)
    }

    pub fn count_runs(&mut self, database: pg_sys::Oid, job: &[u8], figures: &Figures, since: Time) {
        if let Some(row) = self.job_row(database, job, since) {
            if row.figures.is_empty() {
                row.since = since;
            }
            row.figures.add(figures);
            row.is_new = true;
        }
    }

    pub fn count_leases(
        &mut self,
        database: pg_sys::Oid,
        job: &[u8],
        figures: &Figures,
        failed: Passed,
        (now, mono): (Time, Mono),
    ) {
        if !figures.is_empty() {
            self.count_runs(database, job, figures, figures.last_run_at.unwrap_or(now));
        }
        if failed.events > 0
            && let Some(row) = self.job_row(database, job, now)
        {
            row.log.leave(failed, mono);
        }
    }

    pub fn note_claim(&mut self, database: pg_sys::Oid, job: &[u8], served: bool, now: Time) {
        if let Some(row) = self.job_row(database, job, now) {
            row.claimed_at = Some(now);
            if served {
                row.served_at = Some(now);
            }
        }
    }

    pub fn target_of(&self, database: pg_sys::Oid, job: &[u8]) -> Vec<u8> {
        let row = self.jobs.get(database.to_u32(), job);
        row.map_or_else(Vec::new, |row| row.target.as_bytes().to_vec())
    }

    pub fn note_target(&mut self, database: pg_sys::Oid, job: &[u8], target: &[u8], now: Time) {
        if let Some(row) = self.job_row(database, job, now) {
            row.target = TargetName::new(target);
        }
    }

    pub fn claims_of(&self, database: pg_sys::Oid, job: &[u8]) -> (Option<Time>, Option<Time>) {
        let row = self.jobs.get(database.to_u32(), job);
        row.map_or((None, None), |row| (row.claimed_at, row.served_at))
    }

    pub fn has_figures_of(&self, database: pg_sys::Oid, table: pg_sys::Oid) -> bool {
        self.database(database).is_some_and(|line| line.jobs_of == table)
    }

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

    pub fn figures(&self, database: pg_sys::Oid) -> Vec<Counted> {
        self.jobs.of(database.to_u32()).map(|row| (row.name().to_vec(), row.figures, row.since)).collect()
    }

    /// Returns the changed statistics of jobs. If shared memory has lost a job, also returns the names of all remaining
    /// jobs.
    pub fn figures_to_store(&mut self, database: pg_sys::Oid) -> (Vec<Counted>, Option<HashSet<Vec<u8>>>) {
        let has_left = self.database_mut(database).is_some_and(|line| std::mem::take(&mut line.jobs_left));
        let keep = has_left.then(|| self.jobs.of(database.to_u32()).map(|row| row.name().to_vec()).collect());
        let rows = self
            .jobs
            .of_mut(database.to_u32())
            .filter_map(|row| std::mem::take(&mut row.is_new).then(|| (row.name().to_vec(), row.figures, row.since)));
        (rows.collect(), keep)
    }

    pub fn figures_are_not_stored(&mut self, database: pg_sys::Oid) {
        self.jobs.of_mut(database.to_u32()).filter(|row| !row.figures.is_empty()).for_each(|row| row.is_new = true);
        if let Some(line) = self.database_mut(database) {
            line.jobs_left = true;
        }
    }

    pub fn forget_job(&mut self, database: pg_sys::Oid, job: &[u8]) {
        self.jobs.forget(database.to_u32(), job);
        // Sets the flag even if shared memory has no row of the job, because the table `awty_internal.job_stat` may
        // have one.
        if let Some(line) = self.database_mut(database) {
            line.jobs_left = true;
        }
    }
}
