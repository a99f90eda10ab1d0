use pgrx::pg_sys;

pub fn with_new<R>(body: impl FnOnce() -> R) -> R {
    // SAFETY: a transaction is open, and the code below or an abort pops the snapshot.
    unsafe {
        pg_sys::CommandCounterIncrement();
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
    }
    let result = body();
    // SAFETY: the snapshot that was pushed above is on top.
    unsafe { pg_sys::PopActiveSnapshot() };
    result
}
