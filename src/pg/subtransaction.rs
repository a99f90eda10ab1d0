//! A piece of a client's transaction that is always undone.
//!
//! Invariant: when [`undone`] returns, nothing of the body is left but what it returned, which must not lie in PostgreSQL's memory of the
//! subtransaction. What the client had before, cursors and settings too, is as it was.
//! Does not: undo sequences, or anything outside the database.

use super::catch::Failure;
use super::sqlstate;
use pgrx::pg_sys;
use pgrx::pg_sys::panic::CaughtError;
use pgrx::prelude::PgTryBuilder;
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

fn failure(cause: &CaughtError) -> Failure {
    let (CaughtError::PostgresError(report)
    | CaughtError::ErrorReport(report)
    | CaughtError::RustPanic { ereport: report, .. }) = cause;
    let (sqlstate, message) = (sqlstate::text(report.sql_error_code() as i32), report.message().to_owned());
    Failure { sqlstate, message, context: String::new() }
}
