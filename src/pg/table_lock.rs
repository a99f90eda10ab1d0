use pgrx::pg_sys;

/// As CREATE TRIGGER does.
pub fn against_writes(table: pg_sys::Oid) {
    // SAFETY: a lock on an OID, which need not exist, in an open transaction.
    unsafe { pg_sys::LockRelationOid(table, pg_sys::ShareRowExclusiveLock as pg_sys::LOCKMODE) };
}

/// As DROP TRIGGER does.
pub fn exclusively(table: pg_sys::Oid) {
    // SAFETY: as above.
    unsafe { pg_sys::LockRelationOid(table, pg_sys::AccessExclusiveLock as pg_sys::LOCKMODE) };
}
