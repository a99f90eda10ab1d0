//! Announces a transaction's checks to the launcher.
//!
//! Invariant: no check is announced before the commit.
//!
//! A lost announcement loses no check, because audits find all checks. PREPARE TRANSACTION also announces checks,
//! because the session of COMMIT PREPARED does not know them.

use crate::pg::catalog;
use crate::pg::clock::{self, Timestamp};
use crate::shmem;
use awty_core::figures::Figures;
use awty_core::{Passed, Time};
use pgrx::{PgSubXactCallbackEvent, PgXactCallbackEvent, pg_sys};
use std::cell::RefCell;
use std::collections::HashMap;

#[derive(Default)]
struct Pending {
    registered: bool,
    due: Vec<(pg_sys::Oid, Timestamp)>,
    inspection: bool,
    adopted: bool,
    end: Option<Timestamp>,
    /// Number of checks that this transaction has written. A rollback makes their rows dead.
    written: u64,
    forgotten: Vec<Vec<u8>>,
    /// Counts of the open subtransactions, the innermost last.
    counted: Vec<(pg_sys::SubTransactionId, Counts)>,
    /// Number of checks that this transaction has ended. The commit makes their rows dead.
    ended: u64,
}

type Counts = HashMap<Vec<u8>, (Figures, Passed)>;

thread_local! {
    static PENDING: RefCell<Pending> = RefCell::default();
}

/// Announces due checks to the launcher at commit. Does nothing if `role` is `None`, because external workers run the
/// job.
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

pub fn count_runs_at_commit(job: &[u8], figures: Figures, failed: Passed) {
    if figures.runs > 0 || failed.events > 0 {
        note(|pending| add(counts_here(pending), job, &figures, failed));
    }
}

pub fn count_rows(rule: &[u8], met: u64, late_rows: u64) {
    if met + late_rows > 0 {
        let more = Figures { met, late_rows, ..Figures::NONE };
        note(|pending| add(counts_here(pending), rule, &more, Passed::default()));
    }
}

fn counts_here(pending: &mut Pending) -> &mut Counts {
    // SAFETY: the function only reads a variable.
    let here = unsafe { pg_sys::GetCurrentSubTransactionId() };
    if pending.counted.last().is_none_or(|(last, _)| *last != here) {
        pending.counted.push((here, Counts::new()));
    }
    let last = pending.counted.len() - 1;
    &mut pending.counted[last].1
}

fn add(counts: &mut Counts, job: &[u8], more: &Figures, more_failed: Passed) {
    match counts.get_mut(job) {
        Some((figures, failed)) => {
            figures.add(more);
            failed.add(more_failed);
        }
        None => drop(counts.insert(job.to_vec(), (*more, more_failed))),
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

pub fn end_at_commit(end: Time) {
    let end = clock::to_timestamp(end);
    note(|pending| pending.end = Some(pending.end.map_or(end, |other| other.min(end))));
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
            pgrx::register_subxact_callback(PgSubXactCallbackEvent::CommitSub, hand_up);
            pgrx::register_subxact_callback(PgSubXactCallbackEvent::AbortSub, |undone, _| uncount(undone));
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
    if let Some(end) = pending.end {
        shmem::inspect_by(database, end);
    }
    shmem::write_each(&pending.forgotten, |shared, job| shared.forget_job(database, job));
    for (_, counts) in pending.counted {
        count(database, counts);
    }
    shmem::count_dead_rows(database, pending.ended);
}

fn count(database: pg_sys::Oid, counts: Counts) {
    let counted: Vec<_> = counts.into_iter().collect();
    let (now, mono) = (clock::now(), clock::mono());
    shmem::write_each(&counted, |shared, (job, (figures, failed))| {
        shared.count_leases(database, job, figures, *failed, (now, mono));
    });
}

/// Adds the counts of a subtransaction that has ended to those of its parent. Otherwise, a client with a savepoint for
/// each row would keep counts for each of them.
fn hand_up(done: pg_sys::SubTransactionId, parent: pg_sys::SubTransactionId) {
    PENDING.with_borrow_mut(|pending| {
        let Some((_, counts)) = pending.counted.pop_if(|(last, _)| *last == done) else { return };
        match pending.counted.last_mut().filter(|(last, _)| *last == parent) {
            Some((_, all)) => counts.iter().for_each(|(job, (figures, failed))| add(all, job, figures, *failed)),
            None => pending.counted.push((parent, counts)),
        }
    });
}

/// Drops the counts of the undone subtransaction and of all subtransactions nested in it, which have higher numbers.
fn uncount(undone: pg_sys::SubTransactionId) {
    PENDING.with_borrow_mut(|pending| pending.counted.retain(|(by, _)| *by < undone));
}

fn forget() {
    let pending = PENDING.take();
    shmem::count_dead_rows(catalog::database(), pending.written);
}
