//! Entry of a worker in shared memory, with the worker's claims on checks. PostgreSQL locks cannot replace claims,
//! because the abort of a failed run releases locks.
//!
//! Invariant: only [`WorkerEntry::transition_to`] changes `occupancy`.

use super::latch::wake;
use crate::settings::MAX_BATCH;
use awty_core::Mono;
use awty_core::claims::Ids;
pub use awty_core::occupancy::Occupancy;
use awty_core::watch::Untold;
pub use awty_core::watchdog::Run;
use pgrx::pg_sys;
use std::time::Duration;

/// If a run takes longer than this, other workers may take the checks that the run's worker has prefetched.
const PATIENCE: Duration = Duration::from_millis(100);

pub struct WorkerEntry {
    occupancy: Occupancy,
    pub generation: u64,
    pub database: pg_sys::Oid,
    pub role: pg_sys::Oid,
    pub pid: i32,
    latch: usize,
    pub run: Option<Run>,
    pub named: bool,
    pub overran: bool,
    pub untold: Option<Untold>,
    /// Worker (index and generation of its entry in shared memory) that handles this abandoned run.
    pub seer: Option<(usize, u64)>,
    pub(super) left_at: Mono,
    pub busy_since: Option<Mono>,
    pub asked_at: Mono,
    pub wants_help: bool,
    pub(super) claims: Ids<MAX_BATCH>,
    /// Ids of checks that this worker plans to run next, but has not claimed. The role's other workers skip these
    /// checks unless this worker is slow.
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
        untold: None,
        seer: None,
        left_at: Mono(0),
        busy_since: None,
        asked_at: Mono(0),
        wants_help: false,
        claims: Ids::NONE,
        prefetched: Ids::NONE,
    };

    pub fn occupancy(&self) -> Occupancy {
        self.occupancy
    }

    fn transition_to(&mut self, next: Occupancy) {
        debug_assert!(self.occupancy.may_become(next), "a place goes from {:?} to {next:?}", self.occupancy);
        self.occupancy = next;
    }

    pub(super) fn reserve(&mut self, database: pg_sys::Oid, role: pg_sys::Oid, mono: Mono) {
        self.transition_to(Occupancy::Starting);
        self.generation += 1;
        self.database = database;
        self.role = role;
        self.run = None;
        self.asked_at = mono;
        self.claims.clear();
        self.leave();
    }

    pub fn take(&mut self, generation: u64, pid: i32, latch: *mut pg_sys::Latch) -> bool {
        let is_expected = self.occupancy == Occupancy::Starting && self.generation == generation;
        if is_expected {
            self.transition_to(Occupancy::Taken);
            (self.pid, self.latch) = (pid, latch as usize);
        }
        is_expected
    }

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

    pub fn free(&mut self) {
        self.transition_to(Occupancy::Free);
        self.run = None;
        self.claims.clear();
        self.leave();
    }

    pub fn free_if_starting(&mut self, generation: u64) {
        if self.occupancy == Occupancy::Starting && self.generation == generation {
            self.free();
        }
    }

    pub fn free_if_abandoned(&mut self, generation: u64) {
        if self.occupancy == Occupancy::Abandoned && self.generation == generation {
            self.free();
        }
    }

    pub(super) fn abandon(&mut self, overran: bool, now: Mono) {
        self.transition_to(Occupancy::Abandoned);
        self.left_at = now;
        self.seer = None;
        self.overran = overran;
        self.leave();
    }

    pub fn is_of(&self, database: pg_sys::Oid, role: pg_sys::Oid) -> bool {
        self.database == database && self.role == role
    }

    pub fn is_resting(&self) -> bool {
        self.occupancy == Occupancy::Taken && self.busy_since.is_none()
    }

    pub fn is_stuck(&self, now: Mono) -> bool {
        self.occupancy == Occupancy::Taken && self.run.is_some_and(|run| run.is_stuck(now))
    }

    pub fn is_occupied(&self) -> bool {
        matches!(self.occupancy, Occupancy::Starting | Occupancy::Taken)
    }

    pub fn wake(&self) {
        wake(self.latch);
    }

    pub fn claims(&self) -> &[i64] {
        self.claims.as_slice()
    }

    pub(super) fn has_claimed(&self, database: pg_sys::Oid, id: i64) -> bool {
        matches!(self.occupancy, Occupancy::Taken | Occupancy::Abandoned)
            && self.database == database
            && self.claims.has(id)
    }

    pub(super) fn keeps(&self, database: pg_sys::Oid, id: i64, now: Mono) -> bool {
        let is_slow = self.run.is_some_and(|run| now.since(run.began) > PATIENCE);
        self.occupancy == Occupancy::Taken && self.database == database && !is_slow && self.prefetched.has(id)
    }
}
