//! Starts workers and maintainers. While the server has no free process, the launcher waits longer after each attempt.
//!
//! Invariant: if a worker never starts, its reserved entry in shared memory is freed.

use crate::failpoint::failpoint;
use crate::pg::catalog::{self, CannotConnect};
use crate::pg::clock;
use crate::process::{self, Assignment};
use crate::shmem::{self, DatabaseProblem, Occupancy};
use awty_core::Mono;
use awty_core::backoff::NO_PROCESS;
use pgrx::pg_sys;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

const MAINTAINERS: usize = 2;
const CANNOT_CONNECT: Duration = Duration::from_secs(5);
/// A worker that has not started after this time loses its entry, and exits if it starts later.
const STALE: Duration = Duration::from_secs(10);

#[derive(Default)]
pub struct Children {
    coming: HashMap<usize, (u64, Handle)>,
    maintainers: Vec<(pg_sys::Oid, Handle)>,
    returned: Vec<pg_sys::Oid>,
    no_room: Option<(Mono, u32)>,
    said_no_place: bool,
    said: HashSet<(pg_sys::Oid, pg_sys::Oid)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sent {
    Started,
    Busy,
    NoProcess,
}

struct Handle(*mut pg_sys::BackgroundWorkerHandle);

impl Handle {
    fn has_ended(&self) -> bool {
        let mut pid = 0;
        // SAFETY: RegisterDynamicBackgroundWorker() has returned the handle to this process.
        let status = unsafe { pg_sys::GetBackgroundWorkerPid(self.0, &mut pid) };
        status == pg_sys::BgwHandleStatus::BGWH_STOPPED
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: RegisterDynamicBackgroundWorker() has allocated the handle, which is not used afterwards.
        unsafe { pg_sys::pfree(self.0.cast()) };
    }
}

impl Children {
    pub fn reap(&mut self, mono: Mono) {
        self.coming.retain(|&index, (generation, handle)| {
            let ended = handle.has_ended();
            shmem::write(|shared| {
                let entry = &mut shared.workers[index];
                if ended {
                    entry.free_if_starting(*generation);
                }
                entry.occupancy() == Occupancy::Starting && entry.generation == *generation
            })
        });
        shmem::write(|shared| {
            for entry in shared.workers.iter_mut().filter(|entry| mono >= entry.asked_at.plus(STALE)) {
                entry.free_if_starting(entry.generation);
            }
        });
        let returned = &mut self.returned;
        self.maintainers.retain(|(database, handle)| {
            let ended = handle.has_ended();
            if ended {
                returned.push(*database);
            }
            !ended
        });
    }

    pub fn returned(&mut self) -> Vec<pg_sys::Oid> {
        std::mem::take(&mut self.returned)
    }

    pub fn is_inspecting(&self, database: pg_sys::Oid) -> bool {
        self.maintainers.iter().any(|(inspected, _)| *inspected == database)
    }

    pub fn start_maintainer(&mut self, database: pg_sys::Oid, mono: Mono) -> Sent {
        if self.maintainers.len() >= MAINTAINERS {
            return Sent::Busy;
        }
        let assignment = Assignment { database, role: pg_sys::InvalidOid, entry: u32::MAX, generation: 0 };
        match start(c"awty maintainer", c"awty_maintainer_main", assignment) {
            Some(handle) => {
                self.maintainers.push((database, handle));
                Sent::Started
            }
            None => {
                self.ask_again_at(mono);
                Sent::NoProcess
            }
        }
    }

    pub fn start_worker(&mut self, database: pg_sys::Oid, role: pg_sys::Oid, mono: Mono) {
        if process::is_database_wanted(database) {
            park(database, role, mono.plus(NO_PROCESS.after(0)), None);
            return;
        }
        match catalog::can_connect(database, role) {
            Ok(()) => {
                self.said.remove(&(database, role));
                if !self.said.iter().any(|(other, _)| *other == database) {
                    end_trouble(database, &[DatabaseProblem::RoleCannotConnect]);
                }
            }
            // Keeps the database's entry in shared memory, because the launcher takes a missing entry to mean that the
            // database has no awty.
            Err(CannotConnect::NoDatabase) => {
                park(database, role, mono.plus(CANNOT_CONNECT), None);
                return;
            }
            Err(why) => {
                self.say_cannot_connect(database, role, why);
                park(database, role, mono.plus(CANNOT_CONNECT), Some(DatabaseProblem::RoleCannotConnect));
                return;
            }
        }
        let Some((index, generation)) = reserve(database, role, mono) else {
            if !std::mem::replace(&mut self.said_no_place, true) {
                crate::error::log::no_place();
            }
            park(database, role, mono.plus(NO_PROCESS.after(0)), Some(DatabaseProblem::NoEntry));
            return;
        };
        self.said_no_place = false;
        let assignment = Assignment { database, role, entry: u32::try_from(index).unwrap_or(u32::MAX), generation };
        failpoint!("launcher.before_start");
        match start(c"awty worker", c"awty_worker_main", assignment) {
            Some(handle) => {
                self.no_room = None;
                self.coming.insert(index, (generation, handle));
                end_trouble(database, &[DatabaseProblem::NoWorkerSlot, DatabaseProblem::NoEntry]);
                failpoint!("launcher.started");
            }
            None => {
                shmem::write(|shared| shared.workers[index].free());
                park(database, role, self.ask_again_at(mono), Some(DatabaseProblem::NoWorkerSlot));
            }
        }
    }

    /// Returns the time of the next attempt to start a worker. All waiting roles share the time, so that more roles do
    /// not lengthen the delay.
    fn ask_again_at(&mut self, mono: Mono) -> Mono {
        let failures = match self.no_room {
            Some((at, _)) if at > mono => return at,
            Some((_, failures)) => failures.saturating_add(1),
            None => {
                crate::error::log::no_room();
                0
            }
        };
        let at = mono.plus(NO_PROCESS.after(failures));
        self.no_room = Some((at, failures));
        at
    }

    fn say_cannot_connect(&mut self, database: pg_sys::Oid, role: pg_sys::Oid, why: CannotConnect) {
        if self.said.insert((database, role)) {
            crate::error::log::cannot_connect(&catalog::role_label(role), database.to_u32(), why);
        }
    }
}

fn end_trouble(database: pg_sys::Oid, over: &[DatabaseProblem]) {
    let is_there = |line: &shmem::Database| over.contains(&line.trouble);
    if shmem::read(|shared| shared.database(database).is_some_and(is_there)) {
        shmem::write(|shared| {
            if let Some(line) = shared.database_mut(database).filter(|line| is_there(line)) {
                line.set_trouble(DatabaseProblem::None, 0);
            }
        });
    }
}

fn park(database: pg_sys::Oid, role: pg_sys::Oid, until: Mono, trouble: Option<DatabaseProblem>) {
    let now = clock::to_timestamp(clock::now());
    shmem::write(|shared| {
        if let Some(line) = shared.role_mut(database, role) {
            line.parked_until = Some(until);
        }
        if let (Some(trouble), Some(line)) = (trouble, shared.database_mut(database)) {
            line.set_trouble(trouble, now);
        }
    });
}

fn reserve(database: pg_sys::Oid, role: pg_sys::Oid, mono: Mono) -> Option<(usize, u64)> {
    shmem::write(|shared| {
        let index = shared.reserve(database, role, mono)?;
        shared.served += 1;
        let served = shared.served;
        if let Some(line) = shared.role_mut(database, role) {
            line.last_served = served;
            line.parked_until = None;
        }
        Some((index, shared.workers[index].generation))
    })
}

fn start(name: &std::ffi::CStr, function: &std::ffi::CStr, assignment: Assignment) -> Option<Handle> {
    let mut worker = process::describe(name, function, pg_sys::BGW_NEVER_RESTART, Some(assignment));
    let mut handle = std::ptr::null_mut();
    // SAFETY: PostgreSQL copies `worker`, and `handle` is allocated for the life of this process.
    unsafe {
        let previous = pg_sys::MemoryContextSwitchTo(pg_sys::TopMemoryContext);
        let started = pg_sys::RegisterDynamicBackgroundWorker(&mut worker, &mut handle);
        pg_sys::MemoryContextSwitchTo(previous);
        started.then(|| Handle(handle))
    }
}
