//! Locks a table. Also locks the partitions of a partitioned table, as commands about triggers do.

use super::partition;
use pgrx::pg_sys;

/// Takes the same lock as SELECT, but no lock on partitions.
pub fn against_changes(table: pg_sys::Oid) {
    // SAFETY: a transaction is open, and the OID need not exist.
    unsafe { pg_sys::LockRelationOid(table, pg_sys::AccessShareLock as pg_sys::LOCKMODE) };
}

/// Takes the same locks as CREATE TRIGGER.
pub fn against_writes(table: pg_sys::Oid) {
    lock(table, pg_sys::ShareRowExclusiveLock as pg_sys::LOCKMODE);
}

/// Takes the same locks as DROP TRIGGER.
pub fn exclusively(table: pg_sys::Oid) {
    lock(table, pg_sys::AccessExclusiveLock as pg_sys::LOCKMODE);
}

fn lock(table: pg_sys::Oid, mode: pg_sys::LOCKMODE) {
    // SAFETY: a transaction is open, and the OID need not exist.
    let kind = unsafe {
        pg_sys::LockRelationOid(table, mode);
        pg_sys::get_rel_relkind(table)
    };
    if kind as u8 == pg_sys::RELKIND_PARTITIONED_TABLE {
        partition::below(table, mode);
    }
}
