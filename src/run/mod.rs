//! Runs checks: one transaction for each run, and a second one to book a failure.
//!
//! Invariant (P1): what a run did, its row of history and its next time are one commit. (P4): a check whose row somebody else has
//! changed meanwhile is undone as if its run had never started.
//! Does not: choose what to run (see `worker`), decide its fate (see `awty_core::policy`), or write it down (see `book`).

pub mod account;
pub mod book;
pub mod call;

use self::account::Account;
use self::book::{Conflict, Timing};
use self::call::{Place, ask};
use crate::error;
use crate::failpoint::failpoint;
use crate::function;
use crate::pg::catch::Failure;
use crate::pg::changes;
use crate::pg::transaction::{Verdict, transaction};
use crate::pg::{clock, session, session_locks, sqlstate, timer};
use crate::repeat::own;
use crate::shmem::{self, Run};
use crate::store::check_row::{Row, Table};
use crate::store::job::Job;
use crate::store::record::Candidate;
use awty_core::{Answer, Mono, Time};
use chrono::TimeDelta;
use pgrx::pg_sys;
use std::cell::{Cell, RefCell};

/// What became of the checks that were taken on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ran {
    /// Booked: ended, at a later slot, or gone already.
    Booked,
    /// Not tried, because some job has been changed since they were chosen.
    Stale,
    /// Left as they were, because a client has them locked.
    Locked,
    /// Left as they were, because awty could not read or book them.
    Left,
    /// The extension is gone, or another version is being installed: the worker has nothing to do here any more.
    NoExtension,
}

/// Where a run happens.
pub struct RunContext<'a> {
    /// The worker's place in shared memory.
    pub worker: usize,
    /// Since when checks of this job can run.
    pub able_since: Time,
    /// A crash or exit may have been counted against the checks.
    pub blamed: bool,
    pub job: &'a Job,
    /// The count of changes of `awty.job` when the job was read.
    pub epoch: u64,
    /// Has the function been called, so that an error is the run's?
    pub called: Cell<bool>,
    /// What the transaction that is going on comes to.
    pub account: RefCell<Account>,
}

/// How one transaction went.
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
    /// Runs these checks of one slot: together if the job is set-based, and in smaller sets after a failure, down to one,
    /// so that one bad row fails alone.
    pub fn run(&self, candidates: &[Candidate]) -> Ran {
        if !session::is_clean() {
            // What keeps it from that may pass as a lock does.
            return Ran::Locked;
        }
        let began = clock::mono();
        let started_at = clock::now();
        self.called.set(false);
        let result = self.attempt(candidates, began, started_at);
        failpoint!("run.over");
        // In this order: the watchdog cannot strike any more when a late cancellation is forgotten.
        let struck = self.note_end().max(timer::disarm());
        session::clean();
        failpoint!("run.cleaned");
        match result {
            Ok(TxnEnd::Booked) => {
                self.account.borrow_mut().tell(&self.job.name);
                Ran::Booked
            }
            Ok(TxnEnd::NoExtension) => Ran::NoExtension,
            Ok(TxnEnd::Stale) => Ran::Stale,
            Ok(TxnEnd::Conflict | TxnEnd::Failed(_)) | Err(_) if candidates.len() > 1 => self.run_halves(candidates),
            Ok(TxnEnd::Conflict) => Ran::Locked,
            Err(trouble) if !self.called.get() => {
                error::log::unreadable(candidates[0].id, &trouble);
                Ran::Left
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

    fn run_halves(&self, candidates: &[Candidate]) -> Ran {
        let (first, second) = candidates.split_at(candidates.len() / 2);
        match (self.run(first), self.run(second)) {
            (Ran::Booked, Ran::Booked) => Ran::Booked,
            (Ran::NoExtension, _) | (_, Ran::NoExtension) => Ran::NoExtension,
            (Ran::Stale, _) | (_, Ran::Stale) => Ran::Stale,
            (Ran::Locked, _) | (_, Ran::Locked) => Ran::Locked,
            _ => Ran::Left,
        }
    }

    /// One transaction: read, decide, call, book.
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
        if changes::of_jobs() != self.epoch {
            return Err(TxnEnd::Stale);
        }
        failpoint!("run.locked");
        let table = Table::open().ok_or(TxnEnd::NoExtension)?;
        let rows: Vec<Row> = table.read_all(candidates.iter().map(|candidate| candidate.id));
        failpoint!("run.read");
        let account = &mut *self.account.borrow_mut();
        let rows = book::settle(&table, self.job, rows, self.able_since, started_at, account)?;
        if rows.is_empty() {
            return Ok(());
        }
        failpoint!("run.settled");
        self.called.set(true);
        let own = rows.iter().map(|row| row.id).collect();
        let answers = own::during(own, || self.call(&rows, began)).map_err(TxnEnd::Failed)?;
        failpoint!("run.called");
        let run_time = clock::delta_of(clock::mono().since(began));
        let timing = Timing { started_at, finished_at: clock::now(), run_time };
        book::answers(&table, self.job, rows.into_iter().zip(answers), &timing, self.blamed, account)?;
        account.took(run_time);
        failpoint!("run.booked");
        Ok(())
    }

    /// Calls the function and reads its answers, one for each row.
    fn call(&self, rows: &[Row], began: Mono) -> Result<Vec<Answer>, Failure> {
        let job = self.job;
        let function = function::of_job(job)?;
        self.note_start(began);
        timer::arm(job.options.limits.timeout.to_std().unwrap_or_default());
        let rows: Vec<pg_sys::Datum> = rows.iter().map(|row| row.datum).collect();
        ask(job, function, &rows, Place::Worker)
    }

    /// Books a failure in a transaction of its own, if the check is still the one that failed.
    fn book_failure(
        &self,
        candidate: &Candidate,
        failure: &Failure,
        timed_out: bool,
        began: Mono,
        started_at: Time,
    ) -> Ran {
        let run_time = clock::delta_of(clock::mono().since(began));
        self.account.take();
        let booked = transaction(|| {
            if !session_locks::hold() {
                return Verdict::Rollback(Ran::NoExtension);
            }
            failpoint!("failure.begun");
            let Some(table) = Table::open() else { return Verdict::Rollback(Ran::NoExtension) };
            let Some(row) = table.read(candidate.id) else { return Verdict::Rollback(Ran::Booked) };
            let timing = Timing { started_at, finished_at: clock::now(), run_time };
            let account = &mut *self.account.borrow_mut();
            if book::failure(&table, self.job, &row, failure, timed_out.into(), &timing, account).is_err() {
                return Verdict::Rollback(Ran::Locked);
            }
            account.took(run_time);
            failpoint!("failure.booked");
            Verdict::Commit(Ran::Booked)
        });
        match booked {
            Ok(ran) => {
                if ran == Ran::Booked {
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
                Ran::Left
            }
        }
    }

    /// Books a run that was terminated because it ignored its timeout. Its process is gone.
    pub fn book_terminated(&self, candidate: &Candidate, run_time: TimeDelta) -> Ran {
        let failure = Failure {
            sqlstate: sqlstate::QUERY_CANCELED.into(),
            message: "run ignored its timeout and was terminated".into(),
            context: String::new(),
        };
        let began = Mono(clock::mono().0 - run_time.num_microseconds().unwrap_or(0));
        self.book_failure(candidate, &failure, true, began, clock::now() - run_time)
    }

    /// Tells the watchdog of the run.
    fn note_start(&self, began: Mono) {
        let run = Run::new(began, self.job.options.limits.timeout.to_std().unwrap_or_default());
        shmem::write(|shared| shared.workers[self.worker].run = Some(run));
    }

    /// The run is over; returns how often the watchdog struck.
    fn note_end(&self) -> u32 {
        shmem::write(|shared| shared.workers[self.worker].run.take()).map_or(0, |run| u32::from(run.strikes))
    }
}

/// What is said of a run that was cancelled for its time.
pub fn over_time(timeout: TimeDelta) -> String {
    format!("run took longer than its timeout of {} s", timeout.as_seconds_f64())
}
