//! The launcher connects to no database, so DROP DATABASE does not wait for it.
//!
//! An error ends one turn of the main loop, but not the launcher.

mod children;
mod database_cache;
mod databases;

use self::children::Children;
use self::databases::Databases;
use crate::failpoint::failpoint;
use crate::pg::clock;
use crate::process::transaction::{Verdict, transaction};
use crate::process::{self, sync_rep};
use crate::settings;
use crate::shmem::{self, DatabaseProblem, NEVER, Occupancy, State};
use awty_core::plan::{self, LEAD};
use awty_core::{Caps, Mono, Plan, Role, Time};
use chrono::TimeDelta;
use pgrx::{pg_guard, pg_sys};
use std::collections::HashSet;
use std::time::Duration;

const AFTER_ERROR: Duration = Duration::from_secs(1);

pub fn register() {
    let mut worker = process::describe(c"awty launcher", c"awty_launcher_main", 1, None);
    // SAFETY: PostgreSQL copies `worker`.
    unsafe { pg_sys::RegisterBackgroundWorker(&mut worker) };
}

#[pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn awty_launcher_main(_argument: pg_sys::Datum) {
    process::listen_to_signals();
    // SAFETY: a process connects only once, and its PGPROC exists as long as the server runs.
    unsafe {
        pg_sys::BackgroundWorkerInitializeConnectionByOid(pg_sys::InvalidOid, pg_sys::InvalidOid, 0);
        pg_sys::on_shmem_exit(Some(at_exit), pg_sys::Datum::from(0));
        shmem::launcher_is(&raw mut (*pg_sys::MyProc).procLatch);
    }
    let mut launcher =
        Launcher { databases: Databases::new(), children: Children::default(), enabled: None, stuck: HashSet::new() };
    process::report(None);
    loop {
        process::answer_signals();
        let wait = transaction(|| Verdict::Commit(launcher.turn())).unwrap_or_else(|failure| {
            pgrx::log!("awty: the launcher met an error and continues: {} ({})", failure.message, failure.sqlstate);
            AFTER_ERROR
        });
        process::wait(wait);
    }
}

#[pg_guard]
extern "C-unwind" fn at_exit(_code: i32, _argument: pg_sys::Datum) {
    shmem::launcher_is(std::ptr::null_mut());
}

struct Launcher {
    databases: Databases,
    children: Children,
    enabled: Option<bool>,
    stuck: HashSet<i32>,
}

impl Launcher {
    fn turn(&mut self) -> Duration {
        let (now, mono) = (clock::now(), clock::mono());
        // A session that commits a check from now on must wake the launcher, because the code below may no longer find
        // the check.
        shmem::launcher_is_awake(clock::to_timestamp(now));
        self.children.reap(mono);
        failpoint!("launcher.turn");
        let watch = watch(mono);
        self.tell_of_stuck_runs(now, mono);
        self.note_enabled(now);
        if !settings::enabled() {
            return watch;
        }
        let inspections = self.databases.inspect(&mut self.children, mono);
        let plan = self.start_workers(now, mono);
        let wait = plan.wake_in.min(watch).min(inspections);
        shmem::launcher_sleeps_until(clock::to_timestamp(now + TimeDelta::from_std(wait).unwrap_or(LEAD) + LEAD));
        wait
    }

    /// Stores the time at which awty was enabled, because checks that were due earlier count as missed. The stored time
    /// never lies in the future, even if the clock is set back.
    fn note_enabled(&mut self, now: Time) {
        let enabled = settings::enabled();
        let just_enabled = self.enabled == Some(false) && enabled;
        self.enabled = Some(enabled);
        let now = clock::to_timestamp(now);
        shmem::write(|shared| {
            for line in shared.databases.iter_mut().filter(|line| line.state == State::Ready) {
                line.able_since = if just_enabled { now } else { line.able_since.min(now) };
            }
        });
        if just_enabled {
            self.databases.inspect_all();
        }
    }

    fn tell_of_stuck_runs(&mut self, now: Time, mono: Mono) {
        let now = clock::to_timestamp(now);
        let stuck: Vec<(pg_sys::Oid, i32)> = shmem::write(|shared| {
            let stuck = shared.workers.iter().filter(|entry| entry.is_stuck(mono));
            let stuck: Vec<_> = stuck.map(|entry| (entry.database, entry.pid)).collect();
            for line in shared.databases.iter_mut() {
                let here = stuck.iter().find(|(database, _)| *database == line.oid);
                let trouble = match (here, line.trouble) {
                    (Some((_, pid)), _) => DatabaseProblem::StuckRun(*pid),
                    (None, DatabaseProblem::StuckRun(_)) => DatabaseProblem::None,
                    (None, other) => other,
                };
                line.set_trouble(trouble, now);
            }
            stuck
        });
        self.stuck.retain(|pid| stuck.iter().any(|(_, other)| other == pid));
        for (database, pid) in stuck {
            if self.stuck.insert(pid) {
                crate::error::log::stuck_run(pid, database.to_u32());
            }
        }
    }

    fn start_workers(&mut self, now: Time, mono: Mono) -> Plan {
        let (keys, roles, elsewhere) = view(mono);
        let caps = Caps {
            max_workers: settings::max_workers(),
            max_workers_per_role: settings::max_workers_per_role(),
            elsewhere,
            lead: LEAD,
        };
        let plan = plan::plan(now, mono, &roles, &caps);
        shmem::write(|shared| shared.set_waiting(plan.waiting));
        for &index in &plan.start {
            let (database, role) = keys[index];
            self.children.start_worker(database, role, mono);
        }
        plan
    }
}

/// Returns the roles that need workers, and the number of workers that serve roles outside this list.
fn view(mono: Mono) -> (Vec<(pg_sys::Oid, pg_sys::Oid)>, Vec<Role>, u32) {
    shmem::read(|shared| {
        let (keys, roles): (Vec<_>, Vec<Role>) = shared
            .roles
            .iter()
            .filter(|line| line.wanted_at() != NEVER)
            .filter(|line| shared.database(line.database).is_some_and(|database| database.state == State::Ready))
            .map(|line| {
                let entries = shared
                    .workers
                    .iter()
                    .filter(|entry| entry.is_occupied() && entry.database == line.database && entry.role == line.role);
                let (mut workers, mut stuck) = (0, 0);
                let mut behind_since = Some(Mono(i64::MIN));
                let mut wants_help = false;
                for entry in entries {
                    if entry.is_stuck(mono) {
                        stuck += 1;
                        continue;
                    }
                    workers += 1;
                    wants_help |= entry.wants_help;
                    let busy = entry.busy_since.filter(|_| entry.occupancy() == Occupancy::Taken);
                    behind_since = behind_since.zip(busy).map(|(since, busy)| since.max(busy));
                }
                let role = Role {
                    due: Some(clock::clamped(line.wanted_at())),
                    behind_since: behind_since.filter(|_| workers > 0),
                    wants_help,
                    workers,
                    stuck,
                    parked_until: line.parked_until,
                    last_served: line.last_served,
                };
                ((line.database, line.role), role)
            })
            .unzip();
        let occupied = shared.workers.iter().filter(|entry| entry.is_occupied() && !entry.is_stuck(mono)).count();
        let counted: u32 = roles.iter().map(|role| role.workers).sum();
        (keys, roles, u32::try_from(occupied).unwrap_or(u32::MAX).saturating_sub(counted))
    })
}

/// Interrupts runs that exceed their time limit. Uses the monotonic clock, because the workers' timers use the wall
/// clock, which may jump.
fn watch(mono: Mono) -> Duration {
    shmem::write(|shared| {
        let mut next = plan::MAX_SLEEP;
        for entry in shared.workers.iter_mut().filter(|entry| entry.occupancy() == Occupancy::Taken) {
            let Some(run) = &mut entry.run else {
                // SIGTERM does no harm, because the worker runs no check and only waits for a standby.
                if sync_rep::is_process_waiting(entry.pid) && process::is_database_wanted(entry.database) {
                    // SAFETY: the call only sends a signal to this worker.
                    unsafe { libc::kill(entry.pid, libc::SIGTERM) };
                }
                continue;
            };
            // Does not interrupt a worker whose commit waits for a standby. Otherwise, the worker would stop waiting
            // and start its next run, although no standby has the commit.
            if run.is_over_time(mono) && sync_rep::is_process_waiting(entry.pid) {
                continue;
            }
            if let Some(strikes) = run.strike(mono) {
                // This PID still belongs to the worker, because a worker frees its entry only under the lock on shared
                // memory.
                let signal = if strikes > 1 { libc::SIGTERM } else { libc::SIGINT };
                // SAFETY: the call only sends a signal to this worker.
                unsafe { libc::kill(entry.pid, signal) };
            }
            next = run.next_strike_in(mono).map_or(next, |wait| next.min(wait));
        }
        next.max(plan::MIN_SLEEP)
    })
}
