//! Invariant: a run finds no lock, cursor, prepared statement, temporary table or setting of an earlier run.

use super::transaction::{Verdict, transaction};
use crate::pg::catch::Failure;
use crate::pg::unbound;
use pgrx::pg_sys;
use std::cell::Cell;

thread_local! {
    static IS_CLEAN: Cell<bool> = const { Cell::new(true) };
}

/// Resets the session like DISCARD ALL. Skips settings, which the transaction's end has already restored, and LISTEN,
/// which awty refuses.
pub fn clean() {
    if !has_temporary_schema() {
        // SAFETY: no transaction is open, so no portal is active.
        unsafe { drop_all() };
        IS_CLEAN.set(true);
        return;
    }
    let done = transaction(|| {
        // SAFETY: a transaction is open, and no portal is active.
        unsafe {
            drop_all();
            pg_sys::ResetTempTableNamespace();
        }
        Verdict::Commit(())
    });
    if let Err(Failure { sqlstate, message, .. }) = &done {
        pgrx::log!(
            "awty: a worker could not clean its session after a run, and will try again: {message} ({sqlstate})"
        );
    }
    IS_CLEAN.set(done.is_ok());
}

fn has_temporary_schema() -> bool {
    let (mut schema, mut toast) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
    // SAFETY: the function only writes into `schema` and `toast`.
    unsafe { pg_sys::GetTempNamespaceState(&mut schema, &mut toast) };
    schema != pg_sys::InvalidOid
}

unsafe fn drop_all() {
    // SAFETY: no portal is active or holds resources of a transaction.
    unsafe {
        pg_sys::PortalHashTableDeleteAll();
        pg_sys::DropAllPreparedStatements();
        pg_sys::LockReleaseAll(pg_sys::USER_LOCKMETHOD as pg_sys::LOCKMETHODID, true);
    }
    unbound::reset_sequence_caches();
}

pub fn is_clean() -> bool {
    if !IS_CLEAN.get() {
        clean();
    }
    IS_CLEAN.get()
}
