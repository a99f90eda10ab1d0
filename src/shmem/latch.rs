//! Invariant: a latch's address stays valid, because its PGPROC exists as long as the server runs.

use pgrx::pg_sys;

pub fn wake(latch: usize) {
    if latch != 0 {
        // SAFETY: see the file's invariant. If the process has ended, the latch's next owner wakes up once without
        // need.
        unsafe { pg_sys::SetLatch(latch as *mut pg_sys::Latch) };
    }
}
