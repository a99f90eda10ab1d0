//! The locks on awty's relations that a worker keeps from one quick run to the next: taking them for each costs more than what many
//! runs do.
//!
//! Invariant: a lock is kept no longer than [`HOLD`] after the transaction that took it, and never while the worker sleeps.
//! Does not: know what the locks keep out (see `relations`).

use super::relations::{self, Lock, Purpose};
use super::{catalog, clock};
use awty_core::Mono;
use pgrx::pg_sys;
use std::cell::RefCell;
use std::time::Duration;

/// The longest that locks are kept.
const HOLD: Duration = Duration::from_millis(20);

thread_local! {
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

struct Held {
    since: Mono,
    locks: Vec<Lock>,
}

/// The first locks of a worker's short transaction on awty's rows. What was locked a moment ago still is. `false` if the extension is
/// gone.
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

/// Keeps a lock that the transaction has for as long as the others, if there are any.
fn hold_too(lock: Lock) {
    HELD.with_borrow_mut(|held| {
        if let Some(held) = held
            && !held.locks.contains(&lock)
        {
            // SAFETY: as the transaction has it, the session has it at once.
            unsafe { pg_sys::LockRelationIdForSession(&mut id(lock.0), lock.1) };
            held.locks.push(lock);
        }
    });
}

/// Gives back what is locked beyond the transaction. Called before a worker sleeps.
pub fn let_go() {
    for (relation, mode) in HELD.take().into_iter().flat_map(|held| held.locks) {
        // SAFETY: locked by `hold_too`, and for the session by nothing else.
        unsafe { pg_sys::UnlockRelationIdForSession(&mut id(relation), mode) };
    }
}

/// At the end of the process, after its transaction was aborted: PostgreSQL gives session locks back with an abort, so what a process
/// keeps that ends between two transactions would stay locked for good.
pub fn give_all_back() {
    // SAFETY: nothing of this process needs a lock any more, and none is being taken.
    unsafe { pg_sys::LockReleaseAll(pg_sys::DEFAULT_LOCKMETHOD as pg_sys::LOCKMETHODID, true) };
}

/// An abort has given all of it back.
pub fn forget() {
    HELD.set(None);
}

/// A relation of this database.
fn id(relation: pg_sys::Oid) -> pg_sys::LockRelId {
    pg_sys::LockRelId { relId: relation, dbId: catalog::database() }
}
