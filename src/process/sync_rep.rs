use pgrx::pg_sys;

/// May be called by a signal handler.
pub fn is_waiting() -> bool {
    // SAFETY: MyProc is set before the process can run a transaction. Only this process and the process that ends its
    // wait write the field.
    unsafe { is_in_wait(pg_sys::MyProc) }
}

pub fn is_process_waiting(pid: i32) -> bool {
    // SAFETY: a process's entry stays in shared memory after the process ends, so it can be read. A stale value is
    // harmless.
    unsafe { is_in_wait(pg_sys::BackendPidGetProc(pid)) }
}

/// # Safety
///
/// `process` is null or one of PostgreSQL's entries in shared memory.
unsafe fn is_in_wait(process: *const pg_sys::PGPROC) -> bool {
    // SAFETY: as above. Volatile, because another process writes the field.
    !process.is_null()
        && unsafe { (&raw const (*process).syncRepState).read_volatile() } == pg_sys::SYNC_REP_WAITING as i32
}
