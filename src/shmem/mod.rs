//! Invariant: awty can rebuild shared memory from the tables. The only exceptions are claims on running checks, and
//! terminated runs that are not stored yet.

mod claims;
mod database;
mod job_row;
mod latch;
mod marks;
mod role;
pub mod wakeup;
mod worker;

pub use database::{Database, DatabaseProblem, State};
pub use job_row::Counted;
pub use role::{NEVER, RoleEntry};
pub use worker::{Occupancy, Run, WorkerEntry};

use self::latch::wake;
use crate::pg::clock::{self, Timestamp};
use crate::settings;
use awty_core::job_table::JobTable;
use awty_core::{Mono, Quarantine, TokenBucket};
use pgrx::lwlock::PgLwLock;
use pgrx::shmem::PGRXSharedMemory;
use pgrx::{pg_guard, pg_sys};
use std::sync::atomic::{AtomicBool, Ordering};

/// awty ignores databases beyond this number, and logs a message.
const DATABASES: usize = 512;
const JOBS: usize = 2048;
/// Maximum number of roles in shared memory. If more roles have work, the roles with the latest due times wait for the
/// next periodic inspection of their database.
const ROLES: usize = 1024;
/// Number of items that [`write_each`] handles before it gives back the lock.
const PIECE: usize = 50;
/// Microseconds for which [`write_each`] leaves the lock to others. Without a pause, the process would take the lock
/// again before a waiting process wakes up.
const PAUSE: std::ffi::c_long = 50;

pub struct SharedState {
    launcher: usize,
    wakes_at: Timestamp,
    pub heartbeat: Timestamp,
    /// When the launcher last read PostgreSQL's settings. A session that is idle reads them only with its next
    /// statement.
    pub settings_read: Timestamp,
    pub clean_start: bool,
    pub quarantined: Option<marks::EntryId>,
    /// Number of calls of `awty.adopt()`. When this number changes, sessions check again whether awty holds their
    /// database's checks.
    pub adoptions: u64,
    /// Logical clock, which advances at each start and end of a worker. Each role stores when it was last served, so
    /// that the role with the oldest time is served first.
    pub served: u64,
    /// Number of roles that wait for a worker. If there are any, workers end after their batch.
    pub waiting: u32,
    pub quarantine: Quarantine,
    pub catch_up: TokenBucket,
    pub databases: [Database; DATABASES],
    pub roles: [RoleEntry; ROLES],
    pub workers: [WorkerEntry; settings::MAX_WORKERS],
    jobs: JobTable<{ JOBS + DATABASES }, JOBS>,
    used: usize,
}

// SAFETY: the state consists of plain values without pointers into a process.
unsafe impl PGRXSharedMemory for SharedState {}

// SAFETY: no other library uses the lock's name.
static SHARED: PgLwLock<SharedState> = unsafe { PgLwLock::new(c"awty") };
static PRESENT: AtomicBool = AtomicBool::new(false);

impl SharedState {
    fn new() -> Self {
        Self {
            launcher: 0,
            wakes_at: NEVER,
            heartbeat: 0,
            settings_read: 0,
            clean_start: marks::was_clean(),
            quarantined: marks::was_quarantined(),
            adoptions: 0,
            served: 0,
            waiting: 0,
            quarantine: Quarantine::EMPTY,
            catch_up: TokenBucket::full(clock::mono()),
            databases: [Database::FREE; DATABASES],
            roles: [RoleEntry::FREE; ROLES],
            workers: [WorkerEntry::FREE; settings::MAX_WORKERS],
            jobs: JobTable::EMPTY,
            used: 0,
        }
    }

    pub fn role(&self, database: pg_sys::Oid, role: pg_sys::Oid) -> Option<&RoleEntry> {
        self.roles.iter().find(|line| line.is(database, role))
    }

    pub fn role_mut(&mut self, database: pg_sys::Oid, role: pg_sys::Oid) -> Option<&mut RoleEntry> {
        self.roles.iter_mut().find(|line| line.is(database, role))
    }

    pub fn note_due(&mut self, database: pg_sys::Oid, role: pg_sys::Oid, due: Timestamp) {
        if due == NEVER {
            return;
        }
        if let Some(line) = self.role_or_new_for(database, role, due) {
            line.due = line.due.min(due);
        }
    }

    pub fn role_or_new(&mut self, database: pg_sys::Oid, role: pg_sys::Oid) -> Option<&mut RoleEntry> {
        self.role_or_new_for(database, role, Timestamp::MIN)
    }

    /// Returns the role's entry. If the role has none, takes a free entry, or else replaces the role with the latest
    /// due time if that time is after `due`.
    fn role_or_new_for(&mut self, database: pg_sys::Oid, role: pg_sys::Oid, due: Timestamp) -> Option<&mut RoleEntry> {
        let index = match self.roles.iter().position(|line| line.is(database, role)) {
            Some(index) => index,
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

    pub fn database(&self, oid: pg_sys::Oid) -> Option<&Database> {
        self.databases.iter().find(|line| line.oid == oid)
    }

    pub fn database_mut(&mut self, oid: pg_sys::Oid) -> Option<&mut Database> {
        self.databases.iter_mut().find(|line| line.oid == oid)
    }

    pub fn database_or_new(&mut self, oid: pg_sys::Oid) -> Option<&mut Database> {
        let index = self.databases.iter().position(|line| line.oid == oid).or_else(|| {
            let free = self.databases.iter().position(|line| line.oid == pg_sys::InvalidOid)?;
            self.databases[free] = Database::new(oid);
            Some(free)
        })?;
        self.databases.get_mut(index)
    }

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

    pub fn set_waiting(&mut self, waiting: u32) {
        self.waiting = waiting;
        if waiting > 0 {
            self.workers.iter().filter(|entry| entry.is_resting()).for_each(WorkerEntry::wake);
        }
    }

    pub fn wake_launcher(&self) {
        wake(self.launcher);
    }

    fn wake_launcher_for(&self, due: Timestamp) {
        if due < self.wakes_at {
            wake(self.launcher);
        }
    }
}

pub fn register() {
    PRESENT.store(true, Ordering::Relaxed);
    pgrx::pg_shmem_init!(SHARED = SharedState::new());
}

pub fn is_present() -> bool {
    PRESENT.load(Ordering::Relaxed)
}

/// The closure runs under the lock on shared memory, so it must be short and must not call PostgreSQL.
pub fn read<R>(look: impl FnOnce(&SharedState) -> R) -> R {
    correct_held_interrupts();
    look(&SHARED.share())
}

/// The same rules as for [`read`] apply.
pub fn write<R>(change: impl FnOnce(&mut SharedState) -> R) -> R {
    correct_held_interrupts();
    change(&mut SHARED.exclusive())
}

/// Applies `change` to each item. Gives back the lock after each [`PIECE`] items, so that a role with thousands of jobs
/// does not delay other processes.
pub fn write_each<T>(items: &[T], mut change: impl FnMut(&mut SharedState, &T)) {
    for (place, piece) in items.chunks(PIECE).enumerate() {
        if place > 0 {
            // SAFETY: the process does not hold the lock.
            unsafe { pg_sys::pg_usleep(PAUSE) };
        }
        write(|shared| piece.iter().for_each(|item| change(shared, item)));
    }
}

/// Corrects PostgreSQL's counter of held interrupts, which becomes negative if a library such as Citus catches an ERROR
/// during an abort. With a negative counter, pgrx would not release the lock on shared memory.
fn correct_held_interrupts() {
    // SAFETY: the process has one thread, and no signal handler changes this variable.
    unsafe {
        if pg_sys::InterruptHoldoffCount > u32::MAX / 2 {
            pg_sys::InterruptHoldoffCount = 0;
        }
    }
}

/// The caller's transaction must be committed, so that the woken processes see its rows.
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

pub fn inspect_by(database: pg_sys::Oid, end: Timestamp) {
    write(|shared| {
        if let Some(line) = shared.database_or_new(database) {
            line.ends_at = line.ends_at.min(end);
        }
        shared.wake_launcher_for(end);
    });
}

pub fn wanted_inspections(now: Timestamp, mono: Mono) -> (Vec<pg_sys::Oid>, Timestamp) {
    write(|shared| {
        let is_wanted = |line: &mut Database| {
            let has_ended = line.ends_at <= now;
            if has_ended {
                line.ends_at = NEVER;
            }
            std::mem::take(&mut line.inspection_wanted) || has_ended || line.dead_rows.are_many(mono)
        };
        let mut wanted = Vec::new();
        let mut next = NEVER;
        for line in shared.databases.iter_mut().filter(|line| line.oid != pg_sys::InvalidOid) {
            if is_wanted(line) {
                wanted.push(line.oid);
            }
            next = next.min(line.ends_at);
        }
        (wanted, next)
    })
}

pub fn has_launcher() -> bool {
    read(|shared| shared.launcher != 0)
}

pub fn launcher_is(latch: *mut pg_sys::Latch) {
    write(|shared| shared.launcher = latch as usize);
}

pub fn launcher_is_awake(now: Timestamp) {
    // SAFETY: no other thread uses this variable.
    let settings_read = unsafe { pg_sys::PgReloadTime };
    write(|shared| (shared.wakes_at, shared.heartbeat, shared.settings_read) = (NEVER, now, settings_read));
}

pub fn launcher_sleeps_until(wakes_at: Timestamp) {
    write(|shared| shared.wakes_at = wakes_at);
}
