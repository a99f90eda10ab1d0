//! Handles runs whose worker process has ended.

use super::Worker;
use super::batch::clear_in_flight_of;
use crate::failpoint::failpoint;
use crate::pg::relations::{self, Purpose};
use crate::process::transaction::{Verdict, transaction};
use crate::run::crash;
use crate::store::check_stat::Suspicion;

impl Worker {
    /// Handles the unfinished runs of dead workers. Records a run that ignored its timeout as timed out. Marks the
    /// checks of any other run as a possible cause of the worker's death, so that each check runs alone next time.
    ///
    /// Returns `false` if a client has locked a check.
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
                    self.context(task, true).book_terminated(check, abandoned.untold, abandoned.run_time);
                } else {
                    self.fetcher.isolate(ids);
                }
            } else {
                let alone = ids.len() == 1;
                let counted = transaction(|| {
                    Verdict::Commit(!relations::lock(Purpose::Write) || crash::suspect(ids, Suspicion::Exit, alone))
                });
                self.fetcher.isolate(ids);
                if !counted.unwrap_or(false) {
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
