//! The address of a latch stays valid, because its PGPROC exists as long as the server runs.

use pgrx::pg_sys;

pub fn wake(latch: usize) {
    if latch != 0 {
        // SAFETY: the latch's address stays valid (see above). If its process has ended, the next process with this
        // latch wakes up without need.
        unsafe { pg_sys::SetLatch(latch as *mut pg_sys::Latch) };
    }
}
