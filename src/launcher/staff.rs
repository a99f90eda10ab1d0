//! The processes that the launcher has started: workers in their seats, and dispatchers.
//!
//! Invariant: a seat that was reserved for a worker which never came is freed again; no more than [`DISPATCHERS`] visit
//! databases at once; a server without room for another process is asked again after a growing while, and said so once.
//! Does not: decide whom to start (see `awty_core::plan`).

use crate::board::{self, Occupancy, Trouble};
use crate::catalog::{self, CannotConnect};
use crate::failpoint::failpoint;
use crate::process::{self, Assignment};
use awty_core::Mono;
use pgrx::pg_sys;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// So many databases are visited at once.
const DISPATCHERS: usize = 2;
/// A role that cannot connect is looked at again after this.
const CANNOT_CONNECT: Duration = Duration::from_secs(5);
/// When the server has no room: at first, and at the most.
const NO_ROOM: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// A seat that a former launcher reserved, or a turn that ended in an error, is freed when nobody has come for so long, in
/// microseconds. Whoever comes later finds it taken, and leaves.
const STALE: i64 = 10_000_000;

#[derive(Default)]
pub struct Staff {
    /// Seats that this launcher has reserved, by number, with their generations.
    coming: HashMap<usize, (u64, Handle)>,
    dispatchers: Vec<(pg_sys::Oid, Handle)>,
    returned: Vec<pg_sys::Oid>,
    /// When to ask for another process, and how long the wait for that is; `None` while the server has room.
    no_room: Option<(Mono, Duration)>,
    /// Has the log been told that all places are taken?
    said_no_place: bool,
    /// Roles of which it has been said that they cannot connect.
    said: HashSet<(pg_sys::Oid, pg_sys::Oid)>,
}

/// A process that was asked for. Its memory belongs to the launcher's longest-lived context and is freed with the handle.
struct Handle(*mut pg_sys::BackgroundWorkerHandle);

impl Handle {
    fn has_ended(&self) -> bool {
        let mut pid = 0;
        // SAFETY: a handle of a process that this one has registered.
        let status = unsafe { pg_sys::GetBackgroundWorkerPid(self.0, &mut pid) };
        status == pg_sys::BgwHandleStatus::BGWH_STOPPED
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: allocated by RegisterDynamicBackgroundWorker, and not used after this.
        unsafe { pg_sys::pfree(self.0.cast()) };
    }
}

impl Staff {
    /// Takes note of who has come, and who never will.
    pub fn reap(&mut self, mono: Mono) {
        self.coming.retain(|&index, (generation, handle)| {
            let ended = handle.has_ended();
            board::write(|board| {
                let seat = &mut board.seats[index];
                let waiting = seat.occupancy == Occupancy::Starting && seat.generation == *generation;
                if waiting && ended {
                    seat.free();
                }
                waiting && !ended
            })
        });
        board::write(|board| {
            for seat in board.seats.iter_mut() {
                if seat.occupancy == Occupancy::Starting && mono.0 - seat.asked_at > STALE {
                    seat.free();
                }
            }
        });
        let returned = &mut self.returned;
        self.dispatchers.retain(|(database, handle)| {
            let ended = handle.has_ended();
            if ended {
                returned.push(*database);
            }
            !ended
        });
    }

    /// The databases whose visits are over since the last call.
    pub fn returned(&mut self) -> Vec<pg_sys::Oid> {
        std::mem::take(&mut self.returned)
    }

    /// Is a dispatcher there now?
    pub fn is_visiting(&self, database: pg_sys::Oid) -> bool {
        self.dispatchers.iter().any(|(visited, _)| *visited == database)
    }

    /// Sends a dispatcher to a database; `false` if there is none to send now.
    pub fn start_dispatcher(&mut self, database: pg_sys::Oid, mono: Mono) -> bool {
        if self.dispatchers.len() >= DISPATCHERS {
            return false;
        }
        let assignment = Assignment { database, role: pg_sys::InvalidOid, seat: u32::MAX, generation: 0 };
        match start(c"awty dispatcher", c"awty_dispatcher_main", assignment) {
            Some(handle) => {
                self.dispatchers.push((database, handle));
                true
            }
            None => {
                self.ask_again_at(mono);
                board::write(|board| {
                    if let Some(line) = board.database_or_new(database) {
                        line.trouble = Trouble::NoWorkerSlot;
                    }
                });
                false
            }
        }
    }

    /// Starts a worker for a role, or parks the role for a while.
    pub fn start_worker(&mut self, database: pg_sys::Oid, role: pg_sys::Oid, mono: Mono) {
        if process::is_database_wanted(database) {
            park(database, role, mono.plus(NO_ROOM.0), None);
            return;
        }
        match catalog::can_connect(database, role) {
            Ok(()) => {
                self.said.remove(&(database, role));
            }
            Err(CannotConnect::NoDatabase) => {
                board::write(|board| board.forget_database(database));
                return;
            }
            Err(why) => {
                self.say_cannot_connect(database, role, why);
                park(database, role, mono.plus(CANNOT_CONNECT), Some(Trouble::RoleCannotConnect));
                return;
            }
        }
        let Some((index, generation)) = reserve(database, role, mono) else {
            if !std::mem::replace(&mut self.said_no_place, true) {
                crate::error::log::no_place();
            }
            park(database, role, mono.plus(NO_ROOM.0), Some(Trouble::NoPlace));
            return;
        };
        self.said_no_place = false;
        let assignment = Assignment { database, role, seat: u32::try_from(index).unwrap_or(u32::MAX), generation };
        failpoint!("launcher.before_start");
        match start(c"awty worker", c"awty_worker_main", assignment) {
            Some(handle) => {
                self.no_room = None;
                self.coming.insert(index, (generation, handle));
                failpoint!("launcher.started");
            }
            None => {
                board::write(|board| board.seats[index].free());
                park(database, role, self.ask_again_at(mono), Some(Trouble::NoWorkerSlot));
            }
        }
    }

    /// The server had no room for another process. Says so once, and says when to ask again: whoever finds none meanwhile
    /// waits for the same moment, so that no role's wait grows with the number of the others.
    fn ask_again_at(&mut self, mono: Mono) -> Mono {
        let wait = match self.no_room {
            Some((at, _)) if at > mono => return at,
            Some((_, wait)) => (wait * 2).min(NO_ROOM.1),
            None => {
                crate::error::log::no_room();
                NO_ROOM.0
            }
        };
        let at = mono.plus(wait);
        self.no_room = Some((at, wait));
        at
    }

    fn say_cannot_connect(&mut self, database: pg_sys::Oid, role: pg_sys::Oid, why: CannotConnect) {
        if self.said.insert((database, role)) {
            crate::error::log::cannot_connect(&catalog::role_label(role), database.to_u32(), why);
        }
    }
}

/// Nothing is started for a role before that moment.
fn park(database: pg_sys::Oid, role: pg_sys::Oid, until: Mono, trouble: Option<Trouble>) {
    board::write(|board| {
        if let Some(line) = board.role_mut(database, role) {
            line.parked_until = until.0;
        }
        if let (Some(trouble), Some(line)) = (trouble, board.database_mut(database)) {
            line.trouble = trouble;
        }
    });
}

/// Finds a free seat for a worker of a role.
fn reserve(database: pg_sys::Oid, role: pg_sys::Oid, mono: Mono) -> Option<(usize, u64)> {
    board::write(|board| {
        let index = board.reserve(database, role, mono)?;
        board.served += 1;
        let served = board.served;
        if let Some(line) = board.role_mut(database, role) {
            line.last_served = served;
            line.parked_until = 0;
        }
        Some((index, board.seats[index].generation))
    })
}

/// Asks the postmaster for a process.
fn start(name: &std::ffi::CStr, function: &std::ffi::CStr, assignment: Assignment) -> Option<Handle> {
    let mut worker = process::describe(name, function, pg_sys::BGW_NEVER_RESTART, Some(assignment));
    let mut handle = std::ptr::null_mut();
    // SAFETY: the description is copied; the handle is allocated where it lives as long as this process.
    unsafe {
        let previous = pg_sys::MemoryContextSwitchTo(pg_sys::TopMemoryContext);
        let started = pg_sys::RegisterDynamicBackgroundWorker(&mut worker, &mut handle);
        pg_sys::MemoryContextSwitchTo(previous);
        // Lazily: a handle that is dropped frees its memory, and there is none.
        started.then(|| Handle(handle))
    }
}
