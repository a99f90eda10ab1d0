//! The locks that the claims of one job, and those who write of one target, take one after the other; and the numbers of leases.
//!
//! A lock is PostgreSQL's own on an object of a database, of a class that no catalog is: a table of awty's. So no SQL can take it, an idle
//! claim writes nothing, and it goes with the (sub)transaction.
//!
//! Does not: know what is claimed.

use awty_core::lease::lock::Number;
use pgrx::pg_sys;

const EXCLUSIVE: pg_sys::LOCKMODE = pg_sys::ExclusiveLock as pg_sys::LOCKMODE;

/// Waits until no other transaction has the lock, and takes it until this one ends.
pub fn take(class: pg_sys::Oid, (object, part): Number) {
    // SAFETY: a lock in an open transaction. Taking it takes in what has changed in the catalogs.
    unsafe { pg_sys::LockDatabaseObject(class, pg_sys::Oid::from(object), part, EXCLUSIVE) };
}

/// Takes the lock, if no other transaction has it.
pub fn try_take(class: pg_sys::Oid, (object, part): Number) -> bool {
    // SAFETY: as above.
    unsafe { pg_sys::ConditionalLockDatabaseObject(class, pg_sys::Oid::from(object), part, EXCLUSIVE) }
}

/// Has no other transaction the lock?
pub fn is_free(class: pg_sys::Oid, number @ (object, part): Number) -> bool {
    let is_free = try_take(class, number);
    if is_free {
        // SAFETY: it was taken above; where this transaction had it before, it keeps it.
        unsafe { pg_sys::UnlockDatabaseObject(class, pg_sys::Oid::from(object), part, EXCLUSIVE) };
    }
    is_free
}

/// A number that no other lease has, as far as chance goes: 53 bits, which every language has a number for.
pub fn lease_number() -> i64 {
    let mut bytes = [0_u8; 8];
    // SAFETY: as many bytes as it is told.
    if !unsafe { pg_sys::pg_strong_random(bytes.as_mut_ptr().cast(), bytes.len()) } {
        pgrx::error!("could not generate a random number");
    }
    (i64::from_ne_bytes(bytes) & ((1 << 53) - 1)).max(1)
}

/// Has the transaction's commit flushed, whatever `synchronous_commit` says.
pub fn flush_at_commit() {
    // SAFETY: sets a flag of the transaction.
    unsafe { pg_sys::ForceSyncCommit() };
}
