//! A snapshot of its own for a piece of a client's statement, which sees what the statement has done so far.
//!
//! Does not: outlive the piece.

use pgrx::pg_sys;

/// Runs a body with a new snapshot on top, which the body may exchange for another one.
pub fn with_new<R>(body: impl FnOnce() -> R) -> R {
    // SAFETY: a transaction is open. What is pushed is popped below, or by the abort of the (sub)transaction.
    unsafe {
        pg_sys::CommandCounterIncrement();
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
    }
    let result = body();
    // SAFETY: as above.
    unsafe { pg_sys::PopActiveSnapshot() };
    result
}
