//! What shared memory has of each job: what its runs have come to, and what the log has been told of it.
//!
//! Invariant: a row that leaves is noted in its database's line, so that the maintainer removes it from the table.
//! Does not: decide which one leaves (see `awty_core::job_table`).

use super::SharedState;
use awty_core::job_table::JobRow;
use awty_core::{Mono, Passed, Time};
use pgrx::pg_sys;

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
}
