//! What workers claim and prefetch, and the places that they have.
//!
//! Invariant: no check has two claims. A place that a run has abandoned keeps its claim until it is given away.
//! Does not: lock; the caller has shared memory locked.

use super::{SharedState, WorkerEntry, marks};
use awty_core::Mono;
use awty_core::claims::Ids;
use awty_core::occupancy::Occupancy;
use pgrx::pg_sys;
use std::time::Duration;

/// The maintainer takes away what `awty_internal.in_flight` says of an abandoned run within moments. Suspects wait for that no longer
/// than so.
const CLEARED: Duration = Duration::from_secs(5);

impl SharedState {
    /// Makes an entry ready for a worker that is about to be asked for, and says which. Where none is free, the oldest abandoned one
    /// gives way, uncounted.
    pub fn reserve(&mut self, database: pg_sys::Oid, role: pg_sys::Oid, mono: Mono) -> Option<usize> {
        let index = self.workers.iter().position(|entry| entry.occupancy() == Occupancy::Free).or_else(|| {
            let abandoned =
                self.workers.iter().enumerate().filter(|(_, entry)| entry.occupancy() == Occupancy::Abandoned);
            abandoned.min_by_key(|(_, entry)| entry.left_at).map(|(index, _)| index)
        })?;
        self.workers[index].reserve(database, role, mono);
        self.used = self.used.max(index + 1);
        Some(index)
    }

    /// Claims those of the checks that no other worker has claimed, instead of what this one had claimed before.
    pub fn claim(&mut self, worker: usize, wanted: &[i64]) -> Vec<i64> {
        let database = self.workers[worker].database;
        let mut own = std::mem::replace(&mut self.workers[worker].claims, Ids::NONE);
        let granted = own.claim(wanted, |id| self.others(worker).any(|other| other.has_claimed(database, id)));
        self.workers[worker].claims = own;
        granted
    }

    /// Since when a check is being run, if it is.
    pub fn running_since(&self, database: pg_sys::Oid, id: i64, now: Mono) -> Option<Mono> {
        let entry = self.workers[..self.used].iter().find(|entry| entry.has_claimed(database, id))?;
        Some(entry.run.map_or(now, |run| run.began))
    }

    /// Prefetches those of the checks that no other worker has prefetched, besides what this one had prefetched before.
    pub fn prefetch(&mut self, worker: usize, wanted: &[i64], now: Mono) -> Vec<i64> {
        let database = self.workers[worker].database;
        let mut own = std::mem::replace(&mut self.workers[worker].prefetched, Ids::NONE);
        let free = own.prefetch(wanted, |id| self.others(worker).any(|other| other.keeps(database, id, now)));
        self.workers[worker].prefetched = own;
        free
    }

    /// The other entries that may have a worker. Each is large, and to look at all of them takes a while.
    fn others(&self, worker: usize) -> impl Iterator<Item = &WorkerEntry> {
        self.workers[..self.used].iter().enumerate().filter(move |(index, _)| *index != worker).map(|(_, other)| other)
    }

    /// What was prefetched has been run.
    pub fn end_turn(&mut self, worker: usize) {
        self.workers[worker].prefetched.clear();
    }

    /// Gives all claims of a worker back.
    pub fn release(&mut self, worker: usize) {
        self.workers[worker].claims.clear();
    }

    /// Leaves an entry whose run ended its worker. A role has at most one such entry in a database, so that nobody takes the places of
    /// others: an older one gives way.
    pub fn abandon(&mut self, worker: usize, overran: bool, now: Mono) {
        let (database, role) = (self.workers[worker].database, self.workers[worker].role);
        let older = |entry: &&mut WorkerEntry| entry.is_of(database, role) && entry.occupancy() == Occupancy::Abandoned;
        self.workers.iter_mut().filter(older).for_each(WorkerEntry::free);
        self.workers[worker].abandon(overran, now);
    }

    /// Lets a worker run a suspect, if it is its turn and nobody else would be blamed for it: `awty_internal.in_flight` still names
    /// what an abandoned run was about, until the maintainer has been there.
    pub fn enter_quarantine(&mut self, worker: usize, now: Mono) -> bool {
        let is_named = |other: &WorkerEntry| {
            other.occupancy() == Occupancy::Abandoned && other.named && now < other.left_at.plus(CLEARED)
        };
        if self.workers.iter().any(is_named) {
            return false;
        }
        let entry = &self.workers[worker];
        let (database, role) = (entry.database.to_u32(), entry.role.to_u32());
        let entered = self.quarantine.enter(worker, u64::from(database) << 32 | u64::from(role), now);
        if entered {
            marks::set_quarantined(Some((database, i32::try_from(worker).unwrap_or(i32::MAX))));
        }
        entered
    }

    /// The suspect of that worker has run, or its process is gone.
    pub fn leave_quarantine(&mut self, worker: usize) {
        if self.quarantine.leave(worker) {
            marks::set_quarantined(None);
        }
    }

    /// `awty_internal.in_flight` names nothing any more of what these workers, by entry and generation, were about.
    pub fn forget_names(&mut self, gone: &[(usize, u64)]) {
        for &(index, generation) in gone {
            let entry = &mut self.workers[index];
            entry.named &= entry.generation != generation || entry.occupancy() != Occupancy::Abandoned;
        }
    }
}
