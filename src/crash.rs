//! The crash story: what becomes of checks with which the server, or a process, went down.
//!
//! 1. Before a worker runs a batch, one row of `awty_internal.in_flight` names its checks, and is flushed (`worker`).
//! 2. After a crash of the server, the first inspection of each database takes the rows that are left, and counts a crash against
//!    the checks that they name ([`take_up_in_flight`]). After an orderly shutdown they mean nothing; a mark in `pg_stat/` tells.
//! 3. A check with a counted crash is a *suspect*: it runs alone, under a row of its own, in quarantine: one at a time in the whole
//!    server, and those least suspected first. So the innocent are cleared, and the guilty one crashes alone.
//! 4. A run that ends its own process is counted apart. It needs no quarantine, because it harms nobody else.
//! 5. At `awty.max_crashes` a check is held, which shows in `awty.future_job` and `awty.status`. It is never deleted.
//!
//! Invariant: a crash is counted once against a check, and not against suspects beside the one in quarantine. What a client has
//! locked so soon after a crash goes uncounted that time.
//! Does not: run anything.

use crate::error;
use crate::pg::catalog;
use crate::settings;
use crate::shmem::{self, Occupancy};
use crate::store::check_stat::{self, Blame};
use crate::store::in_flight;
use std::collections::HashSet;

/// Counts against these checks that the server or their process went down while they were about to run or running. One
/// that was alone is held, if that is too often by now. Of many, all but one are innocent, and they run alone next.
/// `false` if one that was alone could not be counted, because a client has it locked.
pub fn blame(ids: &[i64], blame: Blame, alone: bool) -> bool {
    let counted = check_stat::count(ids, blame);
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

/// Takes away what `awty_internal.in_flight` says of workers that are gone. After a crash, the checks that it names are suspects.
/// Returns the abandoned workers, with their generations, that were looked at.
pub fn take_up_in_flight(is_first_inspection: bool) -> Vec<(usize, u64)> {
    let here = catalog::database();
    // In this order: a worker that has written a row and is not there any more by then is gone.
    let mut rows = in_flight::all();
    let (alive, abandoned, was_clean, quarantined) = shmem::read(|shared| {
        // A worker of another database may by now have the entry of one that crashed here.
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
    // Two workers may name the same check, where one helps the other. The row that names it alone counts.
    left.sort_unstable_by_key(|(_, ids)| ids.len());
    let mut counted = HashSet::new();
    for (worker, ids) in left {
        let alone = ids.len() == 1;
        let mut ids: Vec<i64> = ids.into_iter().filter(|id| counted.insert(*id)).collect();
        if quarantined.is_some_and(|place| place != (here.to_u32(), worker)) {
            // Suspects whose runs have outlasted their time in quarantine.
            ids = check_stat::without_suspects(&ids);
        }
        blame(&ids, Blame::Crash, alone);
    }
    abandoned
}
