use pgrx::pg_sys;

/// Safe to call in a signal handler.
pub fn is_waiting() -> bool {
    // SAFETY: `MyProc` is null or this process's entry in shared memory.
    unsafe { is_in_wait(pg_sys::MyProc) }
}

pub fn is_process_waiting(pid: i32) -> bool {
    // SAFETY: the entry stays in shared memory after its process ends.
    unsafe { is_in_wait(pg_sys::BackendPidGetProc(pid)) }
}

unsafe fn is_in_wait(process: *const pg_sys::PGPROC) -> bool {
    // SAFETY: a `process` that is not null is an entry in shared memory.
    !process.is_null()
        && unsafe { (&raw const (*process).syncRepState).read_volatile() } == pg_sys::SYNC_REP_WAITING as i32
}
