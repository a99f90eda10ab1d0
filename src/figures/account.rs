//! Invariant: awty updates the counters and the log only after the commit, so that a transaction that aborts changes
//! neither.

use super::problem_log::{self, Problem, Problems, notify};
use crate::pg::catch::Failure;
use crate::pg::text::Text;
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
    results: Option<Vec<(i64, After, Option<bool>)>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheckResult {
    Pending,
    Next { held: bool },
    Ended,
}

impl Default for Account {
    fn default() -> Self {
        Self { figures: Figures::NONE, problems: Problems::default(), results: None }
    }
}

impl Account {
    pub fn by_check() -> Self {
        Self { results: Some(Vec::new()), ..Self::default() }
    }

    /// `next` is `None` if the repetition has no next check. `Some` says whether the next check is held.
    pub fn settled(&mut self, check: i64, fate: After, next: Option<bool>) {
        if let Some(results) = &mut self.results {
            results.push((check, fate, next));
        }
    }

    pub fn at_commit(self, job: &Text) -> Vec<(i64, CheckResult)> {
        wakeup::count_runs_at_commit(job.as_bytes(), self.figures, self.problems.count());
        let result = |(check, fate, next)| match (fate, next) {
            (After::Again(_), _) => (check, CheckResult::Pending),
            (After::End(_), Some(held)) => (check, CheckResult::Next { held }),
            (After::End(_), None) => (check, CheckResult::Ended),
        };
        self.results.unwrap_or_default().into_iter().map(result).collect()
    }

    pub fn fates(self) -> Vec<(i64, After)> {
        self.results.unwrap_or_default().into_iter().map(|(check, fate, _)| (check, fate)).collect()
    }

    pub fn ran(&mut self, run: &RunRecord, fate: Fate) {
        let RunRecord { started_at, finished_at, .. } = *run;
        self.figures.ran(&RunOf { started_at, finished_at, lateness: run.lateness() }, fate);
    }

    pub fn took(&mut self, run_time: TimeDelta) {
        if self.figures.runs > 0 {
            self.figures.took(run_time);
        }
    }

    pub fn answered(&mut self, job: &Job, row: &Row, run: &RunRecord, fate: After) {
        match fate {
            After::Again(_) => self.ran(run, Fate::Again),
            After::End(outcome) => {
                self.ran(run, Fate::End(outcome));
                self.ended(job, row, outcome);
            }
        }
    }

    pub fn failed(&mut self, job: &Job, row: &Row, run: &RunRecord, failure: &Failure, fate: After) {
        let attempt = (row.attempt.unsigned_abs() + 1, job.options.limits.max_attempts);
        let (counted, told) = match fate {
            After::Again(slot) => (Fate::Retry, problem_log::Fate::Retry(slot)),
            After::End(outcome) => (Fate::End(outcome), problem_log::Fate::End(outcome)),
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

    pub fn ended(&mut self, job: &Job, row: &Row, outcome: Outcome) {
        if !outcome.is_problem() {
            return;
        }
        notify(job.notify.as_ref(), row.id);
        let fate = problem_log::Fate::End(outcome);
        self.problems.add(true, || Problem { id: row.id, entity: row.label(), fate, attempt: (0, 0), failure: None });
    }

    /// The caller must have committed the run's transaction.
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
            None => counted.push(UnwrittenFigures { job: job.clone(), figures, since: figures.last_run_at }),
        });
    }
}

struct UnwrittenFigures {
    job: Text,
    figures: Figures,
    since: Option<Time>,
}

thread_local! {
    /// A job stays in this list after its counters were written, so that its later runs allocate no memory.
    static COUNTED: RefCell<Vec<UnwrittenFigures>> = const { RefCell::new(Vec::new()) };
}

pub fn write_counted(shared: &mut SharedState, database: pg_sys::Oid, now: Time) {
    COUNTED.with_borrow_mut(|counted| {
        for counted in counted.iter_mut().filter(|counted| counted.figures.runs > 0) {
            shared.count_runs(database, counted.job.as_bytes(), &counted.figures, counted.since.unwrap_or(now));
            counted.figures = Figures::NONE;
        }
    });
}
