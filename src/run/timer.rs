//! The time limit of a run: it strikes twice. First the run is cancelled, as by `pg_cancel_backend()`; a run that catches
//! that is terminated after [`GRACE`].
//!
//! Invariant: a strike only sets flags, which PostgreSQL's own interrupt checks act upon; nothing is killed.
//! Does not: survive jumps of the wall clock, by which PostgreSQL's timers count; the launcher's watchdog does.

use pgrx::pg_sys;
use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::time::Duration;

/// Between the two strikes.
pub const GRACE: Duration = Duration::from_secs(2);

// pgrx does not bind utils/timeout.h.
unsafe extern "C-unwind" {
    fn RegisterTimeout(id: c_int, handler: Option<unsafe extern "C" fn()>) -> c_int;
    fn enable_timeout_after(id: c_int, delay_ms: c_int);
    fn disable_timeout(id: c_int, keep_indicator: bool);
}

/// RegisterTimeout picks a free one for any number from USER_TIMEOUT on, whose value differs between versions.
const ANY_FREE: c_int = c_int::MAX;

static CANCEL: AtomicI32 = AtomicI32::new(-1);
static TERMINATE: AtomicI32 = AtomicI32::new(-1);
static STRIKES: AtomicU32 = AtomicU32::new(0);

/// Gets the process's two timers. Called once, after it has connected.
pub fn register() {
    // SAFETY: the handlers only store to flags and set the process's own latch, as a signal handler may.
    unsafe {
        CANCEL.store(RegisterTimeout(ANY_FREE, Some(cancel)), Ordering::Relaxed);
        TERMINATE.store(RegisterTimeout(ANY_FREE, Some(terminate)), Ordering::Relaxed);
    }
}

/// Starts the time of a run.
pub fn arm(timeout: Duration) {
    let ms = |duration: Duration| c_int::try_from(duration.as_millis().max(1)).unwrap_or(c_int::MAX);
    STRIKES.store(0, Ordering::Relaxed);
    // SAFETY: both were registered when the process started.
    unsafe {
        enable_timeout_after(CANCEL.load(Ordering::Relaxed), ms(timeout));
        enable_timeout_after(TERMINATE.load(Ordering::Relaxed), ms(timeout + GRACE));
    }
}

/// Stops the time of a run, and forgets a cancellation that came too late. Returns how often the timer struck.
pub fn disarm() -> u32 {
    // SAFETY: as above. QueryCancelPending is this process's own flag.
    unsafe {
        disable_timeout(CANCEL.load(Ordering::Relaxed), false);
        disable_timeout(TERMINATE.load(Ordering::Relaxed), false);
        (&raw mut pg_sys::QueryCancelPending).write_volatile(0);
    }
    STRIKES.swap(0, Ordering::Relaxed)
}

/// How often the timer has struck in the run that is going on.
pub fn strikes() -> u32 {
    STRIKES.load(Ordering::Relaxed)
}

/// # Safety
/// Runs in a signal handler.
unsafe extern "C" fn cancel() {
    STRIKES.store(1, Ordering::Relaxed);
    // SAFETY: flags made to be written here.
    unsafe {
        (&raw mut pg_sys::QueryCancelPending).write_volatile(1);
        (&raw mut pg_sys::InterruptPending).write_volatile(1);
        pg_sys::SetLatch(pg_sys::MyLatch);
    }
}

/// # Safety
/// Runs in a signal handler.
unsafe extern "C" fn terminate() {
    STRIKES.store(2, Ordering::Relaxed);
    // SAFETY: flags made to be written here.
    unsafe {
        (&raw mut pg_sys::ProcDiePending).write_volatile(1);
        (&raw mut pg_sys::InterruptPending).write_volatile(1);
        pg_sys::SetLatch(pg_sys::MyLatch);
    }
}
