//! Invariant: when a worker's process ends, its unfinished checks are due again and its entry in shared memory is
//! freed. If a run killed the process, the entry is freed only after the next worker has recorded the failure.

use crate::figures::account;
use crate::pg::clock::{self, Timestamp};
use crate::process::{self, Assignment, session_locks, timer};
use crate::shmem::{self, DatabaseProblem, NEVER, Occupancy, RoleEntry, WorkerEntry};
use awty_core::watch::Untold;
use chrono::TimeDelta;
use pgrx::{pg_guard, pg_sys};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

static ENTRY: AtomicUsize = AtomicUsize::new(usize::MAX);
/// Earliest due time of the checks that the worker is handling, or [`NEVER`] while idle.
static WORKING_FROM: AtomicI64 = AtomicI64::new(NEVER);
/// False until the worker has run a check or found that no check is due. A worker that exits earlier may count as
/// failed.
static USEFUL: AtomicBool = AtomicBool::new(false);

pub struct MyWorker {
    index: usize,
    pub database: pg_sys::Oid,
    role: pg_sys::Oid,
}

pub struct Abandoned {
    pub entry: usize,
    pub generation: u64,
    pub overran: bool,
    pub untold: Option<Untold>,
    pub ids: Vec<i64>,
    pub run_time: TimeDelta,
}

impl MyWorker {
    pub fn take(assignment: &Assignment) -> Option<Self> {
        let index = assignment.entry as usize;
        let taken = shmem::write(|shared| {
            // SAFETY: `MyProcPid` and `MyProc` are set in every process of the server.
            let (pid, latch) = unsafe { (pg_sys::MyProcPid, &raw mut (*pg_sys::MyProc).procLatch) };
            shared.workers.get_mut(index).is_some_and(|entry| entry.take(assignment.generation, pid, latch))
        });
        if !taken {
            return None;
        }
        ENTRY.store(index, Ordering::Relaxed);
        // Registers the callback before the worker connects, so that a failed connection also frees the worker's entry.
        // Callbacks run in reverse order, so PostgreSQL aborts the transaction before it calls this callback.
        // SAFETY: the callback ignores its argument.
        unsafe { pg_sys::on_shmem_exit(Some(at_exit), pg_sys::Datum::from(0)) };
        Some(Self { index, database: assignment.database, role: assignment.role })
    }

    pub fn index(&self) -> usize {
        self.index
    }

    pub fn number(&self) -> i32 {
        number(self.index)
    }

    pub fn may_work(&self) -> bool {
        shmem::read(|shared| shared.database(self.database).is_some_and(|line| line.state == shmem::State::Ready))
    }

    /// If the role's earliest due time has come, removes the time from shared memory and returns it. The worker removes
    /// the time before it reads the checks, because a later removal could lose the time of a newly committed check.
    pub fn claim_due(&self, now: Timestamp) -> Option<Timestamp> {
        shmem::write(|shared| shared.role_mut(self.database, self.role)?.claim_due(now))
    }

    pub fn claim_earlier(&self, now: Timestamp) -> Option<Timestamp> {
        shmem::write(|shared| {
            let line = shared.role_mut(self.database, self.role).filter(|line| line.due <= now)?;
            let from = std::mem::replace(&mut line.due, NEVER);
            WORKING_FROM.fetch_min(from, Ordering::Relaxed);
            Some(from)
        })
    }

    pub fn next_due(&self) -> Timestamp {
        shmem::read(|shared| shared.role(self.database, self.role).map_or(NEVER, RoleEntry::wanted_at))
    }

    pub fn working(&self, from: Timestamp) {
        WORKING_FROM.store(from, Ordering::Relaxed);
        let now = clock::mono();
        shmem::write(|shared| shared.workers[self.index].busy_since = Some(now));
    }

    pub fn backlog(&self, from: Timestamp) {
        shmem::write(|shared| {
            if let Some(line) = shared.role_or_new(self.database, self.role) {
                line.backlog = line.backlog.min(from);
            }
        });
    }

    pub fn caught_up(&self, next: Timestamp, look_again: Option<Timestamp>) {
        let from = WORKING_FROM.swap(NEVER, Ordering::Relaxed);
        USEFUL.store(true, Ordering::Relaxed);
        shmem::write(|shared| {
            shared.workers[self.index].rest();
            if let Some(line) = shared.role_mut(self.database, self.role) {
                line.backlog = NEVER;
                if let Some(at) = look_again {
                    line.look_again = (at.min(line.look_again.0), from.min(line.look_again.1));
                }
            }
            shared.note_due(self.database, self.role, next);
        });
    }

    pub fn ask_for_help(&self) {
        shmem::write(|shared| {
            if !std::mem::replace(&mut shared.workers[self.index].wants_help, true) {
                shared.wake_launcher();
            }
        });
    }

    pub fn end_turn(&self) {
        shmem::write(|shared| shared.end_turn(self.index));
    }

    pub fn prefetch(&self, ids: &[i64]) -> Vec<i64> {
        let mono = clock::mono();
        shmem::write(|shared| shared.prefetch(self.index, ids, mono))
    }

    pub fn set_named(&self, named: bool) {
        shmem::write(|shared| shared.workers[self.index].named = named);
    }

    /// Returns the claimed ids and a counter, which increases when checks are blamed for a crash. If the counter has
    /// changed, the caller's list of blamed checks is outdated.
    pub fn claim(&self, ids: &[i64]) -> (Vec<i64>, u64) {
        shmem::write(|shared| {
            let granted = shared.claim(self.index, ids);
            (granted, shared.database(self.database).map_or(0, |line| line.suspected))
        })
    }

    pub fn suspected(&self) -> u64 {
        shmem::read(|shared| shared.database(self.database).map_or(0, |line| line.suspected))
    }

    pub fn note_blamed(&self) {
        shmem::write(|shared| {
            if let Some(line) = shared.database_mut(self.database) {
                line.suspected += 1;
            }
        });
    }

    pub fn park_role(&self, pause: Duration) {
        let until = clock::mono().plus(pause);
        shmem::write(|shared| {
            if let Some(line) = shared.role_mut(self.database, self.role) {
                line.parked_until = Some(until);
            }
        });
        USEFUL.store(true, Ordering::Relaxed);
    }

    pub fn trouble(&self, trouble: DatabaseProblem) {
        let now = clock::to_timestamp(clock::now());
        shmem::write(|shared| {
            if let Some(line) = shared.database_mut(self.database) {
                line.set_trouble(trouble, now);
            }
        });
    }

    pub fn release(&self, slot: Timestamp, runs: usize) {
        USEFUL.store(true, Ordering::Relaxed);
        let (mono, now) = (clock::mono(), clock::now());
        shmem::write(|shared| {
            shared.release(self.index);
            account::write_counted(shared, self.database, now);
            let Some(line) = shared.database_mut(self.database) else { return };
            line.last_slot_run = line.last_slot_run.max(slot);
            line.dead_rows.add(runs as u64, mono);
        });
    }

    pub fn enter_quarantine(&self) -> bool {
        let mono = clock::mono();
        shmem::write(|shared| shared.enter_quarantine(self.index, mono))
    }

    pub fn leave_quarantine(&self) {
        shmem::write(|shared| shared.leave_quarantine(self.index));
    }

    pub fn next_abandoned(&self, from: usize) -> Option<Abandoned> {
        shmem::write(|shared| {
            let me = (self.index, shared.workers[self.index].generation);
            let is_left = |entry: &WorkerEntry| {
                entry.seer.is_none_or(|seer| {
                    let other = &shared.workers[seer.0];
                    seer == me || other.occupancy() != Occupancy::Taken || other.generation != seer.1
                })
            };
            let index = (from..shared.workers.len()).find(|&index| {
                let entry = &shared.workers[index];
                let is_ours = entry.is_of(self.database, self.role);
                entry.occupancy() == Occupancy::Abandoned && is_ours && is_left(entry)
            })?;
            shared.workers[index].seer = Some(me);
            let entry = &shared.workers[index];
            Some(Abandoned {
                entry: index,
                generation: entry.generation,
                overran: entry.overran,
                untold: entry.untold,
                ids: entry.claims().to_vec(),
                run_time: entry.run.map_or(TimeDelta::zero(), |run| clock::delta_of(clock::mono().since(run.began))),
            })
        })
    }

    pub fn forget_abandoned(&self, entry: usize, generation: u64) {
        shmem::write(|shared| shared.workers[entry].free_if_abandoned(generation));
    }

    pub fn leave(&self) {
        give_back();
    }
}

pub fn number(entry: usize) -> i32 {
    i32::try_from(entry).unwrap_or(i32::MAX)
}

#[pg_guard]
extern "C-unwind" fn at_exit(_code: i32, _argument: pg_sys::Datum) {
    session_locks::give_all_back();
    give_back();
}

fn give_back() {
    let index = ENTRY.swap(usize::MAX, Ordering::Relaxed);
    if index == usize::MAX {
        return;
    }
    let begun = WORKING_FROM.swap(NEVER, Ordering::Relaxed);
    let useful = USEFUL.load(Ordering::Relaxed);
    let mono = clock::mono();
    let time = clock::now();
    let now = clock::to_timestamp(time);
    shmem::write(|shared| {
        let (database, role, run) = {
            let entry = &shared.workers[index];
            (entry.database, entry.role, entry.run)
        };
        account::write_counted(shared, database, time);
        shared.leave_quarantine(index);
        let struck = run.map_or(0, |run| u32::from(run.strikes).max(timer::strikes()));
        let is_its_own_end = run.is_some() && (struck >= 2 || !process::was_terminated_by_another());
        if begun != NEVER {
            shared.note_due(database, role, begun.min(now));
        }
        shared.served += 1;
        let served = shared.served;
        if let Some(line) = shared.role_mut(database, role) {
            line.last_served = served;
            if useful {
                line.failures = 0;
            }
            // After a failure, the role gets no new worker for a while, because starting a process is expensive.
            if run.is_some() || !useful && (begun != NEVER || line.wanted_at() <= now) {
                line.note_failure(mono);
            }
        }
        if run.is_some()
            && let Some(line) = shared.database_mut(database)
        {
            // Requests the maintainer process, which deletes the worker's checks from `in_flight`, so that the next
            // crash is not blamed on these checks.
            line.inspection_wanted = true;
        }
        if is_its_own_end {
            shared.abandon(index, struck >= 2, mono);
        } else {
            shared.workers[index].free();
        }
        shared.wake_launcher();
    });
}
