use pgrx::pg_sys;

pub fn with_new<R>(body: impl FnOnce() -> R) -> R {
    // SAFETY: in a transaction. The code below, or the abort, pops the snapshot.
    unsafe {
        pg_sys::CommandCounterIncrement();
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
    }
    let result = body();
    // SAFETY: as above.
    unsafe { pg_sys::PopActiveSnapshot() };
    result
}
