//! Invariant: one transaction commits the effects of a run, its history row and the check's next due time. If a run
//! fails, a second transaction stores the failure.

pub mod book;
pub mod call;
pub mod crash;

use self::book::{Conflict, Timing};
use self::call::{Caller, ask};
use crate::failpoint::failpoint;
use crate::figures::account::Account;
use crate::pg::catch::Failure;
use crate::pg::{changes, clock, sqlstate};
use crate::process::transaction::{Verdict, transaction};
use crate::process::{session, session_locks, timer};
use crate::repeat::own_run;
use crate::shmem::{self, Run};
use crate::store::check_row::{Row, Table};
use crate::store::job::{self, Job};
use crate::store::record::Candidate;
use crate::watch::{stops, untold};
use crate::{error, function};
use awty_core::watch::Untold;
use awty_core::{Answer, Mono, Time};
use chrono::TimeDelta;
use pgrx::pg_sys;
use std::cell::{Cell, RefCell};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunResult {
    Booked,
    Stale,
    Locked,
    /// awty could not read the checks, or could not store the results of the run.
    Left,
    NoExtension,
}

pub struct RunContext<'a> {
    pub worker: usize,
    pub able_since: Time,
    pub suspected: bool,
    pub job: &'a Job,
    pub epoch: u64,
    pub called: Cell<bool>,
    pub account: RefCell<Account>,
}

enum TxnEnd {
    Booked,
    Failed(Failure),
    Conflict,
    Stale,
    NoExtension,
}

impl From<Conflict> for TxnEnd {
    fn from(_: Conflict) -> Self {
        TxnEnd::Conflict
    }
}

impl RunContext<'_> {
    /// If a run of several checks fails, runs each half again, until only the checks with bad data fail.
    pub fn run(&self, candidates: &[Candidate]) -> RunResult {
        if !session::is_clean() {
            // The session could not be cleaned, but a later attempt may succeed.
            return RunResult::Locked;
        }
        let began = clock::mono();
        let started_at = clock::now();
        self.called.set(false);
        let result = self.attempt(candidates, began, started_at);
        failpoint!("run.over");
        // Calls `note_end` first, because the launcher may cancel the run until `note_end` returns. `disarm` clears
        // such a late cancellation.
        let struck = self.note_end().max(timer::disarm());
        session::clean();
        failpoint!("run.cleaned");
        match result {
            Ok(TxnEnd::Booked) => {
                self.account.borrow_mut().tell(&self.job.name);
                RunResult::Booked
            }
            Ok(TxnEnd::NoExtension) => RunResult::NoExtension,
            Ok(TxnEnd::Stale) => RunResult::Stale,
            Ok(TxnEnd::Conflict | TxnEnd::Failed(_)) | Err(_) if candidates.len() > 1 => self.run_halves(candidates),
            Ok(TxnEnd::Conflict) => RunResult::Locked,
            Err(trouble) if !self.called.get() => {
                error::log::unreadable(candidates[0].id, &trouble);
                RunResult::Left
            }
            Ok(TxnEnd::Failed(mut failure)) | Err(mut failure) => {
                let timed_out = struck > 0 && failure.sqlstate == sqlstate::QUERY_CANCELED;
                if timed_out {
                    failure.message = over_time(self.job.options.limits.timeout);
                }
                self.book_failure(&candidates[0], &failure, timed_out, began, started_at)
            }
        }
    }

    fn run_halves(&self, candidates: &[Candidate]) -> RunResult {
        let (first, second) = candidates.split_at(candidates.len() / 2);
        match (self.run(first), self.run(second)) {
            (RunResult::Booked, RunResult::Booked) => RunResult::Booked,
            (RunResult::NoExtension, _) | (_, RunResult::NoExtension) => RunResult::NoExtension,
            (RunResult::Stale, _) | (_, RunResult::Stale) => RunResult::Stale,
            (RunResult::Locked, _) | (_, RunResult::Locked) => RunResult::Locked,
            _ => RunResult::Left,
        }
    }

    fn attempt(&self, candidates: &[Candidate], began: Mono, started_at: Time) -> Result<TxnEnd, Failure> {
        self.account.take();
        transaction(|| match self.read_call_book(candidates, began, started_at) {
            Ok(()) => Verdict::Commit(TxnEnd::Booked),
            Err(end) => Verdict::Rollback(end),
        })
    }

    fn read_call_book(&self, candidates: &[Candidate], began: Mono, started_at: Time) -> Result<(), TxnEnd> {
        failpoint!("run.begun");
        if !session_locks::hold() {
            return Err(TxnEnd::NoExtension);
        }
        if changes::of_rows() != self.epoch && !self.is_job_current() {
            return Err(TxnEnd::Stale);
        }
        failpoint!("run.locked");
        let table = Table::open().ok_or(TxnEnd::NoExtension)?;
        let rows: Vec<Row> = table.read_all(candidates.iter().map(|candidate| candidate.id));
        failpoint!("run.read");
        let account = &mut *self.account.borrow_mut();
        let rows = book::apply_guards(&table, self.job, rows, self.able_since, started_at, account)?;
        if rows.is_empty() {
            return Ok(());
        }
        failpoint!("run.settled");
        self.called.set(true);
        let own = rows.iter().map(|row| row.id).collect();
        let answers = own_run::during(own, || self.call(&rows, began))
            .map_err(|failure| if stops::was_overtaken() { TxnEnd::Conflict } else { TxnEnd::Failed(failure) })?;
        failpoint!("run.called");
        let run_time = clock::delta_of(clock::mono().since(began));
        let timing = Timing { started_at, finished_at: clock::now(), run_time };
        book::answers(&table, self.job, rows.into_iter().zip(answers), &timing, self.suspected, account)?;
        account.took(run_time);
        failpoint!("run.booked");
        Ok(())
    }

    /// Returns whether the run's copy of the job's definition is still current. Ignores changes of other jobs, so that
    /// one role cannot stop the runs of all roles.
    fn is_job_current(&self) -> bool {
        matches!(job::find(&self.job.name), Some(Ok(now)) if now == *self.job)
    }

    fn call(&self, rows: &[Row], began: Mono) -> Result<Vec<Answer>, Failure> {
        let job = self.job;
        let function = function::of_job(job)?;
        self.note_start(began);
        timer::arm(job.options.limits.timeout.to_std().unwrap_or_default());
        let rows: Vec<pg_sys::Datum> = rows.iter().map(|row| row.datum).collect();
        ask(job, function, &rows, Caller::Worker)
    }

    fn book_failure(
        &self,
        candidate: &Candidate,
        failure: &Failure,
        timed_out: bool,
        began: Mono,
        started_at: Time,
    ) -> RunResult {
        let run_time = clock::delta_of(clock::mono().since(began));
        self.account.take();
        let booked = transaction(|| {
            if !session_locks::hold() {
                return Verdict::Rollback(RunResult::NoExtension);
            }
            failpoint!("failure.begun");
            let Some(table) = Table::open() else { return Verdict::Rollback(RunResult::NoExtension) };
            let Some(row) = table.read(candidate.id) else { return Verdict::Rollback(RunResult::Booked) };
            let timing = Timing { started_at, finished_at: clock::now(), run_time };
            let account = &mut *self.account.borrow_mut();
            if book::failure(&table, self.job, &row, failure, timed_out.into(), &timing, account).is_err() {
                return Verdict::Rollback(RunResult::Locked);
            }
            account.took(run_time);
            failpoint!("failure.booked");
            Verdict::Commit(RunResult::Booked)
        });
        match booked {
            Ok(ran) => {
                if ran == RunResult::Booked {
                    self.account.borrow_mut().tell(&self.job.name);
                }
                ran
            }
            Err(trouble) => {
                pgrx::log!(
                    "awty: the failure of check {} could not be booked and is tried again: {}",
                    candidate.id,
                    error::log::shown(&trouble)
                );
                RunResult::Left
            }
        }
    }

    pub fn book_terminated(&self, candidate: &Candidate, untold: Option<Untold>, run_time: TimeDelta) -> RunResult {
        untold::resume(untold);
        let failure = Failure {
            sqlstate: sqlstate::QUERY_CANCELED.into(),
            message: "run ignored its timeout and was terminated".into(),
            context: String::new(),
        };
        let began = Mono(clock::mono().0 - run_time.num_microseconds().unwrap_or(0));
        self.book_failure(candidate, &failure, true, began, clock::now() - run_time)
    }

    fn note_start(&self, began: Mono) {
        let run = Run::new(began, self.job.options.limits.timeout.to_std().unwrap_or_default());
        untold::keep_in(self.worker);
        shmem::write(|shared| {
            let entry = &mut shared.workers[self.worker];
            (entry.run, entry.untold) = (Some(run), None);
        });
    }

    fn note_end(&self) -> u32 {
        shmem::write(|shared| shared.workers[self.worker].run.take()).map_or(0, |run| u32::from(run.strikes))
    }
}

pub fn over_time(timeout: TimeDelta) -> String {
    format!("run took longer than its timeout of {} s", timeout.as_seconds_f64())
}
