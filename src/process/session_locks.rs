//! Keeps a worker's locks on awty's tables between quick runs, because taking these locks takes longer than many runs.
//!
//! Invariant: a lock is kept for at most [`HOLD`], and never while the worker sleeps.

use crate::pg::relations::{self, Lock, Purpose};
use crate::pg::{catalog, clock};
use awty_core::Mono;
use pgrx::pg_sys;
use std::cell::RefCell;
use std::time::Duration;

const HOLD: Duration = Duration::from_millis(20);

thread_local! {
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

struct Held {
    since: Mono,
    locks: Vec<Lock>,
}

pub fn hold() -> bool {
    let now = clock::mono();
    if HELD.with_borrow(|held| held.as_ref().is_some_and(|held| now < held.since.plus(HOLD))) {
        return true;
    }
    let_go();
    let Some(locks) = relations::lock_all(Purpose::Run) else { return false };
    HELD.set(Some(Held { since: now, locks: Vec::new() }));
    locks.into_iter().for_each(hold_too);
    true
}

fn hold_too(lock: Lock) {
    HELD.with_borrow_mut(|held| {
        if let Some(held) = held
            && !held.locks.contains(&lock)
        {
            // SAFETY: the transaction already has this lock, so locking the relation for the session does not wait.
            unsafe { pg_sys::LockRelationIdForSession(&mut id(lock.0), lock.1) };
            held.locks.push(lock);
        }
    });
}

pub fn let_go() {
    for (relation, mode) in HELD.take().into_iter().flat_map(|held| held.locks) {
        // SAFETY: `hold_too` has locked the relation for the session.
        unsafe { pg_sys::UnlockRelationIdForSession(&mut id(relation), mode) };
    }
}

/// A process that exits between transactions must release its session locks, because PostgreSQL releases them only at
/// an abort.
pub fn give_all_back() {
    // SAFETY: the process exits, so it needs no lock any more.
    unsafe { pg_sys::LockReleaseAll(pg_sys::DEFAULT_LOCKMETHOD as pg_sys::LOCKMETHODID, true) };
}

pub fn forget() {
    HELD.set(None);
}

fn id(relation: pg_sys::Oid) -> pg_sys::LockRelId {
    pg_sys::LockRelId { relId: relation, dbId: catalog::database() }
}
