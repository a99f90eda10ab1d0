use pgrx::pg_sys;

pub fn with_new<R>(body: impl FnOnce() -> R) -> R {
    // SAFETY: in a transaction; the snapshot is popped below, or by the abort.
    unsafe {
        pg_sys::CommandCounterIncrement();
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
    }
    let result = body();
    // SAFETY: as above.
    unsafe { pg_sys::PopActiveSnapshot() };
    result
}
