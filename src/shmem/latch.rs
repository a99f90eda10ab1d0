//! Latches of which shared memory holds the address.
//!
//! Invariant: such a latch is part of a PGPROC, which lives in shared memory as long as the server does.
//! Does not: know whose it is.

use pgrx::pg_sys;

/// Sets a latch; 0 stands for none.
pub fn wake(latch: usize) {
    if latch != 0 {
        // SAFETY: see the file's invariant. If the process has ended, another one there looks around for nothing.
        unsafe { pg_sys::SetLatch(latch as *mut pg_sys::Latch) };
    }
}
