//! Pieces of a client's transaction: one that is always undone, and one that is undone where it writes what is there already.
//!
//! Invariant: when [`undone`] returns, nothing of the body is left but what it returned, which must not lie in PostgreSQL's memory of the
//! subtransaction. What the client had before, cursors and settings too, is as it was.
//! Does not: undo sequences, or anything outside the database.

use super::catch::Failure;
use super::sqlstate;
use pgrx::pg_sys;
use pgrx::pg_sys::panic::{CaughtError, ErrorReportWithLevel};
use pgrx::prelude::{PgSqlErrorCode, PgTryBuilder};
use std::panic::AssertUnwindSafe;

/// The number of the transaction in this session, and of the subtransaction in that.
pub fn number() -> (u32, u32) {
    // SAFETY: getters; a session has its entry.
    unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        let transaction = (*pg_sys::MyProc).lxid;
        #[cfg(not(any(feature = "pg15", feature = "pg16")))]
        let transaction = (*pg_sys::MyProc).vxid.lxid;
        (transaction, pg_sys::GetCurrentSubTransactionId())
    }
}

/// Runs a body in a subtransaction and rolls that back. An ERROR of the body is returned.
pub fn undone<R>(body: impl FnOnce() -> R) -> Result<R, Failure> {
    within(|_| false, body).map_err(|cause| failure(&cause))
}

/// Runs a body in a subtransaction, which is undone if the body fails, or says `false`. An ERROR of the body is returned.
pub fn kept(body: impl FnOnce() -> Result<bool, Failure>) -> Result<bool, Failure> {
    within(|result| matches!(result, Ok(true)), body).map_err(|cause| failure(&cause))?
}

/// Runs a body in a subtransaction, and keeps what it has done; after an ERROR of the body, which is returned, nothing of it.
pub fn kept_whole<R>(body: impl FnOnce() -> R) -> Result<R, Caught> {
    within(|_| true, body).map_err(Caught)
}

/// An ERROR that was caught.
pub struct Caught(CaughtError);

impl Caught {
    /// What it says.
    pub fn failure(&self) -> Failure {
        failure(&self.0)
    }

    /// Raises it again.
    pub fn rethrow(self) -> ! {
        self.0.rethrow()
    }
}

/// Runs a body in a subtransaction, and keeps what it has done. `None`, and all of it undone, if something was there already that
/// must be there once only. Any other ERROR is passed on.
pub fn unless_duplicate(body: impl FnOnce()) -> Option<()> {
    match within(|()| true, body) {
        Ok(()) => Some(()),
        Err(cause) if report(&cause).sql_error_code() == PgSqlErrorCode::ERRCODE_UNIQUE_VIOLATION => None,
        Err(cause) => cause.rethrow(),
    }
}

/// Runs a body in a subtransaction, which is undone after an ERROR, and also without one unless it `is_kept`. The subtransaction has ended
/// when this returns: one that is left open would keep the client's session in an aborted transaction.
fn within<R>(is_kept: impl FnOnce(&R) -> bool, body: impl FnOnce() -> R) -> Result<R, CaughtError> {
    // SAFETY: a transaction is open. As plpgsql does it for an exception block: memory and resources are the caller's again afterwards.
    unsafe {
        let (memory, resources) = (pg_sys::CurrentMemoryContext, pg_sys::CurrentResourceOwner);
        pg_sys::BeginInternalSubTransaction(std::ptr::null());
        pg_sys::MemoryContextSwitchTo(memory);
        let result =
            PgTryBuilder::new(AssertUnwindSafe(|| Ok(body()))).catch_others(Err).catch_rust_panic(Err).execute();
        pg_sys::MemoryContextSwitchTo(memory);
        if result.as_ref().is_ok_and(is_kept) {
            pg_sys::ReleaseCurrentSubTransaction();
        } else {
            pg_sys::RollbackAndReleaseCurrentSubTransaction();
        }
        pg_sys::MemoryContextSwitchTo(memory);
        pg_sys::CurrentResourceOwner = resources;
        result
    }
}

/// Does this transaction see nothing that others have committed since it began?
pub fn has_one_snapshot() -> bool {
    // SAFETY: a getter.
    unsafe { pg_sys::XactIsoLevel >= pg_sys::XACT_REPEATABLE_READ as i32 }
}

fn report(cause: &CaughtError) -> &ErrorReportWithLevel {
    match cause {
        CaughtError::PostgresError(report)
        | CaughtError::ErrorReport(report)
        | CaughtError::RustPanic { ereport: report, .. } => report,
    }
}

fn failure(cause: &CaughtError) -> Failure {
    let report = report(cause);
    let (sqlstate, message) = (sqlstate::text(report.sql_error_code() as i32), report.message().to_owned());
    Failure { sqlstate, message, context: String::new() }
}
