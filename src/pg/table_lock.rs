//! The locks under which triggers are put on a table and taken away.
//!
//! Does not: check who may take it.

use pgrx::pg_sys;

/// Keeps writers out of a table until the transaction ends, as CREATE TRIGGER does. Readers go on.
pub fn against_writes(table: pg_sys::Oid) {
    // SAFETY: a lock on an OID, whether or not anything has it, in an open transaction.
    unsafe { pg_sys::LockRelationOid(table, pg_sys::ShareRowExclusiveLock as pg_sys::LOCKMODE) };
}

/// Keeps writers and readers out of a table until the transaction ends, as DROP TRIGGER does.
pub fn exclusively(table: pg_sys::Oid) {
    // SAFETY: as above.
    unsafe { pg_sys::LockRelationOid(table, pg_sys::AccessExclusiveLock as pg_sys::LOCKMODE) };
}
