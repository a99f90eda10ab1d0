use pgrx::pg_sys;

pub fn wake(latch: usize) {
    if latch != 0 {
        // SAFETY: the latch belongs to a PGPROC, which exists as long as the server runs.
        unsafe { pg_sys::SetLatch(latch as *mut pg_sys::Latch) };
    }
}
