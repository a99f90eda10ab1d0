//! Runs checks: one transaction per run, and a second one to book a failure.
//!
//! Invariant (P1): what a run did, its row of history and its next time are one commit. (P4): the row is locked only at
//! the end; if somebody else has changed it meanwhile, the run is undone as if it had never started.
//! Does not: choose what to run (see `worker`), or hold anything between runs but the worker's claim.

use crate::board::{self, Run};
use crate::clock;
use crate::error::{self, Error, state};
use crate::failpoint::failpoint;
use crate::function::{self, Function};
use crate::run::call::call;
use crate::run::row::{self, Locked, Row, Table};
use crate::run::timer;
use crate::run::transaction::{Verdict, transaction};
use crate::store::future_job::{self, Again, Candidate};
use crate::store::history::{self, End, Failure, RunRecord};
use crate::store::job::{self, Job};
use crate::store::tally::{self, Blame};
use crate::{extension, run::session, settings};
use awty_core::{After, Answer, Before, Mono, Outcome, Time, guard};
use chrono::TimeDelta;
use pgrx::FromDatum;
use pgrx::datum::TimestampWithTimeZone;
use std::cell::Cell;

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
    /// The extension is gone, or is being updated: the worker has nothing to do here any more.
    NoExtension,
}

/// Where a run happens.
pub struct Bench<'a> {
    /// The worker's seat.
    pub seat: usize,
    /// Since when checks of this job can run.
    pub able_since: Time,
    /// Must earlier runs be looked for although the row says that there were none: its crashes are counted?
    pub suspect: bool,
    pub job: &'a Job,
    /// Has the function been called, so that an error is the run's?
    pub called: Cell<bool>,
    /// The count of changes of `awty.job` when the job was read.
    pub epoch: u64,
}

/// How one transaction went.
enum Attempt {
    Booked,
    Failed(Failure),
    Conflict,
    Stale,
    NoExtension,
}

impl Bench<'_> {
    /// Runs these checks of one slot: together if the job is set-based, and in smaller sets after a failure, down to one,
    /// so that one bad row fails alone.
    pub fn run(&self, candidates: &[Candidate]) -> Ran {
        let began = clock::mono();
        let started_at = clock::now();
        self.called.set(false);
        let result = self.attempt(candidates, began, started_at);
        failpoint!("run.over");
        // In this order: the watchdog cannot strike any more when a late cancellation is forgotten.
        let struck = self.finish_on_board().max(timer::disarm());
        session::clean();
        failpoint!("run.cleaned");
        match result {
            Ok(Attempt::Booked) => Ran::Booked,
            Ok(Attempt::NoExtension) => Ran::NoExtension,
            Ok(Attempt::Stale) => Ran::Stale,
            Ok(Attempt::Conflict | Attempt::Failed(_)) | Err(_) if candidates.len() > 1 => self.run_halves(candidates),
            Ok(Attempt::Conflict) => Ran::Locked,
            Err(trouble) if !self.called.get() => {
                error::log::unreadable(candidates[0].id, &trouble);
                Ran::Left
            }
            Ok(Attempt::Failed(mut failure)) | Err(mut failure) => {
                let timed_out = struck > 0 && failure.sqlstate == state::QUERY_CANCELED;
                if timed_out {
                    let timeout = self.job.options.limits.timeout.as_seconds_f64();
                    failure.message = format!("run took longer than its timeout of {timeout} s");
                }
                self.book(&candidates[0], &failure, timed_out, began, started_at)
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

    /// One transaction: read, decide, call, lock, book.
    fn attempt(&self, candidates: &[Candidate], began: Mono, started_at: Time) -> Result<Attempt, Failure> {
        transaction(|| {
            failpoint!("run.begun");
            if !extension::hold() {
                return Verdict::Rollback(Attempt::NoExtension);
            }
            if job::epoch() != self.epoch {
                return Verdict::Rollback(Attempt::Stale);
            }
            failpoint!("run.locked");
            let Some(table) = Table::open() else { return Verdict::Rollback(Attempt::NoExtension) };
            let rows: Vec<Row> = candidates.iter().filter_map(|candidate| table.read(candidate.id)).collect();
            failpoint!("run.read");
            let (rows, settled) = self.settle(&table, rows, started_at);
            if !settled {
                return Verdict::Rollback(Attempt::Conflict);
            }
            if rows.is_empty() {
                return Verdict::Commit(Attempt::Booked);
            }
            failpoint!("run.settled");
            self.called.set(true);
            let answers = match self.call(&rows, began) {
                Ok(answers) => answers,
                Err(failure) => return Verdict::Rollback(Attempt::Failed(failure)),
            };
            failpoint!("run.called");
            let finished_at = clock::now();
            let took = TimeDelta::microseconds(clock::mono().since(began));
            let record = |slot| RunRecord { slot, started_at, finished_at, took };
            let mut ended: Vec<(&Row, Outcome)> = Vec::new();
            for (row, answer) in rows.iter().zip(answers) {
                let fate = guard::after(&row.check(), &self.job.options.limits, answer, finished_at);
                let ends_at_once = matches!(fate, After::End(_)) && !self.may_be_tallied(row);
                match table.lock(row) {
                    Locked::Same => {}
                    Locked::Own => continue,
                    Locked::Other => return Verdict::Rollback(Attempt::Conflict),
                }
                failpoint!("run.row_locked");
                match fate {
                    After::Again(slot) => {
                        future_job::put_again(row.id, &Again { slot, done: 1, attempt: 0 }, &record(row.slot));
                    }
                    After::End(outcome) if ends_at_once => {
                        table.delete(row);
                        ended.push((row, outcome));
                    }
                    After::End(outcome) => {
                        let end = End { outcome, done: 1, failure: None };
                        history::end_run(row.id, self.job, &record(row.slot), &end);
                    }
                }
            }
            if let Some((row, _)) = ended.first() {
                history::archive(&ended, self.job, &record(row.slot));
            }
            failpoint!("run.booked");
            Verdict::Commit(Attempt::Booked)
        })
    }

    /// Deals with the rows that are not to be run: not due, held, missed, too late. Gives back those to run, and whether
    /// all others could be dealt with.
    fn settle(&self, table: &Table, rows: Vec<Row>, now: Time) -> (Vec<Row>, bool) {
        let mut run = Vec::with_capacity(rows.len());
        for row in rows.into_iter().filter(|row| !row.held) {
            let before = guard::before(&row.check(), &self.job.options.limits, self.able_since, now);
            match before {
                Before::Run => run.push(row),
                Before::NotYet => {}
                Before::Move(_) | Before::End(_) if table.lock(&row) != Locked::Same => return (run, false),
                Before::Move(slot) => future_job::put_at(row.id, slot),
                Before::End(outcome) => {
                    history::end(&[row.id], outcome, now, None);
                }
            }
        }
        (run, true)
    }

    /// Calls the function and reads its answers, one for each row.
    fn call(&self, rows: &[Row], began: Mono) -> Result<Vec<Answer>, Failure> {
        let job = self.job;
        let function = function::of_job(job)?;
        self.start_on_board(began);
        timer::arm(job.options.limits.timeout.to_std().unwrap_or_default());
        if function.set_based {
            self.call_set(function, rows)
        } else {
            // SAFETY: the function was just found to take one check and to return a timestamptz.
            rows.iter()
                .map(|row| {
                    // SAFETY: as above.
                    let (datum, null) = unsafe { call(function.oid, row.datum) }?;
                    Ok(row::answer((!null).then(|| datum.value() as i64)))
                })
                .collect()
        }
    }

    fn call_set(&self, function: Function, rows: &[Row]) -> Result<Vec<Answer>, Failure> {
        let argument = row::array(rows, row::row_type());
        // SAFETY: the function was just found to take an array of checks and to return one of timestamptz.
        let (datum, null) = unsafe { call(function.oid, argument) }?;
        // SAFETY: as above.
        let times = unsafe { pgrx::Array::<TimestampWithTimeZone>::from_datum(datum, null) };
        let answers: Vec<Answer> =
            times.iter().flat_map(pgrx::Array::iter).map(|time| row::answer(time.map(i64::from))).collect();
        if answers.len() != rows.len() {
            let (job, checks) = (self.job.name.to_string(), rows.len());
            return Err(Error::AnswerCount { job, checks, answers: answers.len() }.into());
        }
        Ok(answers)
    }

    /// Can there be a tally of earlier runs?
    fn may_be_tallied(&self, row: &Row) -> bool {
        self.suspect || row.check_count > 0 || row.attempt > 0
    }

    /// Books a failure in a transaction of its own, if the check is still the one that failed.
    fn book(&self, candidate: &Candidate, failure: &Failure, timed_out: bool, began: Mono, started_at: Time) -> Ran {
        let took = TimeDelta::microseconds(clock::mono().since(began));
        let booked = transaction(|| {
            if !extension::hold() {
                return Verdict::Rollback(Ran::NoExtension);
            }
            failpoint!("failure.begun");
            let Some(table) = Table::open() else { return Verdict::Rollback(Ran::NoExtension) };
            let Some(row) = table.read(candidate.id) else { return Verdict::Rollback(Ran::Booked) };
            if table.lock(&row) != Locked::Same {
                return Verdict::Rollback(Ran::Locked);
            }
            failpoint!("failure.row_locked");
            let finished_at = clock::now();
            let record = RunRecord { slot: row.slot, started_at, finished_at, took };
            match guard::failed(&row.check(), &self.job.options.limits, timed_out, finished_at) {
                After::Again(slot) => {
                    let again = Again { slot, done: 0, attempt: row.attempt + 1 };
                    future_job::put_again(row.id, &again, &record);
                }
                After::End(outcome) => {
                    let end = End { outcome, done: 0, failure: Some(failure) };
                    history::end_run(row.id, self.job, &record, &end);
                }
            }
            failpoint!("failure.booked");
            Verdict::Commit(Ran::Booked)
        });
        booked.unwrap_or_else(|trouble| {
            // Names no job and no key: the server's log may be read by many.
            pgrx::log!(
                "awty: the failure of check {} could not be booked and is tried again: {} ({})",
                candidate.id,
                trouble.message,
                trouble.sqlstate
            );
            Ran::Left
        })
    }

    /// Books a run that had to be terminated because it ignored its timeout. The process that ran it is gone.
    pub fn book_terminated(&self, candidate: &Candidate, took: TimeDelta) -> Ran {
        let now = clock::now();
        let failure = Failure {
            sqlstate: state::QUERY_CANCELED.into(),
            message: "run ignored its timeout and was terminated".into(),
        };
        let began = Mono(clock::mono().0 - took.num_microseconds().unwrap_or(0));
        self.book(candidate, &failure, true, began, now - took)
    }

    fn start_on_board(&self, began: Mono) {
        let timeout = self.job.options.limits.timeout.num_microseconds().unwrap_or(i64::MAX);
        board::write(|board| board.seats[self.seat].run = Some(Run { began, timeout, strikes: 0 }));
    }

    /// The run is over; returns how often the watchdog struck.
    fn finish_on_board(&self) -> u32 {
        board::write(|board| board.seats[self.seat].run.take()).map_or(0, |run| u32::from(run.strikes))
    }
}

/// Counts against these checks that the server or their process went down while they were about to run or running. One
/// that was alone is held, if that is too often by now; of many, all but one are innocent, and they are run alone next.
/// `false` if one that was alone could not be counted, because a client has it locked.
pub fn blame(ids: &[i64], blame: Blame, alone: bool) -> bool {
    let counted = tally::count(ids, blame);
    if let [id] = *ids
        && alone
        && counted
    {
        let most = settings::max_crashes();
        if tally::hold(id, most) {
            error::log::check_held(id, most);
        }
    }
    counted || !alone
}
