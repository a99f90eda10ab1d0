//! A worker's entry in shared memory, and the claims that go with it.
//!
//! A claim says: this worker runs this check. It is kept here and not in PostgreSQL's lock table because it has to outlive
//! the abort of a failed run (a session lock of the ordinary kind does not) and must not be released by a job's
//! `pg_advisory_unlock_all()` (one of the other kind would be). Like a lock it dies with its process: the entry is freed
//! when the process ends, and all entries are new after a crash.
//!
//! Invariant: `occupancy` changes by [`WorkerEntry::become_`] only.
//! Does not: lock, or start a process.

use super::latch::wake;
use crate::settings::MAX_BATCH;
use awty_core::Mono;
use awty_core::claims::Ids;
pub use awty_core::occupancy::Occupancy;
pub use awty_core::watchdog::Run;
use pgrx::pg_sys;
use std::time::Duration;

/// What a worker has prefetched is left to it until it has been in one run for so long.
const PATIENCE: Duration = Duration::from_millis(100);

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
    pub(super) left_at: Mono,
    /// Since when it has been working without a pause; `None` while it waits.
    pub busy_since: Option<Mono>,
    /// When a worker was asked for.
    pub asked_at: Mono,
    /// Has it found more than it prefetches at a time, again and again?
    pub wants_help: bool,
    /// What it runs now.
    pub(super) claims: Ids<MAX_BATCH>,
    /// What it has prefetched: other workers of the role leave that to it, unless it is slow. A hint: what is not there is run by
    /// whichever worker claims it first.
    pub(super) prefetched: Ids<MAX_BATCH>,
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
    pub(super) fn reserve(&mut self, database: pg_sys::Oid, role: pg_sys::Oid, mono: Mono) {
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
    pub(super) fn abandon(&mut self, overran: bool, now: Mono) {
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

    pub(super) fn has_claimed(&self, database: pg_sys::Oid, id: i64) -> bool {
        matches!(self.occupancy, Occupancy::Taken | Occupancy::Abandoned)
            && self.database == database
            && self.claims.has(id)
    }

    /// Is that check left to this worker?
    pub(super) fn keeps(&self, database: pg_sys::Oid, id: i64, now: Mono) -> bool {
        let is_slow = self.run.is_some_and(|run| now.since(run.began) > PATIENCE);
        self.occupancy == Occupancy::Taken && self.database == database && !is_slow && self.prefetched.has(id)
    }
}
