//! One transaction of a background process, with every way it can end.
//!
//! Invariant: when [`transaction`] returns, no transaction is open and nothing of a failed one is left, whatever the body
//! did; a FATAL (being terminated) does not return at all.
//! Does not: retry.

use super::catch::{Failure, catch};
use super::{session_locks, sqlstate, unbound};
use pgrx::pg_sys;
use pgrx::pg_sys::panic::CaughtError;
use pgrx::prelude::PgTryBuilder;
use std::panic::AssertUnwindSafe;

/// What the body wants to become of its transaction.
pub enum Verdict<R> {
    Commit(R),
    /// Undo everything, as if it had never begun.
    Rollback(R),
}

/// Runs a body in a transaction of its own.
pub fn transaction<R>(body: impl FnOnce() -> Verdict<R>) -> Result<R, Failure> {
    PgTryBuilder::new(AssertUnwindSafe(|| {
        // SAFETY: no transaction is open, and the body leaves the snapshot that is pushed here on top.
        unsafe {
            pg_sys::SetCurrentStatementStartTimestamp();
            pg_sys::StartTransactionCommand();
            pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        }
        match body() {
            Verdict::Commit(result) => {
                // SAFETY: as above.
                unsafe { pg_sys::PopActiveSnapshot() };
                commit().map(|()| result)
            }
            Verdict::Rollback(result) => {
                roll_back();
                Ok(result)
            }
        }
    }))
    .catch_others(|cause| Err(abort(cause)))
    .catch_rust_panic(|cause| Err(abort(cause)))
    .execute()
}

fn commit() -> Result<(), Failure> {
    // SAFETY: a transaction is open, and the closure does nothing else.
    unsafe { catch(|| unbound::commit_transaction_command()) }.inspect_err(|_| roll_back())
}

/// Undoes the transaction, and with it the locks that were to outlast it: PostgreSQL's do not survive an abort.
fn roll_back() {
    // SAFETY: aborting is what has to be done after an error, and does nothing where there is no transaction.
    unsafe { pg_sys::AbortCurrentTransaction() };
    session_locks::forget();
}

/// Undoes the transaction and says what went wrong.
fn abort(cause: CaughtError) -> Failure {
    roll_back();
    let (CaughtError::PostgresError(report)
    | CaughtError::ErrorReport(report)
    | CaughtError::RustPanic { ereport: report, .. }) = &cause;
    Failure {
        sqlstate: sqlstate::text(report.sql_error_code() as i32),
        message: report.message().to_owned(),
        context: String::new(),
    }
}
