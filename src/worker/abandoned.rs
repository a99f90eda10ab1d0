//! Runs that ended their processes.
//!
//! Invariant: what such a run had claimed stays claimed until it has been booked, or counted against its checks.
//! Does not: run anything; what is still due comes with the next turn.

use super::Worker;
use super::batch::clear_in_flight_of;
use crate::crash;
use crate::failpoint::failpoint;
use crate::pg::relations::{self, Purpose};
use crate::pg::transaction::{Verdict, transaction};
use crate::store::check_stat::Blame;

impl Worker {
    /// Sees to the runs of this role that ended their processes. One that ignored its timeout is booked as timed out. One that ended
    /// its process otherwise is counted: it runs alone and last from now on, and is held if that happens too often. `false` if one
    /// cannot be counted yet, because a client has it locked.
    pub(super) fn see_to_abandoned(&mut self) -> bool {
        let mut from = 0;
        while let Some(abandoned) = self.entry.next_abandoned(from) {
            from = abandoned.entry + 1;
            let ids = &abandoned.ids;
            failpoint!("abandoned.seen");
            if abandoned.overran {
                let found = transaction(|| Verdict::Commit(self.fetcher.locate(ids))).unwrap_or_default();
                if let [task] = found.as_slice()
                    && let [check] = task.checks.as_slice()
                {
                    self.context(task, true).book_terminated(check, abandoned.run_time);
                } else {
                    // A set: it cannot be told which of them it was, so each is run alone.
                    self.fetcher.isolate(ids);
                }
            } else {
                let alone = ids.len() == 1;
                let counted = transaction(|| {
                    Verdict::Commit(!relations::lock(Purpose::Write) || crash::blame(ids, Blame::Exit, alone))
                });
                self.fetcher.isolate(ids);
                if !counted.unwrap_or(false) {
                    // It stays claimed, so that it is not run meanwhile.
                    return false;
                }
                self.entry.note_blamed();
            }
            failpoint!("abandoned.counted");
            clear_in_flight_of(abandoned.entry);
            self.entry.forget_abandoned(abandoned.entry, abandoned.generation);
        }
        true
    }
}
