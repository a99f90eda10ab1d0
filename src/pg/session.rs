//! The session of a worker or maintainer: what it overrides when it has connected, and what it drops between runs.
//!
//! Invariant: no run finds anything of the one before it: no lock, cursor, prepared statement, temporary table or setting.
//! Does not: reset what a procedural language keeps in its interpreter; a process serves one role only.

use super::catch::Failure;
use super::transaction::{Verdict, transaction};
use super::unbound;
use crate::settings;
use pgrx::pg_sys;
use std::cell::Cell;
use std::ffi::CStr;

/// Sets for the session what a role's own settings must not decide.
///
/// A role may have given itself any of these with ALTER ROLE, and its checks would never run, or run as another role; or
/// the database's owner with ALTER DATABASE.
pub fn override_settings() {
    for (name, value) in [
        (c"role", c"none"),
        (c"default_transaction_read_only", c"off"),
        (c"default_transaction_isolation", c"read committed"),
        (c"default_transaction_deferrable", c"off"),
        (c"idle_in_transaction_session_timeout", c"0"),
        (c"statement_timeout", c"0"),
        // An error would end the process instead of the run.
        (c"exit_on_error", c"off"),
        #[cfg(any(feature = "pg17", feature = "pg18"))]
        (c"transaction_timeout", c"0"),
        // A parallel worker would escape the limits of the run.
        (c"max_parallel_workers_per_gather", c"0"),
    ] {
        set(name, value);
    }
}

/// Commits are flushed in batches, unless `awty.synchronous_commit` says otherwise: then each is as durable as the role,
/// the database and the server have it.
pub fn set_commit_mode() {
    set_or_reset(c"synchronous_commit", (!settings::synchronous_commit()).then_some(c"off"));
}

/// Runs a body whose commits are flushed here before they return, whatever standbys do, and with them all before.
pub fn flushed<R>(body: impl FnOnce() -> R) -> R {
    set(c"synchronous_commit", c"local");
    let result = body();
    set_commit_mode();
    result
}

/// Runs a body whose commits are flushed here before they return. With `awty.synchronous_commit`, they also wait for the standbys that
/// a client's commit waits for.
pub fn acknowledged<R>(body: impl FnOnce() -> R) -> R {
    // SAFETY: this process's own setting.
    let is_flushed = unsafe { pg_sys::synchronous_commit } != pg_sys::SyncCommitLevel::SYNCHRONOUS_COMMIT_OFF as i32;
    if settings::synchronous_commit() && is_flushed { body() } else { flushed(body) }
}

/// Sets for the session one of the settings that any user may set.
pub fn set(name: &CStr, value: &CStr) {
    set_or_reset(name, Some(value));
}

/// Without a value: what the session began with.
fn set_or_reset(name: &CStr, value: Option<&CStr>) {
    // SAFETY: constant names of settings that any user may set, and valid values.
    unsafe {
        pg_sys::SetConfigOption(
            name.as_ptr(),
            value.map_or(std::ptr::null(), CStr::as_ptr),
            pg_sys::GucContext::PGC_USERSET,
            pg_sys::GucSource::PGC_S_SESSION,
        );
    }
}

thread_local! {
    static IS_CLEAN: Cell<bool> = const { Cell::new(true) };
}

/// Drops what a run has left in the session, in a transaction of its own: what DISCARD ALL drops, but for settings, which the run's
/// transaction has undone, and LISTEN, which is refused. Dropping a temporary table writes to the catalogs, and may fail: see
/// [`is_clean`].
pub fn clean() {
    let done = transaction(|| {
        // SAFETY: in a transaction; each does nothing where there is nothing.
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
            "awty: what a run has left in its session could not be dropped, and is tried again: {message} ({sqlstate})"
        );
    }
    IS_CLEAN.set(done.is_ok());
}

/// Is nothing left of earlier runs? What could not be dropped after one is tried again here, before the next.
pub fn is_clean() -> bool {
    if !IS_CLEAN.get() {
        clean();
    }
    IS_CLEAN.get()
}
