//! A turn's tasks: named in `awty_internal.in_flight`, flushed, and run one after the other.
//!
//! Invariant: what runs is named on disk before, with `awty.synchronous_commit` on the standbys too, and claimed. Suspects run alone, in quarantine.
//! Does not: choose the tasks (see `fetch`), or know what becomes of a check (see `run`).

use super::fetch::Task;
use super::{Next, Worker, entry};
use crate::failpoint::failpoint;
use crate::pg::relations::{self, Purpose};
use crate::pg::transaction::{Verdict, transaction};
use crate::pg::{clock, process, session, session_locks};
use crate::run::{Ran, RunContext};
use crate::store::check_stat::Blame;
use crate::store::in_flight;
use crate::store::record::Candidate;
use std::cell::{Cell, RefCell};
use std::time::Duration;

/// A worker whose runs are quick asks no more often than this whether it has to leave.
const LOOK: Duration = Duration::from_millis(5);

/// How a batch ended.
enum BatchEnd {
    Done,
    /// The worker has to leave.
    Leave,
    /// Some job has been changed since the batch was chosen.
    Stale,
}

impl Worker {
    /// Runs a turn's tasks: those without suspicion together, the others alone.
    pub(super) fn run_all(&mut self, tasks: Vec<Task>) -> Next {
        let (blamed, others): (Vec<Task>, Vec<Task>) = tasks.into_iter().partition(|task| task.blame.is_some());
        let alone = blamed.into_iter().map(|task| vec![task]);
        let mut batches = std::iter::once(others).chain(alone).filter(|batch| !batch.is_empty());
        while let Some(batch) = batches.next() {
            // One that only ended its process does no harm to others.
            let is_suspect = batch[0].blame == Some(Blame::Crash);
            if is_suspect && !self.entry.enter_quarantine() {
                batch.iter().for_each(|task| self.fetcher.wait_for_quarantine(&task.checks));
                continue;
            }
            let ran = self.run_batch(&batch);
            if is_suspect {
                // The next suspect's crash must find nothing of this one: neither its name in flight nor a commit that is not flushed.
                self.clear_in_flight();
                self.entry.leave_quarantine();
            }
            match ran {
                BatchEnd::Done => {}
                BatchEnd::Leave => return Next::Leave,
                BatchEnd::Stale => {
                    // What is left of the turn is chosen again, from the jobs as they are now.
                    let left = batch.into_iter().chain(batches.flatten());
                    left.flat_map(|task| task.checks).for_each(|check| self.fetcher.go_back_to(check.slot));
                    return Next::Turn;
                }
            }
        }
        Next::Turn
    }

    fn run_batch(&mut self, batch: &[Task]) -> BatchEnd {
        if !self.announce(batch) {
            return BatchEnd::Leave;
        }
        let end = self.run_tasks(batch);
        self.entry.release(self.last_slot, batch.iter().map(|task| task.checks.len()).sum());
        failpoint!("run.released");
        end
    }

    fn run_tasks(&mut self, batch: &[Task]) -> BatchEnd {
        for task in batch {
            process::answer_signals();
            match self.run(task) {
                Ran::NoExtension => return BatchEnd::Leave,
                Ran::Stale => return BatchEnd::Stale,
                Ran::Booked | Ran::Locked | Ran::Left => {}
            }
            // What is left of the turn stays due; nothing has been claimed for it yet.
            if self.is_time_to_look() && (self.has_to_leave() || self.should_yield()) {
                return BatchEnd::Leave;
            }
        }
        BatchEnd::Done
    }

    /// Says, flushed to disk, what is about to run. This also flushes what ran before. With `awty.synchronous_commit`, the batch begins
    /// when the standbys have acknowledged it: a primary that was cut off runs nothing that its successor runs too.
    fn announce(&mut self, batch: &[Task]) -> bool {
        let began = clock::mono();
        let ids: Vec<i64> = batch.iter().flat_map(|task| task.checks.iter().map(|check| check.id)).collect();
        let worker = self.entry.number();
        let written = session::acknowledged(|| {
            transaction(|| {
                if !session_locks::hold() {
                    return Verdict::Rollback(false);
                }
                failpoint!("in_flight.begun");
                in_flight::write(worker, &ids);
                failpoint!("in_flight.written");
                Verdict::Commit(true)
            })
        });
        if !std::mem::replace(&mut self.in_flight, true) {
            self.entry.set_named(true);
        }
        self.flushing += clock::mono().since(began);
        failpoint!("in_flight.flushed");
        match written {
            Ok(written) => written,
            Err(failure) => {
                pgrx::log!("awty: a worker could not begin a batch: {} ({})", failure.message, failure.sqlstate);
                false
            }
        }
    }

    /// Runs a task under claims that are kept until the next one's are taken or the batch is over.
    fn run(&mut self, task: &Task) -> Ran {
        let wanted: Vec<i64> = task.checks.iter().map(|check| check.id).collect();
        let (granted, blamed) = self.entry.claim(&wanted);
        failpoint!("run.claimed");
        if task.blame.is_none() && blamed != self.fetcher.blamed {
            // A check may have been blamed since it was chosen.
            return Ran::Stale;
        }
        // Another worker is on those that were not granted. The checks of a task are in the order of their ids.
        let is_granted = |check: &&Candidate| granted.binary_search(&check.id).is_ok();
        let checks: Vec<_> = task.checks.iter().filter(is_granted).copied().collect();
        if checks.is_empty() {
            return Ran::Booked;
        }
        let ran = self.context(task, task.blame.is_some()).run(&checks);
        self.last_slot = self.last_slot.max(checks[0].slot);
        match ran {
            Ran::Locked => self.fetcher.postpone(&checks),
            Ran::Left => self.fetcher.leave_to_audit(&checks),
            Ran::Booked | Ran::Stale | Ran::NoExtension => {}
        }
        ran
    }

    /// Where the checks of a task are run.
    pub(super) fn context<'a>(&self, task: &'a Task, blamed: bool) -> RunContext<'a> {
        let able_since = self.fetcher.able_since(&task.job);
        let (worker, epoch) = (self.entry.index(), self.fetcher.epoch);
        let (called, account) = (Cell::new(false), RefCell::default());
        RunContext { worker, able_since, blamed, job: &task.job, epoch, called, account }
    }

    /// True at most once in [`LOOK`]: what is asked then (the database's lock, shared memory) costs more than a quick run.
    fn is_time_to_look(&mut self) -> bool {
        let now = clock::mono();
        let is_time = now.since(self.looked) >= LOOK;
        if is_time {
            self.looked = now;
        }
        is_time
    }

    /// Says, flushed to disk together with all that ran before, that this worker is about to run nothing.
    pub(super) fn clear_in_flight(&mut self) {
        if std::mem::take(&mut self.in_flight) {
            clear_in_flight_of(self.entry.index());
            self.entry.set_named(false);
        }
        self.flush();
    }
}

/// Says that nothing is run from an entry any more, flushed together with all that was committed here before. What cannot be
/// cleared is found by the maintainer.
pub fn clear_in_flight_of(entry: usize) {
    let _ = session::flushed(|| {
        transaction(|| {
            if relations::lock(Purpose::Write) {
                in_flight::clear(entry::number(entry));
            }
            Verdict::Commit(())
        })
    });
}
