use pgrx::pg_sys;

/// Takes the lock that CREATE TRIGGER takes.
pub fn against_writes(table: pg_sys::Oid) {
    // SAFETY: a lock on an OID, which need not exist. A transaction is open.
    unsafe { pg_sys::LockRelationOid(table, pg_sys::ShareRowExclusiveLock as pg_sys::LOCKMODE) };
}

/// Takes the lock that DROP TRIGGER takes.
pub fn exclusively(table: pg_sys::Oid) {
    // SAFETY: as above.
    unsafe { pg_sys::LockRelationOid(table, pg_sys::AccessExclusiveLock as pg_sys::LOCKMODE) };
}
