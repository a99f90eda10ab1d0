//! What one transaction of a run comes to. Listeners are told by its commit, the counters and the log after it.
//!
//! Invariant: what is undone is neither counted nor told.
//! Does not: write to a table, or allocate for a run that is no problem.

use crate::error::failure_log::{self, Problem, Problems};
use crate::pg::catch::Failure;
use crate::pg::text::Text;
use crate::pg::unbound;
use crate::store::check_row::Row;
use crate::store::future_job;
use crate::store::job::Job;
use crate::store::record::RunRecord;
use awty_core::figures::{Fate, Figures, RunOf};
use awty_core::{After, Outcome};
use chrono::TimeDelta;
use std::ffi::CString;

pub struct Account {
    figures: Figures,
    problems: Problems,
}

impl Default for Account {
    fn default() -> Self {
        Self { figures: Figures::NONE, problems: Problems::default() }
    }
}

impl Account {
    /// A check has run.
    pub fn ran(&mut self, run: &RunRecord, fate: Fate) {
        let RunRecord { started_at, finished_at, .. } = *run;
        self.figures.ran(&RunOf { started_at, finished_at, lateness: run.lateness() }, fate);
    }

    /// The run, of one check or of a set, took so long.
    pub fn took(&mut self, run_time: TimeDelta) {
        if self.figures.runs > 0 {
            self.figures.took(run_time);
        }
    }

    /// A check has run and given an answer, by which it goes on or ends.
    pub fn answered(&mut self, job: &Job, row: &Row, run: &RunRecord, fate: After) {
        match fate {
            After::Again(_) => self.ran(run, Fate::Again),
            After::End(outcome) => {
                self.ran(run, Fate::End(outcome));
                self.ended(job, row, outcome);
            }
        }
    }

    /// A check has run and failed.
    pub fn failed(&mut self, job: &Job, row: &Row, run: &RunRecord, failure: &Failure, fate: After) {
        let attempt = (row.attempt.unsigned_abs() + 1, job.options.limits.max_attempts);
        let (counted, told) = match fate {
            After::Again(slot) => (Fate::Retry, failure_log::Fate::Retry(slot)),
            After::End(outcome) => (Fate::End(outcome), failure_log::Fate::End(outcome)),
        };
        self.ran(run, counted);
        let is_end = matches!(fate, After::End(_));
        if is_end {
            notify(job.notify.as_ref(), row.id);
        }
        self.problems.add(is_end, || Problem {
            id: row.id,
            entity: row.label(),
            fate: told,
            attempt,
            failure: Some(failure.clone()),
        });
    }

    /// A check ends without an error of its run.
    pub fn ended(&mut self, job: &Job, row: &Row, outcome: Outcome) {
        if !outcome.is_problem() {
            return;
        }
        notify(job.notify.as_ref(), row.id);
        let fate = failure_log::Fate::End(outcome);
        self.problems.add(true, || Problem { id: row.id, entity: row.label(), fate, attempt: (0, 0), failure: None });
    }

    /// The transaction is committed.
    pub fn tell(&mut self, job: &Text) {
        self.problems.tell(job);
    }
}

/// Checks that the caller is about to end without a run, by an error of awty's own. Returns what the log is to be told after the commit,
/// by job.
pub fn ends(ids: &[i64], outcome: Outcome, failure: &Failure) -> Vec<(Text, Problems)> {
    let mut told: Vec<(Text, Problems)> = Vec::new();
    // An idle database is asked nothing.
    for check in if ids.is_empty() { Vec::new() } else { future_job::describe(ids) } {
        notify(check.notify.as_ref(), check.id);
        // They come in the order of their jobs.
        if told.last().is_none_or(|(job, _)| *job != check.job) {
            told.push((check.job.clone(), Problems::default()));
        }
        if let Some((_, problems)) = told.last_mut() {
            let (id, entity, failure) = (check.id, check.entity, Some(failure.clone()));
            let fate = failure_log::Fate::End(outcome);
            problems.add(true, || Problem { id, entity, fate, attempt: (0, 0), failure });
        }
    }
    told
}

/// Has a job's channel told, by the commit, of a check that ends with a problem. The payload has no name, because anybody may listen.
pub fn notify(channel: Option<&Text>, id: i64) {
    let Some(channel) = channel else { return };
    // Neither has a NUL: the one is a text of PostgreSQL's, the other a number.
    if let (Ok(channel), Ok(payload)) = (CString::new(channel.as_bytes()), CString::new(id.to_string())) {
        unbound::async_notify(&channel, &payload);
    }
}
