//! Invariant: a run finds no lock, cursor, prepared statement, temporary table or setting of an earlier run.

use super::transaction::{Verdict, transaction};
use crate::pg::catch::Failure;
use crate::pg::unbound;
use pgrx::pg_sys;
use std::cell::Cell;

thread_local! {
    static IS_CLEAN: Cell<bool> = const { Cell::new(true) };
}

/// Does what DISCARD ALL does, except for settings, which the transaction has undone, and LISTEN, which awty refuses.
pub fn clean() {
    let done = transaction(|| {
        // SAFETY: each call does nothing if there is nothing to drop.
        unsafe {
            pg_sys::PortalHashTableDeleteAll();
            pg_sys::DropAllPreparedStatements();
            pg_sys::LockReleaseAll(pg_sys::USER_LOCKMETHOD as pg_sys::LOCKMETHODID, true);
            pg_sys::ResetTempTableNamespace();
        }
        unbound::reset_sequence_caches();
        Verdict::Commit(())
    });
    if let Err(Failure { sqlstate, message, .. }) = &done {
        pgrx::log!(
            "awty: a worker could not clean its session after a run, and will try again: {message} ({sqlstate})"
        );
    }
    IS_CLEAN.set(done.is_ok());
}

pub fn is_clean() -> bool {
    if !IS_CLEAN.get() {
        clean();
    }
    IS_CLEAN.get()
}
