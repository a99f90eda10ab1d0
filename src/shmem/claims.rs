//! Invariant: at most one worker has claimed a check. If a worker dies during a run, its entry in shared memory keeps
//! the claims until another worker reuses the entry.

use super::{SharedState, WorkerEntry, marks};
use awty_core::Mono;
use awty_core::claims::Ids;
use awty_core::occupancy::Occupancy;
use pgrx::pg_sys;
use std::time::Duration;

/// Longest time that a check suspected of crashing the server waits until `awty_internal.in_flight` lists no checks of
/// dead workers.
const CLEARED: Duration = Duration::from_secs(5);

impl SharedState {
    /// Reserves a free entry, or else the oldest entry of a dead worker. In the second case, awty does not count the
    /// worker's crash against its checks.
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

    pub fn claim(&mut self, worker: usize, wanted: &[i64]) -> Vec<i64> {
        let database = self.workers[worker].database;
        let mut own = std::mem::replace(&mut self.workers[worker].claims, Ids::NONE);
        let granted = own.claim(wanted, |id| self.others(worker).any(|other| other.has_claimed(database, id)));
        self.workers[worker].claims = own;
        granted
    }

    pub fn running_since(&self, database: pg_sys::Oid, id: i64, now: Mono) -> Option<Mono> {
        let entry = self.workers[..self.used].iter().find(|entry| entry.has_claimed(database, id))?;
        Some(entry.run.map_or(now, |run| run.began))
    }

    pub fn prefetch(&mut self, worker: usize, wanted: &[i64], now: Mono) -> Vec<i64> {
        let database = self.workers[worker].database;
        let mut own = std::mem::replace(&mut self.workers[worker].prefetched, Ids::NONE);
        let free = own.prefetch(wanted, |id| self.others(worker).any(|other| other.keeps(database, id, now)));
        self.workers[worker].prefetched = own;
        free
    }

    /// Skips entries that were never used, because scanning the large entries is slow.
    fn others(&self, worker: usize) -> impl Iterator<Item = &WorkerEntry> {
        self.workers[..self.used].iter().enumerate().filter(move |(index, _)| *index != worker).map(|(_, other)| other)
    }

    pub fn end_turn(&mut self, worker: usize) {
        self.workers[worker].prefetched.clear();
    }

    pub fn release(&mut self, worker: usize) {
        self.workers[worker].claims.clear();
    }

    /// Keeps only one entry of a dead worker per role and database, so that entries remain for other roles.
    pub fn abandon(&mut self, worker: usize, overran: bool, now: Mono) {
        let (database, role) = (self.workers[worker].database, self.workers[worker].role);
        let older = |entry: &&mut WorkerEntry| entry.is_of(database, role) && entry.occupancy() == Occupancy::Abandoned;
        self.workers.iter_mut().filter(older).for_each(WorkerEntry::free);
        self.workers[worker].abandon(overran, now);
    }

    /// Lets the worker run a check that is suspected of crashing the server. Returns `false` while
    /// `awty_internal.in_flight` lists checks of a dead worker, because a crash would be blamed on these checks too.
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

    pub fn leave_quarantine(&mut self, worker: usize) {
        if self.quarantine.leave(worker) {
            marks::set_quarantined(None);
        }
    }

    pub fn forget_names(&mut self, gone: &[(usize, u64)]) {
        for &(index, generation) in gone {
            let entry = &mut self.workers[index];
            entry.named &= entry.generation != generation || entry.occupancy() != Occupancy::Abandoned;
        }
    }
}
