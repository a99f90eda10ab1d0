//! Shared memory: what awty's processes tell each other. README.md has the whole picture.
//!
//! - a *database* line says whether awty may run anything there;
//! - a *role* line says at which slot there may be work for a role that no worker is on;
//! - a *worker entry* belongs to one worker and says what it is running: its claims, since when, and how long it may.
//!
//! Invariant: hints only, with two exceptions that a crash of the server may safely forget: the claims on the checks that
//! are running, which die with their process, and the runs that had to be terminated, until they are booked. Everything
//! else can be lost and is found again in the tables.
//! Does not: decide (see `awty_core::plan`), read a table, or hold its lock while it waits for anything.

mod claims;
mod database;
mod job_row;
mod latch;
mod marks;
mod role;
pub mod wakeup;
mod worker;

pub use database::{Database, State, Trouble};
pub use job_row::Counted;
pub use role::{NEVER, RoleEntry};
pub use worker::{Occupancy, Run, WorkerEntry};

use self::latch::wake;
use crate::pg::clock::{self, Timestamp};
use crate::settings;
use awty_core::job_table::JobTable;
use awty_core::{Bucket, Mono, Quarantine};
use pgrx::lwlock::PgLwLock;
use pgrx::shmem::PGRXSharedMemory;
use pgrx::{pg_guard, pg_sys};
use std::sync::atomic::{AtomicBool, Ordering};

/// Databases with awty that one server can hold. More are ignored, with a message in the log.
const DATABASES: usize = 512;
/// Jobs of which there are figures, in all databases.
const JOBS: usize = 2048;
/// Roles with work, in all databases. When there are more, those due last are left to the audit.
const ROLES: usize = 1024;

/// Everything in shared memory, under one lock.
pub struct SharedState {
    /// The launcher's latch, while it runs; an address in shared memory, the same in all processes.
    launcher: usize,
    /// When the launcher means to wake up by itself.
    wakes_at: Timestamp,
    /// When the launcher last looked around, at least once a second; 0: not since the server started.
    pub heartbeat: Timestamp,
    /// Was the server shut down in good order before this start?
    pub clean_start: bool,
    /// The suspect that was in quarantine when the server went down: that crash is blamed on no other suspect.
    pub quarantined: Option<marks::Place>,
    /// Raised by each `awty.adopt()`, so that sessions look again.
    pub adoptions: u64,
    /// Raised by each start of a worker: what `last_served` counts in.
    pub served: u64,
    /// How many roles are due and have no worker. While it is not 0, workers leave after their batch.
    pub waiting: u32,
    /// Who runs a check that may have crashed the server.
    pub quarantine: Quarantine,
    /// The tokens of `awty.catch_up_rate`.
    pub catch_up: Bucket,
    pub databases: [Database; DATABASES],
    pub roles: [RoleEntry; ROLES],
    pub workers: [WorkerEntry; settings::MAX_WORKERS],
    /// What the runs of each job have come to.
    jobs: JobTable<{ JOBS + DATABASES }, JOBS>,
    /// No entry after so many has been in use since the server started.
    used: usize,
}

// SAFETY: plain values without pointers into any process, copied into shared memory as a whole.
unsafe impl PGRXSharedMemory for SharedState {}

// SAFETY: no other extension has a reason to use this name.
static SHARED: PgLwLock<SharedState> = unsafe { PgLwLock::new(c"awty") };
static PRESENT: AtomicBool = AtomicBool::new(false);

impl SharedState {
    fn new() -> Self {
        Self {
            launcher: 0,
            wakes_at: NEVER,
            heartbeat: 0,
            clean_start: marks::was_clean(),
            quarantined: marks::was_quarantined(),
            adoptions: 0,
            served: 0,
            waiting: 0,
            quarantine: Quarantine::EMPTY,
            catch_up: Bucket::full(clock::mono()),
            databases: [Database::FREE; DATABASES],
            roles: [RoleEntry::FREE; ROLES],
            workers: [WorkerEntry::FREE; settings::MAX_WORKERS],
            jobs: JobTable::EMPTY,
            used: 0,
        }
    }

    /// The line of a role, if it has one.
    pub fn role(&self, database: pg_sys::Oid, role: pg_sys::Oid) -> Option<&RoleEntry> {
        self.roles.iter().find(|line| line.is(database, role))
    }

    /// The line of a role, if it has one.
    pub fn role_mut(&mut self, database: pg_sys::Oid, role: pg_sys::Oid) -> Option<&mut RoleEntry> {
        self.roles.iter_mut().find(|line| line.is(database, role))
    }

    /// Notes that there may be work for a role at a slot, unless an earlier one is noted already.
    pub fn note_due(&mut self, database: pg_sys::Oid, role: pg_sys::Oid, due: Timestamp) {
        if due == NEVER {
            return;
        }
        if let Some(line) = self.role_or_new_for(database, role, due) {
            line.due = line.due.min(due);
        }
    }

    /// The line of a role, made if there is none.
    pub fn role_or_new(&mut self, database: pg_sys::Oid, role: pg_sys::Oid) -> Option<&mut RoleEntry> {
        self.role_or_new_for(database, role, Timestamp::MIN)
    }

    /// As [`role_or_new`](Self::role_or_new), but not at the cost of a line that is due before that slot.
    fn role_or_new_for(&mut self, database: pg_sys::Oid, role: pg_sys::Oid, due: Timestamp) -> Option<&mut RoleEntry> {
        let index = match self.roles.iter().position(|line| line.is(database, role)) {
            Some(index) => index,
            // A free line, one that says nothing, or the one that is due last.
            None => (0..ROLES).max_by_key(|&index| (self.roles[index].is_free(), self.roles[index].due)).unwrap_or(0),
        };
        let line = &mut self.roles[index];
        if !line.is(database, role) {
            if !line.is_free() && line.wanted_at() <= due {
                return None;
            }
            *line = RoleEntry::new(database, role);
        }
        Some(line)
    }

    /// The line of a database, if awty is known to be there.
    pub fn database(&self, oid: pg_sys::Oid) -> Option<&Database> {
        self.databases.iter().find(|line| line.oid == oid)
    }

    /// The line of a database, if awty is known to be there.
    pub fn database_mut(&mut self, oid: pg_sys::Oid) -> Option<&mut Database> {
        self.databases.iter_mut().find(|line| line.oid == oid)
    }

    /// The line of a database, made if there is room for one.
    pub fn database_or_new(&mut self, oid: pg_sys::Oid) -> Option<&mut Database> {
        let index = self.databases.iter().position(|line| line.oid == oid).or_else(|| {
            let free = self.databases.iter().position(|line| line.oid == pg_sys::InvalidOid)?;
            self.databases[free] = Database::new(oid);
            Some(free)
        })?;
        self.databases.get_mut(index)
    }

    /// Forgets a database that is gone, and all its roles.
    pub fn forget_database(&mut self, oid: pg_sys::Oid) {
        for line in self.databases.iter_mut().filter(|line| line.oid == oid) {
            *line = Database::FREE;
        }
        for line in self.roles.iter_mut().filter(|line| line.database == oid) {
            *line = RoleEntry::FREE;
        }
        let is_left = |entry: &&mut WorkerEntry| entry.database == oid && entry.occupancy() == Occupancy::Abandoned;
        self.workers.iter_mut().filter(is_left).for_each(WorkerEntry::free);
        self.jobs.forget_database(oid.to_u32());
    }

    /// Says that so many roles wait for a worker, and has those workers look around that only wait for their next slot.
    pub fn set_waiting(&mut self, waiting: u32) {
        self.waiting = waiting;
        if waiting > 0 {
            self.workers.iter().filter(|entry| entry.is_resting()).for_each(WorkerEntry::wake);
        }
    }

    /// Has the launcher look around.
    pub fn wake_launcher(&self) {
        wake(self.launcher);
    }

    /// Wakes the launcher, if it would sleep past that time.
    fn wake_launcher_for(&self, due: Timestamp) {
        if due < self.wakes_at {
            wake(self.launcher);
        }
    }
}

/// Asks for the shared memory. Called from `_PG_init`, and only while the server starts.
pub fn register() {
    PRESENT.store(true, Ordering::Relaxed);
    pgrx::pg_shmem_init!(SHARED = SharedState::new());
}

/// Was the library loaded when the server started?
pub fn is_present() -> bool {
    PRESENT.load(Ordering::Relaxed)
}

/// Reads shared memory. The closure must be short and must not call PostgreSQL.
pub fn read<R>(look: impl FnOnce(&SharedState) -> R) -> R {
    look(&SHARED.share())
}

/// Changes shared memory. The closure must be short and must not call PostgreSQL.
pub fn write<R>(change: impl FnOnce(&mut SharedState) -> R) -> R {
    change(&mut SHARED.exclusive())
}

/// Notes work for a role and wakes the workers of that role, or the launcher.
///
/// Called when the transaction has committed, so that the processes that are woken see its rows.
pub fn post(database: pg_sys::Oid, role: pg_sys::Oid, due: Timestamp) {
    let known = read(|shared| shared.role(database, role).is_some_and(|line| line.due <= due));
    if known {
        return;
    }
    write(|shared| {
        shared.note_due(database, role, due);
        let serves = |entry: &&WorkerEntry| entry.occupancy() == Occupancy::Taken && entry.is_of(database, role);
        shared.workers.iter().filter(serves).for_each(WorkerEntry::wake);
        shared.wake_launcher_for(due);
    });
}

/// So many rows of `awty.future_job` are dead that no worker has left there.
pub fn count_dead_rows(database: pg_sys::Oid, rows: u64) {
    if rows == 0 {
        return;
    }
    let mono = clock::mono();
    write(|shared| {
        if let Some(line) = shared.database_mut(database) {
            line.dead_rows.add(rows, mono);
        }
    });
}

/// Asks the launcher to have a look at a database soon: awty has just been registered with, adopted or changed there.
pub fn request_inspection(database: pg_sys::Oid, adopted: bool) {
    write(|shared| {
        if adopted {
            shared.adoptions += 1;
        }
        if let Some(line) = shared.database_or_new(database) {
            line.inspection_wanted = true;
        }
        wake(shared.launcher);
    });
}

/// The databases that an inspection is asked for, or whose dead rows are many.
pub fn wanted_inspections(mono: Mono) -> Vec<pg_sys::Oid> {
    write(|shared| {
        let lines = shared.databases.iter_mut().filter(|line| line.oid != pg_sys::InvalidOid);
        let is_wanted =
            |line: &mut Database| std::mem::take(&mut line.inspection_wanted) || line.dead_rows.are_many(mono);
        lines.filter_map(|line| is_wanted(line).then_some(line.oid)).collect()
    })
}

/// Does the launcher run?
pub fn has_launcher() -> bool {
    read(|shared| shared.launcher != 0)
}

/// The launcher takes its place, or leaves it.
pub fn launcher_is(latch: *mut pg_sys::Latch) {
    write(|shared| shared.launcher = latch as usize);
}

/// The launcher looks around; what is posted from here on wakes it again.
pub fn launcher_is_awake(now: Timestamp) {
    write(|shared| (shared.wakes_at, shared.heartbeat) = (NEVER, now));
}

/// The launcher says when it will wake up by itself.
pub fn launcher_sleeps_until(wakes_at: Timestamp) {
    write(|shared| shared.wakes_at = wakes_at);
}
