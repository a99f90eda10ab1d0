//! One transaction of a background process, with every way it can end.
//!
//! Invariant: when [`transaction`] returns, no transaction is open and nothing of a failed one is left, whatever the body
//! did; a FATAL (being terminated) does not return at all.
//! Does not: retry.

use super::commit::commit;
use super::memory;
use crate::error::state;
use crate::extension;
use crate::store::history::Failure;
use pgrx::pg_sys;
use pgrx::pg_sys::panic::CaughtError;
use pgrx::prelude::PgTryBuilder;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicI32, Ordering};

/// What the body wants to become of its transaction.
pub enum Verdict<R> {
    Commit(R),
    /// Undo everything, as if it had never begun.
    Rollback(R),
}

/// SQLSTATE of the last message that PostgreSQL made, in its own encoding. pgrx knows the standard ones only, and a job
/// may raise any.
static LAST_CODE: AtomicI32 = AtomicI32::new(0);

/// Runs a body in a transaction of its own.
pub fn transaction<R>(body: impl FnOnce() -> Verdict<R>) -> Result<R, Failure> {
    let mut watch = pg_sys::ErrorContextCallback {
        // SAFETY: the top of this process's stack of callbacks.
        previous: unsafe { pg_sys::error_context_stack },
        callback: Some(note_code),
        arg: std::ptr::null_mut(),
    };
    let previous = watch.previous;
    // SAFETY: `watch` lives until the stack is restored below, on both ways out.
    unsafe { pg_sys::error_context_stack = &mut watch };
    let result = PgTryBuilder::new(AssertUnwindSafe(|| {
        // SAFETY: no transaction is open, and the body leaves the snapshot that is pushed here on top.
        unsafe {
            pg_sys::SetCurrentStatementStartTimestamp();
            pg_sys::StartTransactionCommand();
            pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        }
        let verdict = body();
        // SAFETY: as above.
        unsafe {
            match verdict {
                Verdict::Commit(result) => {
                    pg_sys::PopActiveSnapshot();
                    commit();
                    Ok(result)
                }
                Verdict::Rollback(result) => {
                    roll_back();
                    Ok(result)
                }
            }
        }
    }))
    .catch_others(|cause| Err(abort(cause)))
    .catch_rust_panic(|cause| Err(abort(cause)))
    .execute();
    // SAFETY: what was there before.
    unsafe { pg_sys::error_context_stack = previous };
    result
}

/// Undoes the transaction, and with it the locks that were to outlast it: PostgreSQL's do not survive an abort.
fn roll_back() {
    // SAFETY: aborting is what has to be done after an error, and does nothing where there is no transaction.
    unsafe { pg_sys::AbortCurrentTransaction() };
    extension::forget();
}

/// Undoes the transaction and says what went wrong.
fn abort(cause: CaughtError) -> Failure {
    memory::lift();
    roll_back();
    let (code, message) = match &cause {
        CaughtError::PostgresError(report) => {
            let noted = LAST_CODE.load(Ordering::Relaxed);
            let known = report.sql_error_code() as i32;
            (if noted != 0 { noted } else { known }, report.message().to_owned())
        }
        CaughtError::ErrorReport(report) => (report.sql_error_code() as i32, report.message().to_owned()),
        CaughtError::RustPanic { ereport, .. } => (ereport.sql_error_code() as i32, ereport.message().to_owned()),
    };
    Failure { sqlstate: sqlstate(code), message }
}

/// Notes the SQLSTATE of the message that is being made.
///
/// # Safety
/// Called by PostgreSQL only, while it makes one.
unsafe extern "C-unwind" fn note_code(_argument: *mut std::ffi::c_void) {
    // SAFETY: this is the one place in which PostgreSQL lets it be asked.
    let code = unsafe { pg_sys::geterrcode() };
    LAST_CODE.store(code, Ordering::Relaxed);
    if !state::is_no_error(code) {
        memory::reserve_for_error();
    }
}

/// An SQLSTATE as five characters. An error that calls itself a success is archived as a plain exception.
fn sqlstate(code: i32) -> String {
    let text: String =
        (0..5).map(|place| char::from((((code >> (6 * place)) & 0x3f) as u8).wrapping_add(b'0'))).collect();
    if text == "00000" { state::RAISE_EXCEPTION.into() } else { text }
}
