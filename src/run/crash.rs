//! Before a worker runs a batch, it writes the batch's checks to `awty_internal.in_flight` and flushes. After a crash
//! of the server, the first inspection of each database counts a crash against the checks in the remaining rows. A mark
//! in `pg_stat/` shows a clean shutdown, after which the rows are ignored.
//!
//! A check with a counted crash is a *suspect*. It runs alone, with its own row in `in_flight`, and in quarantine: the
//! whole server runs one suspect at a time, the least suspected first. A run that ends its own process harms no other
//! run, so its check needs no quarantine. At `awty.max_crashes` a check is held, but never deleted.
//!
//! Invariant: a crash counts once against a check. If a suspect was in quarantine, the crash counts against no other
//! suspect. A crash is not counted against a check that a client has locked right after the crash.

use crate::pg::catalog;
use crate::shmem::{self, Occupancy};
use crate::store::check_stat::{self, Suspicion};
use crate::store::in_flight;
use crate::{error, settings};
use std::collections::HashSet;

/// Counts a crash or an exit against the checks. If the run had several checks, only one of them is to blame, so each
/// of them runs alone next.
///
/// Returns `false` if the run had one check and a client has locked it, so that nothing was counted.
pub fn suspect(ids: &[i64], suspicion: Suspicion, alone: bool) -> bool {
    let counted = check_stat::count(ids, suspicion);
    if let [id] = *ids
        && alone
        && counted
    {
        let most = settings::max_crashes();
        if check_stat::hold(id, most) {
            error::log::check_held(id, most);
        }
    }
    counted || !alone
}

/// Returns the entries in shared memory that dead workers have left, as indexes and generations.
pub fn take_up_in_flight(is_first_inspection: bool) -> Vec<(usize, u64)> {
    let here = catalog::database();
    // Reads the rows before the list of live workers. Otherwise a worker that has just written its row could seem dead.
    let mut rows = in_flight::all();
    let (alive, abandoned, was_clean, quarantined) = shmem::read(|shared| {
        // Since the crash, entries may have been reused for other databases.
        let entries = || (0_i32..).zip(&shared.workers).filter(|(_, entry)| entry.database == here);
        let alive: Vec<i32> = entries().filter(|(_, entry)| entry.is_occupied()).map(|(number, _)| number).collect();
        let abandoned = entries().filter(|(_, entry)| entry.occupancy() == Occupancy::Abandoned);
        let abandoned: Vec<(usize, u64)> =
            abandoned.map(|(number, entry)| (number as usize, entry.generation)).collect();
        (alive, abandoned, shared.clean_start, shared.quarantined)
    });
    rows.retain(|row| !alive.contains(&row.worker));
    let mut left = in_flight::take(&rows);
    if left.is_empty() || !is_first_inspection || was_clean {
        return abandoned;
    }
    // A worker may have taken over checks of another worker, so two rows may name the same check. A row with only this
    // check must come first.
    left.sort_unstable_by_key(|(_, ids)| ids.len());
    let mut counted = HashSet::new();
    for (worker, ids) in left {
        let alone = ids.len() == 1;
        let mut ids: Vec<i64> = ids.into_iter().filter(|id| counted.insert(*id)).collect();
        if quarantined.is_some_and(|place| place != (here.to_u32(), worker)) {
            // If another worker ran a suspect in quarantine, the crash is not counted against the suspects of this
            // worker.
            ids = check_stat::without_suspects(&ids);
        }
        suspect(&ids, Suspicion::Crash, alone);
    }
    abandoned
}
