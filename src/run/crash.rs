//! Counts crashes of the server against the checks that may have caused them (suspects).
//!
//! Invariant: a crash counts once against a check. If a suspect was in quarantine, the crash counts against no other
//! check.

use crate::pg::catalog;
use crate::shmem::{self, Occupancy};
use crate::store::check_stat::{self, Suspicion};
use crate::store::in_flight;
use crate::{error, settings};
use std::collections::HashSet;

/// Counts a crash or an exit of the worker against each check of a run. Only one check can be the cause, so each check
/// runs alone next time.
///
/// Returns `false` if the run had only one check and a client has locked it.
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

pub fn take_up_in_flight(is_first_inspection: bool) -> Vec<(usize, u64)> {
    let here = catalog::database();
    // Reads `in_flight` before the list of live workers. In the opposite order, a worker that has just written its row
    // could seem dead.
    let mut rows = in_flight::all();
    let (alive, abandoned, was_clean, quarantined) = shmem::read(|shared| {
        // Ignores workers of other databases. Such a worker may have reused a dead worker's entry, so that the dead
        // worker would seem alive.
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
    // Handles rows with fewer checks first. If two rows contain the same check, because a worker took it over from
    // another worker, the shorter row decides whether the check ran alone.
    left.sort_unstable_by_key(|(_, ids)| ids.len());
    let mut counted = HashSet::new();
    for (worker, ids) in left {
        let alone = ids.len() == 1;
        let mut ids: Vec<i64> = ids.into_iter().filter(|id| counted.insert(*id)).collect();
        if quarantined.is_some_and(|place| place != (here.to_u32(), worker)) {
            ids = check_stat::without_suspects(&ids);
        }
        suspect(&ids, Suspicion::Crash, alone);
    }
    abandoned
}
