use pgrx::pg_sys;

/// Safe to call in a signal handler.
pub fn is_waiting() -> bool {
    // SAFETY: MyProc is set before a transaction can run.
    unsafe { is_in_wait(pg_sys::MyProc) }
}

pub fn is_process_waiting(pid: i32) -> bool {
    // SAFETY: the entry stays in shared memory after its process ends. A stale value is harmless.
    unsafe { is_in_wait(pg_sys::BackendPidGetProc(pid)) }
}

/// # Safety
///
/// `process` is null or one of PostgreSQL's entries in shared memory.
unsafe fn is_in_wait(process: *const pg_sys::PGPROC) -> bool {
    // SAFETY: the caller guarantees the entry. Another process may write the field.
    !process.is_null()
        && unsafe { (&raw const (*process).syncRepState).read_volatile() } == pg_sys::SYNC_REP_WAITING as i32
}
