//! A worker connects to a database as one role, runs the role's due checks, and exits when none is due.
//!
//! A *turn* takes a share of each job's due checks, writes their ids to `awty_internal.in_flight`, flushes the WAL, and
//! runs the checks.
//!
//! Invariant: each turn also takes newly due checks and checks of other jobs, however many checks of one job are due.

mod abandoned;
mod batch;
mod entry;
mod fetch;

use self::entry::MyWorker;
use self::fetch::Fetcher;
use crate::failpoint::failpoint;
use crate::pg::clock::{self, Timestamp};
use crate::process::transaction::{Verdict, transaction};
use crate::process::{self, session_locks, session_settings, timer};
use crate::settings;
use crate::shmem::{self, DatabaseProblem, NEVER};
use awty_core::Mono;
use awty_core::backoff::LOCKED_CHECK;
use pgrx::{pg_guard, pg_sys};
use std::time::Duration;

/// A worker stays connected at least this long, even if other roles wait, because opening a connection is expensive.
const QUANTUM: Duration = Duration::from_millis(50);
const UNCOUNTED: Duration = Duration::from_secs(1);
const IDLE: Duration = Duration::from_secs(1);
/// Longest sleep of an idle worker, so that DROP DATABASE does not wait long.
const NAP: Duration = Duration::from_millis(200);

#[pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn awty_worker_main(_argument: pg_sys::Datum) {
    process::listen_to_signals();
    let assignment = process::assignment();
    let Some(entry) = MyWorker::take(&assignment) else { process::exit(0) };
    failpoint!("worker.entered");
    connect(&assignment);
    timer::register();
    session_settings::override_settings();
    session_settings::set_commit_mode();
    process::keep_freed_memory();
    require_role(assignment.role);
    #[cfg(feature = "failpoints")]
    crate::failpoint::watch_commits();
    failpoint!("worker.connected");
    let mut worker = Worker {
        entry,
        fetcher: Fetcher::new(assignment.role),
        since: clock::mono(),
        in_flight: false,
        flushing: Duration::ZERO,
        looked: clock::mono(),
        last_slot: 0,
    };
    worker.work();
    worker.finish();
    process::exit(0);
}

fn connect(assignment: &process::Assignment) {
    #[cfg(any(feature = "pg17", feature = "pg18"))]
    let flags = pg_sys::BGWORKER_BYPASS_ROLELOGINCHECK;
    #[cfg(not(any(feature = "pg17", feature = "pg18")))]
    let flags = 0;
    // SAFETY: the process connects only once.
    unsafe { pg_sys::BackgroundWorkerInitializeConnectionByOid(assignment.database, assignment.role, flags) };
}

fn require_role(role: pg_sys::Oid) {
    // SAFETY: both functions only read a variable.
    let (current, session) = unsafe { (pg_sys::GetUserId(), pg_sys::GetSessionUserId()) };
    if current != role || session != role {
        pgrx::log!("awty: a worker could not run as role {} and leaves", role.to_u32());
        process::exit(0);
    }
}

struct Worker {
    entry: MyWorker,
    fetcher: Fetcher,
    since: Mono,
    in_flight: bool,
    flushing: Duration,
    looked: Mono,
    last_slot: Timestamp,
}

enum Next {
    Turn,
    Leave,
}

impl Worker {
    fn work(&mut self) {
        loop {
            process::answer_signals();
            if self.has_to_leave() {
                return;
            }
            let next = match self.entry.claim_due(clock::to_timestamp(clock::now())) {
                Some(from) => {
                    self.fetcher.start_from(from);
                    self.turns(from)
                }
                None => self.wait(),
            };
            if matches!(next, Next::Leave) {
                return;
            }
        }
    }

    fn has_to_leave(&self) -> bool {
        !settings::enabled()
            || process::is_orphan()
            || process::is_database_wanted(self.entry.database)
            || !self.entry.may_work()
    }

    fn turns(&mut self, from: i64) -> Next {
        self.entry.working(from);
        failpoint!("worker.took_over");
        process::report(Some(c"awty: running checks"));
        let began = clock::mono();
        loop {
            process::answer_signals();
            if let Some(from) = self.entry.claim_earlier(clock::to_timestamp(clock::now())) {
                self.fetcher.go_back_to(from);
            }
            if !self.see_to_abandoned() {
                self.entry.park_role(UNCOUNTED);
                return Next::Leave;
            }
            let tasks = match transaction(|| Verdict::Commit(self.fetcher.next(&self.entry))) {
                Ok(Some(tasks)) => {
                    failpoint!("worker.chose");
                    tasks
                }
                Ok(None) => return Next::Leave,
                Err(failure) => {
                    pgrx::log!(
                        "awty: a worker could not read the due checks: {} ({})",
                        failure.message,
                        failure.sqlstate
                    );
                    self.entry.trouble(DatabaseProblem::Reading);
                    return Next::Leave;
                }
            };
            if tasks.is_empty() {
                let patience = LOCKED_CHECK.longest();
                let Some(wait) = self.fetcher.try_again_in(patience) else { break };
                if !wait.is_zero() {
                    self.flush();
                    process::wait(wait.min(NAP));
                }
                if self.has_to_leave() || self.should_yield() {
                    return Next::Leave;
                }
                continue;
            }
            self.entry.backlog(from);
            if self.fetcher.is_full && clock::mono().since(began) > QUANTUM {
                self.entry.ask_for_help();
            }
            let (turn_began, checks) = (clock::mono(), tasks.iter().map(|task| task.checks.len()).sum());
            self.flushing = Duration::ZERO;
            let next = self.run_all(tasks);
            let took = clock::mono().since(turn_began);
            self.fetcher.keep_pace(checks, took.saturating_sub(self.flushing), self.flushing);
            process::report_statistics(false);
            if matches!(next, Next::Leave) || self.has_to_leave() || self.should_yield() {
                return Next::Leave;
            }
        }
        self.flush();
        process::report(None);
        failpoint!("worker.flushed");
        process::report_statistics(true);
        self.entry.caught_up(self.fetcher.next_slot(), self.fetcher.look_again());
        failpoint!("worker.caught_up");
        Next::Turn
    }

    fn wait(&mut self) -> Next {
        let due = self.entry.next_due();
        if due == NEVER {
            return Next::Leave;
        }
        let left = clock::until(clock::clamped(due));
        if !left.is_zero() && shmem::read(|shared| shared.waiting > 0) {
            return Next::Leave;
        }
        if left > IDLE {
            return Next::Leave;
        }
        process::wait(left.min(NAP));
        Next::Turn
    }

    fn should_yield(&self) -> bool {
        let stayed = clock::mono().since(self.since);
        stayed >= QUANTUM && shmem::read(|shared| shared.waiting > 0)
    }

    fn flush(&self) {
        session_locks::let_go();
        // SAFETY: `XactLastCommitEnd` is 0, or the end of this process's last commit in the WAL.
        unsafe { pg_sys::XLogFlush(pg_sys::XactLastCommitEnd) };
    }

    fn finish(&mut self) {
        failpoint!("worker.leaving");
        self.clear_in_flight();
        failpoint!("in_flight.cleared");
        process::report_statistics(true);
        self.entry.leave();
        failpoint!("worker.left");
    }
}
