//! What a transaction has scheduled, told to the launcher when it commits.
//!
//! Invariant: nothing is told before the commit, one message per role and transaction, and only the earliest slot. A
//! lost or needless hint costs time, never a check: the audit finds what no hint told of.
//! PREPARE TRANSACTION tells as well: its commit comes in another session, which knows nothing of it, and mostly within moments.
//! Does not: follow savepoints (a hint of a rolled-back one finds nothing).

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
    /// Checks written, which are dead rows if the transaction is rolled back.
    written: u64,
    /// Jobs whose figures a maintainer forgets.
    forgotten: Vec<Vec<u8>>,
    /// What the work of leases has come to, by job.
    counted: Vec<(Vec<u8>, Figures, Passed)>,
    /// Checks ended, which are dead rows if it is committed.
    ended: u64,
}

thread_local! {
    static PENDING: RefCell<Pending> = RefCell::default();
}

/// When this transaction commits: there is work for a role at a slot. `None` stands for workers outside, who are told nothing.
pub fn at_commit(role: Option<pg_sys::Oid>, due: Timestamp) {
    let Some(role) = role else { return };
    note(|pending| match pending.due.iter_mut().find(|(other, _)| *other == role) {
        Some((_, earliest)) => *earliest = due.min(*earliest),
        None => pending.due.push((role, due)),
    });
}

/// Checks have been written.
pub fn count_written(checks: u64) {
    note(|pending| pending.written += checks);
}

/// Checks have been ended.
pub fn count_ended(checks: u64) {
    note(|pending| pending.ended += checks);
}

/// When this transaction commits: the work of leases of that job has come to this. The log is told of what failed when the minute is over.
pub fn count_runs_at_commit(job: &[u8], figures: Figures, failed: Passed) {
    if figures.runs > 0 || failed.events > 0 {
        note(|pending| pending.counted.push((job.to_vec(), figures, failed)));
    }
}

/// When this transaction commits: the figures of that job are those of one that is gone.
pub fn forget_job_at_commit(job: &[u8]) {
    note(|pending| pending.forgotten.push(job.to_vec()));
}

/// When this transaction commits: the maintainer should inspect this database.
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
