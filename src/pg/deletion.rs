//! Drops functions and triggers by OID, as DROP does after it has looked up their names.

use pgrx::pg_sys;

/// Takes the same lock as DROP FUNCTION.
pub fn lock_function(oid: pg_sys::Oid) {
    // SAFETY: a transaction is open, and the OID need not exist.
    unsafe {
        let mode = pg_sys::AccessExclusiveLock as pg_sys::LOCKMODE;
        pg_sys::LockDatabaseObject(pg_sys::ProcedureRelationId, oid, 0, mode);
    }
}

/// Does what ALTER EXTENSION … DROP FUNCTION does. PostgreSQL drops a member of an extension only with the extension.
pub fn leave_extension(function: pg_sys::Oid) {
    stay_without(function, pg_sys::ExtensionRelationId, pg_sys::DependencyType::DEPENDENCY_EXTENSION);
}

/// DROP TABLE no longer drops the function.
pub fn stay_without_table(function: pg_sys::Oid) {
    stay_without(function, pg_sys::RelationRelationId, pg_sys::DependencyType::DEPENDENCY_AUTO);
}

fn stay_without(function: pg_sys::Oid, class: pg_sys::Oid, kind: pg_sys::DependencyType::Type) {
    // SAFETY: a transaction is open, and the OID need not exist.
    unsafe {
        let kind = kind as std::ffi::c_char;
        pg_sys::deleteDependencyRecordsForClass(pg_sys::ProcedureRelationId, function, class, kind);
        pg_sys::CommandCounterIncrement();
    }
}

/// Raises an error if another object depends on the function.
pub fn drop_function(oid: pg_sys::Oid) {
    drop_object(pg_sys::ProcedureRelationId, oid);
}

/// Locks the trigger's table as DROP TRIGGER does. Drops the triggers of the partitions too.
pub fn drop_trigger(oid: pg_sys::Oid) {
    drop_object(pg_sys::TriggerRelationId, oid);
}

fn drop_object(class: pg_sys::Oid, oid: pg_sys::Oid) {
    let address = pg_sys::ObjectAddress { classId: class, objectId: oid, objectSubId: 0 };
    // SAFETY: a transaction is open, and the address is on the stack during the call.
    unsafe {
        pg_sys::performDeletion(&address, pg_sys::DropBehavior::DROP_RESTRICT, 0);
        pg_sys::CommandCounterIncrement();
    }
}
