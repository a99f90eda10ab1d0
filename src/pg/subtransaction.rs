//! Pieces of a client's transaction: one that is always undone, and one that is undone where it writes what is there already.
//!
//! Invariant: when [`undone`] returns, nothing of the body is left but what it returned, which must not lie in PostgreSQL's memory of the
//! subtransaction. What the client had before, cursors and settings too, is as it was.
//! Does not: undo sequences, or anything outside the database.

use super::catch::Failure;
use super::sqlstate;
use pgrx::pg_sys;
use pgrx::pg_sys::panic::CaughtError;
use pgrx::prelude::{PgSqlErrorCode, PgTryBuilder};
use std::panic::AssertUnwindSafe;

/// Runs a body in a subtransaction and rolls that back. An ERROR of the body is returned.
pub fn undone<R>(body: impl FnOnce() -> R) -> Result<R, Failure> {
    // SAFETY: a transaction is open. As plpgsql does it for an exception block: memory and resources are the caller's again afterwards.
    unsafe {
        let (memory, resources) = (pg_sys::CurrentMemoryContext, pg_sys::CurrentResourceOwner);
        pg_sys::BeginInternalSubTransaction(std::ptr::null());
        pg_sys::MemoryContextSwitchTo(memory);
        let result = PgTryBuilder::new(AssertUnwindSafe(|| Ok(body())))
            .catch_others(|cause| Err(failure(&cause)))
            .catch_rust_panic(|cause| Err(failure(&cause)))
            .execute();
        pg_sys::MemoryContextSwitchTo(memory);
        pg_sys::RollbackAndReleaseCurrentSubTransaction();
        pg_sys::MemoryContextSwitchTo(memory);
        pg_sys::CurrentResourceOwner = resources;
        result
    }
}

/// Runs a body in a subtransaction, and keeps what it has done. `None`, and all of it undone, if something was there already that
/// must be there once only. Any other ERROR is passed on.
pub fn unless_duplicate(body: impl FnOnce()) -> Option<()> {
    // SAFETY: as above.
    unsafe {
        let (memory, resources) = (pg_sys::CurrentMemoryContext, pg_sys::CurrentResourceOwner);
        pg_sys::BeginInternalSubTransaction(std::ptr::null());
        pg_sys::MemoryContextSwitchTo(memory);
        let done = PgTryBuilder::new(AssertUnwindSafe(|| {
            body();
            Ok(())
        }))
        .catch_when(PgSqlErrorCode::ERRCODE_UNIQUE_VIOLATION, |_| Err(None))
        .catch_others(|cause| Err(Some(cause)))
        .catch_rust_panic(|cause| Err(Some(cause)))
        .execute();
        pg_sys::MemoryContextSwitchTo(memory);
        match done {
            Ok(()) => pg_sys::ReleaseCurrentSubTransaction(),
            Err(_) => pg_sys::RollbackAndReleaseCurrentSubTransaction(),
        }
        pg_sys::MemoryContextSwitchTo(memory);
        pg_sys::CurrentResourceOwner = resources;
        // Only now: a subtransaction that is left open would keep the client's session in an aborted transaction.
        match done {
            Ok(()) => Some(()),
            Err(None) => None,
            Err(Some(cause)) => cause.rethrow(),
        }
    }
}

/// Does this transaction see nothing that others have committed since it began?
pub fn has_one_snapshot() -> bool {
    // SAFETY: a getter.
    unsafe { pg_sys::XactIsoLevel >= pg_sys::XACT_REPEATABLE_READ as i32 }
}

fn failure(cause: &CaughtError) -> Failure {
    let (CaughtError::PostgresError(report)
    | CaughtError::ErrorReport(report)
    | CaughtError::RustPanic { ereport: report, .. }) = cause;
    let (sqlstate, message) = (sqlstate::text(report.sql_error_code() as i32), report.message().to_owned());
    Failure { sqlstate, message, context: String::new() }
}
