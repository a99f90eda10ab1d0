//! Handles checks that were running when the server or a process crashed.
//!
//! 1. Before a worker runs a batch, it writes a row with the batch's checks to `awty_internal.in_flight` and flushes
//!    (`worker`).
//! 2. After a crash of the server, the first inspection of each database takes the remaining rows, and counts a crash
//!    against their checks ([`take_up_in_flight`]). After a clean shutdown, which a mark in `pg_stat/` shows, the rows
//!    are ignored.
//! 3. A check with a counted crash is a *suspect*. It runs alone, with its own row in `in_flight`, and in quarantine:
//!    one suspect at a time in the whole server, the least suspected first.
//! 4. A run that ends its own process is counted separately. Its check needs no quarantine, because it harms no other
//!    run.
//! 5. At `awty.max_crashes` a check is held, which `awty.future_job` and `awty.status` show. The check is never
//!    deleted.
//!
//! Invariant: a crash counts once against a check. If a suspect was in quarantine, the crash counts against no other
//! suspect. A crash is not counted against a check that a client has locked right after the crash.

use crate::pg::catalog;
use crate::shmem::{self, Occupancy};
use crate::store::check_stat::{self, Suspicion};
use crate::store::in_flight;
use crate::{error, settings};
use std::collections::HashSet;

/// If the run had only one check, the check is held after too many crashes or exits. If the run had several checks,
/// only one of them is to blame, so each runs alone next.
///
/// Returns `false` if the only check of a run could not be counted, because a client has locked it.
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

/// Removes the rows of dead workers from `awty_internal.in_flight`. After a crash the checks in these rows become
/// suspects. Returns the entries of abandoned runs, with their generations.
pub fn take_up_in_flight(is_first_inspection: bool) -> Vec<(usize, u64)> {
    let here = catalog::database();
    // The rows are read before the list of live workers. So if a row's worker is not in the list, the worker is dead
    // and not just starting.
    let mut rows = in_flight::all();
    let (alive, abandoned, was_clean, quarantined) = shmem::read(|shared| {
        // Only entries of this database are used. The entry of a worker that crashed here may now belong to another
        // database.
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
    // If one worker takes over checks of another, two rows may name the same check. Shorter rows are counted first, so
    // that a row with only this check comes before a row with more checks.
    left.sort_unstable_by_key(|(_, ids)| ids.len());
    let mut counted = HashSet::new();
    for (worker, ids) in left {
        let alone = ids.len() == 1;
        let mut ids: Vec<i64> = ids.into_iter().filter(|id| counted.insert(*id)).collect();
        if quarantined.is_some_and(|place| place != (here.to_u32(), worker)) {
            // Another worker was in quarantine. The crash is not counted against suspects of this worker, because their
            // own quarantine was already over.
            ids = check_stat::without_suspects(&ids);
        }
        suspect(&ids, Suspicion::Crash, alone);
    }
    abandoned
}
