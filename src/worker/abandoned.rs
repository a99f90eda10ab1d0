//! Runs that ended their processes.
//!
//! Invariant: what such a run had claimed stays claimed until it has been booked, or counted against its checks.
//! Does not: run anything; what is still due comes with the next turn.

use super::{Worker, clear_intent_of};
use crate::executor;
use crate::extension::{self, Purpose};
use crate::failpoint::failpoint;
use crate::run::transaction::{Verdict, transaction};
use crate::store::tally::Blame;

impl Worker {
    /// Sees to the runs of this role that ended their processes. One that ignored its timeout is booked as timed out. One that ended
    /// its process otherwise is counted: it runs alone and last from now on, and is held if that happens too often. `false` if one
    /// cannot be counted yet, because a client has it locked.
    pub(super) fn see_to_abandoned(&mut self) -> bool {
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
                let alone = ids.len() == 1;
                let counted = transaction(|| {
                    Verdict::Commit(!extension::lock(Purpose::Write) || executor::blame(ids, Blame::Exit, alone))
                });
                self.agenda.isolate(ids);
                if !counted.unwrap_or(false) {
                    // It stays claimed, so that it is not run meanwhile.
                    return false;
                }
                self.seat.note_blamed();
            }
            failpoint!("abandoned.counted");
            clear_intent_of(abandoned.seat);
            self.seat.forget_abandoned(abandoned.seat, abandoned.generation);
        }
        true
    }
}
