//! Runs whose processes ended in the middle of them.
//!
//! Invariant: what such a run had claimed stays claimed until it has been booked, or counted against its checks.
//! Does not: run anything; what is still due comes with the next turn.

use super::{Worker, clear_intent_of};
use crate::failpoint::failpoint;
use crate::run::transaction::{Verdict, transaction};
use crate::{executor, extension};

impl Worker {
    /// Sees to the runs of this role that their processes did not survive. One that ignored its timeout is booked as timed
    /// out. One that ended its process otherwise, by itself or by an administrator, counts as a crash of its own: it is run
    /// alone and last from now on, and held if that happens too often.
    pub(super) fn see_to_abandoned(&mut self) {
        let mut from = 0;
        while let Some(abandoned) = self.seat.next_abandoned(from) {
            from = abandoned.seat + 1;
            let ids = &abandoned.ids;
            failpoint!("abandoned.seen");
            if abandoned.overran {
                let found = transaction(|| Verdict::Commit(self.agenda.locate(ids))).unwrap_or_default();
                if let [task] = found.as_slice()
                    && let [check] = task.checks.as_slice()
                {
                    self.bench(task, true).book_terminated(check, abandoned.took);
                } else {
                    // A set: it cannot be told which of them it was, so each is run alone.
                    self.agenda.isolate(ids);
                }
            } else {
                let counted =
                    transaction(|| Verdict::Commit(!extension::lock() || executor::blame(ids, ids.len() == 1)));
                self.agenda.isolate(ids);
                if !counted.unwrap_or(false) {
                    // It stays claimed, so that it is not run meanwhile, and is seen to in a later turn.
                    continue;
                }
            }
            failpoint!("abandoned.counted");
            clear_intent_of(abandoned.seat);
            self.seat.forget_abandoned(abandoned.seat);
        }
    }
}
