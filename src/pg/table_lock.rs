use pgrx::pg_sys;

/// Takes the same lock as SELECT.
pub fn against_changes(table: pg_sys::Oid) {
    // SAFETY: a transaction is open, and the OID need not exist.
    unsafe { pg_sys::LockRelationOid(table, pg_sys::AccessShareLock as pg_sys::LOCKMODE) };
}

/// Takes the same lock as CREATE TRIGGER.
pub fn against_writes(table: pg_sys::Oid) {
    // SAFETY: a transaction is open, and the OID need not exist.
    unsafe { pg_sys::LockRelationOid(table, pg_sys::ShareRowExclusiveLock as pg_sys::LOCKMODE) };
}

/// Takes the same lock as DROP TRIGGER.
pub fn exclusively(table: pg_sys::Oid) {
    // SAFETY: a transaction is open, and the OID need not exist.
    unsafe { pg_sys::LockRelationOid(table, pg_sys::AccessExclusiveLock as pg_sys::LOCKMODE) };
}
