//! A latch is part of a PGPROC, which lives in shared memory as long as the server does.

use pgrx::pg_sys;

/// Sets a latch; 0 means none.
pub fn wake(latch: usize) {
    if latch != 0 {
        // SAFETY: see the file's invariant. If the process has ended, the latch's next owner wakes up once without
        // need.
        unsafe { pg_sys::SetLatch(latch as *mut pg_sys::Latch) };
    }
}
