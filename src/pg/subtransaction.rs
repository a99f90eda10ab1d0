//! Invariant: [`undone`] leaves the client's state unchanged, including cursors and settings.
//!
//! A closure's result must not point into the subtransaction's memory, because the end of the subtransaction frees this
//! memory.

use super::catch::Failure;
use super::sqlstate;
use pgrx::pg_sys;
use pgrx::pg_sys::panic::{CaughtError, ErrorReportWithLevel};
use pgrx::prelude::{PgSqlErrorCode, PgTryBuilder};
use std::panic::AssertUnwindSafe;

pub fn number() -> (u32, u32) {
    // SAFETY: every session has its entry `MyProc`, which is only read.
    unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        let transaction = (*pg_sys::MyProc).lxid;
        #[cfg(not(any(feature = "pg15", feature = "pg16")))]
        let transaction = (*pg_sys::MyProc).vxid.lxid;
        (transaction, pg_sys::GetCurrentSubTransactionId())
    }
}

pub fn undone<R>(body: impl FnOnce() -> R) -> Result<R, Failure> {
    within(|_| false, body).map_err(|cause| failure(&cause))
}

pub fn undone_or_raised<R>(body: impl FnOnce() -> R) -> R {
    within(|_| false, body).unwrap_or_else(|cause| cause.rethrow())
}

pub fn kept<R>(body: impl FnOnce() -> Result<Option<R>, Failure>) -> Result<Option<R>, Failure> {
    within(|result| matches!(result, Ok(Some(_))), body).map_err(|cause| failure(&cause))?
}

pub fn kept_whole<R>(body: impl FnOnce() -> R) -> Result<R, Caught> {
    within(|_| true, body).map_err(Caught)
}

pub fn kept_if_ok<R, E>(body: impl FnOnce() -> Result<R, E>) -> Result<R, E> {
    within(Result::is_ok, body).unwrap_or_else(|cause| cause.rethrow())
}

pub struct Caught(CaughtError);

impl Caught {
    pub fn failure(&self) -> Failure {
        failure(&self.0)
    }

    pub fn rethrow(self) -> ! {
        self.0.rethrow()
    }
}

pub fn unless_duplicate(body: impl FnOnce()) -> Option<()> {
    unless(PgSqlErrorCode::ERRCODE_UNIQUE_VIOLATION, body)
}

/// Returns `None` if `body` waits for a lock for longer than `lock_timeout`.
pub fn unless_locked(body: impl FnOnce()) -> Option<()> {
    unless(PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE, body)
}

fn unless(refusal: PgSqlErrorCode, body: impl FnOnce()) -> Option<()> {
    match within(|()| true, body) {
        Ok(()) => Some(()),
        Err(cause) if report(&cause).sql_error_code() == refusal => None,
        Err(cause) => cause.rethrow(),
    }
}

/// Always ends the subtransaction, because an open subtransaction would abort the client's transaction.
fn within<R>(is_kept: impl FnOnce(&R) -> bool, body: impl FnOnce() -> R) -> Result<R, CaughtError> {
    // SAFETY: the memory context and the resource owner are restored, as PL/pgSQL does.
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

/// Returns whether the transaction cannot see later commits of other transactions.
pub fn has_one_snapshot() -> bool {
    // SAFETY: no other thread uses this variable.
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
