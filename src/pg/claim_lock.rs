//! The lock that the claims of one job take one after the other, and the numbers of leases.
//!
//! The lock is PostgreSQL's own on an object of a database, of a class that no catalog is: the table of leases. So no SQL can take it, an idle
//! claim writes nothing, and it goes with the (sub)transaction.
//!
//! Does not: know what is claimed.

use pgrx::pg_sys;

/// The number that stands for a job. Two jobs may have the same: then their claims wait for each other.
pub fn number(job: &[u8]) -> u32 {
    job.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// Waits until no other transaction has the lock, and takes it until this one ends.
pub fn take(leases: pg_sys::Oid, number: u32) {
    // SAFETY: a lock in an open transaction. Taking it takes in what has changed in the catalogs.
    unsafe {
        pg_sys::LockDatabaseObject(leases, pg_sys::Oid::from(number), 0, pg_sys::ExclusiveLock as pg_sys::LOCKMODE);
    }
}

/// The number that stands for a target of a job. There are few of them, because each takes a place among the server's locks.
pub fn target_number(job: &[u8], target: &[u8]) -> u32 {
    number(&[job, b"\0", target].concat()) % 256
}

/// Takes the lock on what is known of a target, if no other transaction has it.
pub fn try_take(breakers: pg_sys::Oid, number: u32) -> bool {
    // SAFETY: as above; of another class, so that it is not the lock on a job's claims.
    unsafe {
        pg_sys::ConditionalLockDatabaseObject(
            breakers,
            pg_sys::Oid::from(number),
            0,
            pg_sys::ExclusiveLock as pg_sys::LOCKMODE,
        )
    }
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
