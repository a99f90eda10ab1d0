//! Invariant: when [`transaction`] returns, no transaction is open. After a failure, all changes are rolled back.

use super::session_locks;
use crate::pg::catch::{Failure, catch};
use crate::pg::{citus, sqlstate, unbound};
use pgrx::pg_sys;
use pgrx::pg_sys::panic::CaughtError;
use pgrx::prelude::PgTryBuilder;
use std::panic::AssertUnwindSafe;

pub enum Verdict<R> {
    Commit(R),
    Rollback(R),
}

/// Calls `body` in a transaction block, because without a block, Citus commits on other nodes after each statement.
pub fn transaction<R>(body: impl FnOnce() -> Verdict<R>) -> Result<R, Failure> {
    begin_and_end(true, body)
}

pub fn transaction_for_vacuum<R>(body: impl FnOnce() -> Verdict<R>) -> Result<R, Failure> {
    begin_and_end(false, body)
}

fn begin_and_end<R>(is_block: bool, body: impl FnOnce() -> Verdict<R>) -> Result<R, Failure> {
    PgTryBuilder::new(AssertUnwindSafe(|| {
        // SAFETY: no transaction is open, so a new one can start.
        unsafe {
            pg_sys::SetCurrentStatementStartTimestamp();
            pg_sys::StartTransactionCommand();
            if is_block {
                pg_sys::BeginTransactionBlock();
                pg_sys::CommitTransactionCommand();
            }
            pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        }
        match body() {
            Verdict::Commit(result) => {
                // SAFETY: `body` has popped its own snapshots, so the snapshot that was pushed above is on top of the
                // stack.
                unsafe { pg_sys::PopActiveSnapshot() };
                commit(is_block).map(|()| result)
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

fn commit(is_block: bool) -> Result<(), Failure> {
    citus::before_commit();
    // SAFETY: a transaction is open, and an ERROR in the closure skips no Rust destructor.
    unsafe {
        if is_block {
            pg_sys::EndTransactionBlock(false);
        }
        catch(|| unbound::commit_transaction_command())
    }
    .inspect_err(|_| roll_back())
}

fn roll_back() {
    // SAFETY: AbortOutOfAnyTransaction() is allowed after an error, and does nothing if no transaction is open.
    unsafe { pg_sys::AbortOutOfAnyTransaction() };
    session_locks::forget();
}

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
