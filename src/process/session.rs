//! Invariant: a run finds no lock, cursor, prepared statement, temporary table or setting of an earlier run.

use super::transaction::{Verdict, transaction};
use crate::pg::catch::Failure;
use crate::pg::unbound;
use pgrx::pg_sys;
use std::cell::Cell;

thread_local! {
    static IS_CLEAN: Cell<bool> = const { Cell::new(true) };
}

/// Like DISCARD ALL, but keeps settings and ignores LISTEN. The end of the transaction has restored the settings, and
/// awty refuses LISTEN.
pub fn clean() {
    if !has_temporary_schema() {
        // SAFETY: outside of a transaction, no portal, prepared statement or lock belongs to one.
        unsafe { drop_all() };
        IS_CLEAN.set(true);
        return;
    }
    let done = transaction(|| {
        // SAFETY: each call does nothing if there is nothing to drop.
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
    // SAFETY: a getter.
    unsafe { pg_sys::GetTempNamespaceState(&mut schema, &mut toast) };
    schema != pg_sys::InvalidOid
}

/// # Safety
///
/// No portal is active.
unsafe fn drop_all() {
    // SAFETY: guaranteed by the caller. A portal that has survived its transaction holds none of its resources.
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
