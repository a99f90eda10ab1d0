//! Announces a transaction's scheduled checks to the launcher when the transaction commits.
//!
//! Invariant: nothing is announced before the commit. Each role gets one announcement per transaction, for the earliest
//! slot. A lost or needless announcement costs time but never a check, because the audit finds all checks. So a
//! rolled-back savepoint may announce its checks. PREPARE TRANSACTION announces as well, because the session that
//! commits later knows nothing of the checks, and usually commits soon.

use crate::pg::catalog;
use crate::pg::clock::{self, Timestamp};
use crate::shmem;
use awty_core::Passed;
use awty_core::figures::Figures;
use pgrx::{PgXactCallbackEvent, pg_sys};
use std::cell::RefCell;

#[derive(Default)]
struct Pending {
    registered: bool,
    due: Vec<(pg_sys::Oid, Timestamp)>,
    inspection: bool,
    adopted: bool,
    /// Number of checks that the transaction has written. Their rows are dead after a rollback.
    written: u64,
    forgotten: Vec<Vec<u8>>,
    counted: Vec<(Vec<u8>, Figures, Passed)>,
    /// Number of checks that the transaction has ended. Their rows are dead after the commit.
    ended: u64,
}

thread_local! {
    static PENDING: RefCell<Pending> = RefCell::default();
}

/// Announces at commit that a role has work at a slot. If the role is `None`, external workers run the checks and
/// nothing is announced.
pub fn at_commit(role: Option<pg_sys::Oid>, due: Timestamp) {
    let Some(role) = role else { return };
    note(|pending| match pending.due.iter_mut().find(|(other, _)| *other == role) {
        Some((_, earliest)) => *earliest = due.min(*earliest),
        None => pending.due.push((role, due)),
    });
}

pub fn count_written(checks: u64) {
    note(|pending| pending.written += checks);
}

pub fn count_ended(checks: u64) {
    note(|pending| pending.ended += checks);
}

/// Adds runs to a job's counters at commit. Failures are summarised in the log after a minute.
pub fn count_runs_at_commit(job: &[u8], figures: Figures, failed: Passed) {
    if figures.runs > 0 || failed.events > 0 {
        note(|pending| pending.counted.push((job.to_vec(), figures, failed)));
    }
}

pub fn forget_job_at_commit(job: &[u8]) {
    note(|pending| pending.forgotten.push(job.to_vec()));
}

pub fn inspect_at_commit(adopted: bool) {
    note(|pending| {
        pending.inspection = true;
        pending.adopted |= adopted;
    });
}

fn note(change: impl FnOnce(&mut Pending)) {
    if !shmem::is_present() {
        return;
    }
    PENDING.with_borrow_mut(|pending| {
        change(pending);
        if !pending.registered {
            pending.registered = true;
            pgrx::register_xact_callback(PgXactCallbackEvent::Commit, tell);
            pgrx::register_xact_callback(PgXactCallbackEvent::Abort, forget);
            pgrx::register_xact_callback(PgXactCallbackEvent::Prepare, tell);
        }
    });
}

fn tell() {
    let pending = PENDING.take();
    let database = catalog::database();
    for (role, due) in pending.due {
        shmem::post(database, role, due);
    }
    if pending.inspection {
        shmem::request_inspection(database, pending.adopted);
    }
    if !pending.forgotten.is_empty() {
        shmem::write(|shared| pending.forgotten.iter().for_each(|job| shared.forget_job(database, job)));
    }
    if !pending.counted.is_empty() {
        let (now, mono) = (clock::now(), clock::mono());
        shmem::write(|shared| {
            for (job, figures, failed) in &pending.counted {
                shared.count_leases(database, job, figures, *failed, (now, mono));
            }
        });
    }
    shmem::count_dead_rows(database, pending.ended);
}

fn forget() {
    let pending = PENDING.take();
    shmem::count_dead_rows(catalog::database(), pending.written);
}
