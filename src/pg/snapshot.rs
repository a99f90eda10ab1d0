//! Takes a new snapshot within a client's statement, so that awty sees the rows that the statement has already written.

use pgrx::pg_sys;

pub fn with_new<R>(body: impl FnOnce() -> R) -> R {
    // SAFETY: a transaction is open. The snapshot is popped below, or by the abort of the (sub)transaction.
    unsafe {
        pg_sys::CommandCounterIncrement();
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
    }
    let result = body();
    // SAFETY: as above.
    unsafe { pg_sys::PopActiveSnapshot() };
    result
}
