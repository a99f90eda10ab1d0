use pgrx::pg_sys;

/// CREATE TRIGGER takes this lock.
pub fn against_writes(table: pg_sys::Oid) {
    // SAFETY: a lock on an OID, which need not exist. A transaction is open.
    unsafe { pg_sys::LockRelationOid(table, pg_sys::ShareRowExclusiveLock as pg_sys::LOCKMODE) };
}

/// DROP TRIGGER takes this lock.
pub fn exclusively(table: pg_sys::Oid) {
    // SAFETY: as above.
    unsafe { pg_sys::LockRelationOid(table, pg_sys::AccessExclusiveLock as pg_sys::LOCKMODE) };
}
