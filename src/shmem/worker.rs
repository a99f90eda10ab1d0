//! A worker's entry in shared memory, and the claims that go with it.
//!
//! A claim says: this worker runs this check. It is kept here and not in PostgreSQL's lock table because it has to outlive
//! the abort of a failed run (a session lock of the ordinary kind does not) and must not be released by a job's
//! `pg_advisory_unlock_all()` (one of the other kind would be). Like a lock it dies with its process: the entry is freed
//! when the process ends, and all entries are new after a crash.
//!
//! Invariant: `occupancy` changes by [`WorkerEntry::become_`] only.
//! Does not: lock, or start a process.

use super::{marks, wake};
use crate::settings::MAX_BATCH;
use awty_core::Mono;
use awty_core::claims::Ids;
pub use awty_core::occupancy::Occupancy;
pub use awty_core::watchdog::Run;
use pgrx::pg_sys;
use std::time::Duration;

/// What a worker has prefetched is left to it until it has been in one run for so long.
const PATIENCE: Duration = Duration::from_millis(100);
/// The maintainer takes away what `awty_internal.in_flight` says of an abandoned run within moments. Suspects wait for that no longer
/// than so.
const CLEARED: Duration = Duration::from_secs(5);

/// One worker's entry.
pub struct WorkerEntry {
    occupancy: Occupancy,
    /// Raised each time when a worker is asked for.
    pub generation: u64,
    pub database: pg_sys::Oid,
    pub role: pg_sys::Oid,
    pub pid: i32,
    /// The address of its latch.
    latch: usize,
    /// The run that is going on.
    pub run: Option<Run>,
    /// May `awty_internal.in_flight` name the checks of its worker?
    pub named: bool,
    /// Was the run that it abandoned terminated because it ignored its timeout?
    pub overran: bool,
    /// The worker, by entry and generation, that is seeing to the abandoned run.
    pub seer: Option<(usize, u64)>,
    /// When its worker was gone.
    left_at: Mono,
    /// Since when it has been working without a pause; `None` while it waits.
    pub busy_since: Option<Mono>,
    /// When a worker was asked for.
    pub asked_at: Mono,
    /// Has it found more than it prefetches at a time, again and again?
    pub wants_help: bool,
    /// What it runs now.
    claims: Ids<MAX_BATCH>,
    /// What it has prefetched: other workers of the role leave that to it, unless it is slow. A hint: what is not there is run by
    /// whichever worker claims it first.
    prefetched: Ids<MAX_BATCH>,
}

impl WorkerEntry {
    pub(super) const FREE: WorkerEntry = WorkerEntry {
        occupancy: Occupancy::Free,
        generation: 0,
        database: pg_sys::InvalidOid,
        role: pg_sys::InvalidOid,
        pid: 0,
        latch: 0,
        run: None,
        named: false,
        overran: false,
        seer: None,
        left_at: Mono(0),
        busy_since: None,
        asked_at: Mono(0),
        wants_help: false,
        claims: Ids::NONE,
        prefetched: Ids::NONE,
    };

    /// Who is there.
    pub fn occupancy(&self) -> Occupancy {
        self.occupancy
    }

    /// The only place where that changes.
    fn become_(&mut self, next: Occupancy) {
        debug_assert!(self.occupancy.may_become(next), "a place goes from {:?} to {next:?}", self.occupancy);
        self.occupancy = next;
    }

    /// Makes the entry ready for a worker that is about to be asked for.
    fn reserve(&mut self, database: pg_sys::Oid, role: pg_sys::Oid, mono: Mono) {
        self.become_(Occupancy::Starting);
        self.generation += 1;
        self.database = database;
        self.role = role;
        self.run = None;
        self.asked_at = mono;
        self.claims.clear();
        self.leave();
    }

    /// The worker that was asked for is there, unless the entry has been given to another one meanwhile.
    pub fn take(&mut self, generation: u64, pid: i32, latch: *mut pg_sys::Latch) -> bool {
        let is_expected = self.occupancy == Occupancy::Starting && self.generation == generation;
        if is_expected {
            self.become_(Occupancy::Taken);
            (self.pid, self.latch) = (pid, latch as usize);
        }
        is_expected
    }

    /// It has nothing to do.
    pub fn rest(&mut self) {
        self.busy_since = None;
        self.wants_help = false;
        self.prefetched.clear();
    }

    fn leave(&mut self) {
        (self.pid, self.latch) = (0, 0);
        self.named &= self.occupancy == Occupancy::Abandoned;
        self.rest();
    }

    /// Gives the entry back.
    pub fn free(&mut self) {
        self.become_(Occupancy::Free);
        self.run = None;
        self.claims.clear();
        self.leave();
    }

    /// Gives the entry back, if the worker that was asked for does not come.
    pub fn free_if_starting(&mut self, generation: u64) {
        if self.occupancy == Occupancy::Starting && self.generation == generation {
            self.free();
        }
    }

    /// Gives the entry back, if it is still that abandoned one.
    pub fn free_if_abandoned(&mut self, generation: u64) {
        if self.occupancy == Occupancy::Abandoned && self.generation == generation {
            self.free();
        }
    }

    /// Leaves the entry, but not its claim: the run is still to be seen to. `overran` says that it was over its time.
    fn abandon(&mut self, overran: bool, now: Mono) {
        self.become_(Occupancy::Abandoned);
        self.left_at = now;
        self.seer = None;
        self.overran = overran;
        self.leave();
    }

    /// Does it belong to that role?
    pub fn is_of(&self, database: pg_sys::Oid, role: pg_sys::Oid) -> bool {
        self.database == database && self.role == role
    }

    /// Has it a worker that only waits for its next slot?
    pub fn is_resting(&self) -> bool {
        self.occupancy == Occupancy::Taken && self.busy_since.is_none()
    }

    /// Does its run go on although it was cancelled and terminated?
    pub fn is_stuck(&self, now: Mono) -> bool {
        self.occupancy == Occupancy::Taken && self.run.is_some_and(|run| run.is_stuck(now))
    }

    /// Does it count as a worker: running, or on its way?
    pub fn is_occupied(&self) -> bool {
        matches!(self.occupancy, Occupancy::Starting | Occupancy::Taken)
    }

    /// Has its worker look around.
    pub fn wake(&self) {
        wake(self.latch);
    }

    /// The ids of the checks that its worker has claimed.
    pub fn claims(&self) -> &[i64] {
        self.claims.as_slice()
    }

    fn has_claimed(&self, database: pg_sys::Oid, id: i64) -> bool {
        matches!(self.occupancy, Occupancy::Taken | Occupancy::Abandoned)
            && self.database == database
            && self.claims.has(id)
    }

    /// Is that check left to this worker?
    fn keeps(&self, database: pg_sys::Oid, id: i64, now: Mono) -> bool {
        let is_slow = self.run.is_some_and(|run| now.since(run.began) > PATIENCE);
        self.occupancy == Occupancy::Taken && self.database == database && !is_slow && self.prefetched.has(id)
    }
}

impl super::SharedState {
    /// Makes an entry ready for a worker that is about to be asked for, and says which. Where none is free, the oldest abandoned one
    /// gives way, uncounted.
    pub fn reserve(&mut self, database: pg_sys::Oid, role: pg_sys::Oid, mono: Mono) -> Option<usize> {
        let index = self.workers.iter().position(|entry| entry.occupancy == Occupancy::Free).or_else(|| {
            let abandoned =
                self.workers.iter().enumerate().filter(|(_, entry)| entry.occupancy == Occupancy::Abandoned);
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
        let older = |entry: &&mut WorkerEntry| entry.is_of(database, role) && entry.occupancy == Occupancy::Abandoned;
        self.workers.iter_mut().filter(older).for_each(WorkerEntry::free);
        self.workers[worker].abandon(overran, now);
    }

    /// Lets a worker run a suspect, if it is its turn and nobody else would be blamed for it: `awty_internal.in_flight` still names
    /// what an abandoned run was about, until the maintainer has been there.
    pub fn enter_quarantine(&mut self, worker: usize, now: Mono) -> bool {
        let is_named = |other: &WorkerEntry| {
            other.occupancy == Occupancy::Abandoned && other.named && now < other.left_at.plus(CLEARED)
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
            entry.named &= entry.generation != generation || entry.occupancy != Occupancy::Abandoned;
        }
    }
}
