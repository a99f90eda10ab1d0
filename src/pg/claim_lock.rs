//! Takes exclusive locks on the claims of a job, on the state of a target, or on the name of a job. Names have shared
//! locks too.
//!
//! Each lock is an object lock whose class is a table's OID, because no SQL command takes such a lock.

use awty_core::lease::lock::Number;
use pgrx::pg_sys;

const EXCLUSIVE: pg_sys::LOCKMODE = pg_sys::ExclusiveLock as pg_sys::LOCKMODE;
const SHARED: pg_sys::LOCKMODE = pg_sys::ShareLock as pg_sys::LOCKMODE;

pub fn take(class: pg_sys::Oid, (object, part): Number) {
    // SAFETY: a transaction is open, and its end releases the lock.
    unsafe { pg_sys::LockDatabaseObject(class, pg_sys::Oid::from(object), part, EXCLUSIVE) };
}

pub fn try_take(class: pg_sys::Oid, (object, part): Number) -> bool {
    // SAFETY: a transaction is open, and its end releases the lock.
    unsafe { pg_sys::ConditionalLockDatabaseObject(class, pg_sys::Oid::from(object), part, EXCLUSIVE) }
}

pub fn share(class: pg_sys::Oid, (object, part): Number) {
    // SAFETY: a transaction is open, and its end releases the lock.
    unsafe { pg_sys::LockDatabaseObject(class, pg_sys::Oid::from(object), part, SHARED) };
}

pub fn try_share(class: pg_sys::Oid, (object, part): Number) -> bool {
    // SAFETY: a transaction is open, and its end releases the lock.
    unsafe { pg_sys::ConditionalLockDatabaseObject(class, pg_sys::Oid::from(object), part, SHARED) }
}

/// Gives back a lock that the caller has just taken. A lock that was taken before as well stays.
pub fn give_back(class: pg_sys::Oid, number: Number) {
    unlock(class, number, EXCLUSIVE);
}

/// Like [`give_back`], for a shared lock.
pub fn stop_sharing(class: pg_sys::Oid, number: Number) {
    unlock(class, number, SHARED);
}

fn unlock(class: pg_sys::Oid, (object, part): Number, mode: pg_sys::LOCKMODE) {
    // SAFETY: the caller has the lock.
    unsafe { pg_sys::UnlockDatabaseObject(class, pg_sys::Oid::from(object), part, mode) };
}

pub fn is_free(class: pg_sys::Oid, number: Number) -> bool {
    let is_free = try_take(class, number);
    if is_free {
        give_back(class, number);
    }
    is_free
}

/// Makes COMMIT wait until the WAL is flushed, even with `synchronous_commit = off`.
pub fn flush_at_commit() {
    // SAFETY: the call only sets a flag of the open transaction.
    unsafe { pg_sys::ForceSyncCommit() };
}
