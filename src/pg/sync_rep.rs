//! Which processes wait for a synchronous standby.
//!
//! Does not: wait, or end a wait.

use pgrx::pg_sys;

/// Does the commit of this process wait for a standby? Signal handlers may ask.
pub fn is_waiting() -> bool {
    // SAFETY: MyProc is set before the process can run a transaction. Only this process and the one that ends its wait write the field.
    unsafe { is_in_wait(pg_sys::MyProc) }
}

/// Does the commit of that process wait for a standby?
pub fn is_process_waiting(pid: i32) -> bool {
    // SAFETY: the entry of a process stays in shared memory when the process ends, so it can be read. A stale value is harmless.
    unsafe { is_in_wait(pg_sys::BackendPidGetProc(pid)) }
}

/// # Safety
/// `process` is null or one of PostgreSQL's entries in shared memory.
unsafe fn is_in_wait(process: *const pg_sys::PGPROC) -> bool {
    // SAFETY: as above. Volatile, because another process writes the field.
    !process.is_null()
        && unsafe { (&raw const (*process).syncRepState).read_volatile() } == pg_sys::SYNC_REP_WAITING as i32
}
