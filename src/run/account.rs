//! What one transaction of a run comes to. Listeners are told by its commit, the counters and the log after it.
//!
//! Invariant: what is undone is neither counted nor told.
//! Does not: write to a table, or allocate for a run that is no problem.

use crate::pg::catch::Failure;
use crate::pg::text::Text;
use crate::problem::{self, Problem, Problems, notify};
use crate::shmem::{SharedState, wakeup};
use crate::store::check_row::Row;
use crate::store::job::Job;
use crate::store::record::RunRecord;
use awty_core::figures::{Fate, Figures, RunOf};
use awty_core::{After, Outcome, Time};
use chrono::TimeDelta;
use pgrx::pg_sys;
use std::cell::RefCell;

pub struct Account {
    figures: Figures,
    problems: Problems,
    /// What became of each check, where somebody wants to know.
    became: Option<Vec<(i64, Became)>>,
}

/// What an answer has made of a check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Became {
    /// It is pending at a later slot.
    Pending,
    /// It has ended, and the next occurrence is pending or held.
    Next {
        held: bool,
    },
    Ended,
}

impl Default for Account {
    fn default() -> Self {
        Self { figures: Figures::NONE, problems: Problems::default(), became: None }
    }
}

impl Account {
    /// One that says what became of each check.
    pub fn by_check() -> Self {
        Self { became: Some(Vec::new()), ..Self::default() }
    }

    /// A check goes on or ends; `next`: whether its next occurrence is held, if there is one.
    pub fn settled(&mut self, check: i64, fate: After, next: Option<bool>) {
        if let Some(became) = &mut self.became {
            let this = match (fate, next) {
                (After::Again(_), _) => Became::Pending,
                (After::End(_), Some(held)) => Became::Next { held },
                (After::End(_), None) => Became::Ended,
            };
            became.push((check, this));
        }
    }

    /// The transaction is a client's, or goes on: it is counted, and told in a summary, when it commits. Returns what became of each check.
    pub fn at_commit(self, job: &Text) -> Vec<(i64, Became)> {
        wakeup::count_runs_at_commit(job.as_bytes(), self.figures, self.problems.count());
        self.became.unwrap_or_default()
    }

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
            After::Again(slot) => (Fate::Retry, problem::Fate::Retry(slot)),
            After::End(outcome) => (Fate::End(outcome), problem::Fate::End(outcome)),
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
        let fate = problem::Fate::End(outcome);
        self.problems.add(true, || Problem { id: row.id, entity: row.label(), fate, attempt: (0, 0), failure: None });
    }

    /// The transaction is committed.
    pub fn tell(&mut self, job: &Text) {
        self.problems.tell(job);
        let figures = std::mem::replace(&mut self.figures, Figures::NONE);
        if figures.runs == 0 {
            return;
        }
        COUNTED.with_borrow_mut(|counted| match counted.iter_mut().rfind(|counted| counted.job == *job) {
            Some(counted) => {
                if counted.figures.runs == 0 {
                    counted.since = figures.last_run_at;
                }
                counted.figures.add(&figures);
            }
            None => counted.push(Counted { job: job.clone(), figures, since: figures.last_run_at }),
        });
    }
}

/// What the runs of a job have come to in this process, from the start of the first of them.
struct Counted {
    job: Text,
    figures: Figures,
    since: Option<Time>,
}

thread_local! {
    /// What the runs of this process have come to since that was last written, by job. Jobs stay in it, so that a run allocates nothing.
    static COUNTED: RefCell<Vec<Counted>> = const { RefCell::new(Vec::new()) };
}

/// Writes to shared memory what has been counted here.
pub fn write_counted(shared: &mut SharedState, database: pg_sys::Oid, now: Time) {
    COUNTED.with_borrow_mut(|counted| {
        for counted in counted.iter_mut().filter(|counted| counted.figures.runs > 0) {
            shared.count_runs(database, counted.job.as_bytes(), &counted.figures, counted.since.unwrap_or(now));
            counted.figures = Figures::NONE;
        }
    });
}
