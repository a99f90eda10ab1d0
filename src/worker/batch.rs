//! Invariant: before a check runs, a worker has claimed it, and its id is on disk in `awty_internal.in_flight`. A check
//! that is suspected of a crash runs alone, and the server runs only one suspected check at a time.

use super::fetch::Task;
use super::{Next, Worker, entry};
use crate::failpoint::failpoint;
use crate::pg::clock;
use crate::pg::relations::{self, Purpose};
use crate::process::transaction::{Verdict, transaction};
use crate::process::{self, session_locks, session_settings};
use crate::run::{RunContext, RunResult};
use crate::store::check_stat::Suspicion;
use crate::store::in_flight;
use crate::store::record::Candidate;
use std::cell::{Cell, RefCell};
use std::time::Duration;

/// Minimum time between two tests of whether the worker must exit. A test after each run could take longer than the
/// run.
const LOOK: Duration = Duration::from_millis(5);

enum BatchEnd {
    Done,
    Leave,
    Stale,
}

impl Worker {
    pub(super) fn run_all(&mut self, tasks: Vec<Task>) -> Next {
        let (suspected, others): (Vec<Task>, Vec<Task>) = tasks.into_iter().partition(|task| task.suspicion.is_some());
        let alone = suspected.into_iter().map(|task| vec![task]);
        let mut batches = std::iter::once(others).chain(alone).filter(|batch| !batch.is_empty());
        while let Some(batch) = batches.next() {
            let is_suspect = batch[0].suspicion == Some(Suspicion::Crash);
            if is_suspect && !self.entry.enter_quarantine() {
                batch.iter().for_each(|task| self.fetcher.wait_for_quarantine(&task.checks));
                continue;
            }
            let ran = self.run_batch(&batch);
            if is_suspect {
                // Removes the suspected check from `in_flight`, so that a crash of the next suspected check is not
                // blamed on this check.
                self.clear_in_flight();
                self.entry.leave_quarantine();
            }
            match ran {
                BatchEnd::Done => {}
                BatchEnd::Leave => return Next::Leave,
                BatchEnd::Stale => {
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
                RunResult::NoExtension => return BatchEnd::Leave,
                RunResult::Stale => return BatchEnd::Stale,
                RunResult::Booked | RunResult::Locked | RunResult::Left => {}
            }
            if self.is_time_to_look() && (self.has_to_leave() || self.should_yield()) {
                return BatchEnd::Leave;
            }
        }
        BatchEnd::Done
    }

    /// Records the checks of the batch in the table `in_flight`. With `awty.synchronous_commit`, the commit waits for
    /// the standbys, so that an old primary without standbys never runs the batch.
    fn announce(&mut self, batch: &[Task]) -> bool {
        let began = clock::mono();
        let ids: Vec<i64> = batch.iter().flat_map(|task| task.checks.iter().map(|check| check.id)).collect();
        let worker = self.entry.number();
        let written = session_settings::acknowledged(|| {
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

    fn run(&mut self, task: &Task) -> RunResult {
        let wanted: Vec<i64> = task.checks.iter().map(|check| check.id).collect();
        let (granted, suspected) = self.entry.claim(&wanted);
        failpoint!("run.claimed");
        if task.suspicion.is_none() && suspected != self.fetcher.suspected {
            return RunResult::Stale;
        }
        // `granted` is sorted, because the ids of a task's checks are sorted.
        let is_granted = |check: &&Candidate| granted.binary_search(&check.id).is_ok();
        let checks: Vec<_> = task.checks.iter().filter(is_granted).copied().collect();
        if checks.is_empty() {
            return RunResult::Booked;
        }
        let ran = self.context(task, task.suspicion.is_some()).run(&checks);
        self.last_slot = self.last_slot.max(checks[0].slot);
        match ran {
            RunResult::Locked => self.fetcher.postpone(&checks),
            RunResult::Left => self.fetcher.pause_failed(&checks),
            RunResult::Booked | RunResult::Stale | RunResult::NoExtension => {}
        }
        ran
    }

    pub(super) fn context<'a>(&self, task: &'a Task, suspected: bool) -> RunContext<'a> {
        let able_since = self.fetcher.able_since(&task.job);
        let (worker, epoch) = (self.entry.index(), self.fetcher.epoch);
        let (called, account) = (Cell::new(false), RefCell::default());
        RunContext { worker, able_since, suspected, job: &task.job, epoch, called, account }
    }

    fn is_time_to_look(&mut self) -> bool {
        let now = clock::mono();
        let is_time = now.since(self.looked) >= LOOK;
        if is_time {
            self.looked = now;
        }
        is_time
    }

    pub(super) fn clear_in_flight(&mut self) {
        if std::mem::take(&mut self.in_flight) {
            clear_in_flight_of(self.entry.index());
            self.entry.set_named(false);
        }
        self.flush();
    }
}

/// If the deletion fails, the maintainer deletes the rows later.
pub fn clear_in_flight_of(entry: usize) {
    let _ = session_settings::flushed(|| {
        transaction(|| {
            if relations::lock(Purpose::Write) {
                in_flight::clear(entry::number(entry));
            }
            Verdict::Commit(())
        })
    });
}
