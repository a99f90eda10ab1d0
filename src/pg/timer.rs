//! The time limit of a run: it strikes twice. First the run is cancelled, as by `pg_cancel_backend()`; a run that catches
//! that is terminated after [`GRACE`].
//!
//! Invariant: a strike only sets flags, which PostgreSQL's own interrupt checks act upon; nothing is killed. A commit that waits for a
//! synchronous standby is not struck, because PostgreSQL would end the wait and keep the commit.
//! Does not: survive jumps of the wall clock, by which PostgreSQL's timers count; the launcher's watchdog does.

use super::{sync_rep, unbound};
use awty_core::watchdog::GRACE;
use pgrx::pg_sys;
use std::ffi::c_int;
use std::sync::Once;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::time::Duration;

static CANCEL: AtomicI32 = AtomicI32::new(-1);
static TERMINATE: AtomicI32 = AtomicI32::new(-1);
static STRIKES: AtomicU32 = AtomicU32::new(0);

/// Gets the process's two timers. Called once, after it has connected.
pub fn register() {
    CANCEL.store(unbound::register_timeout(cancel), Ordering::Relaxed);
    TERMINATE.store(unbound::register_timeout(terminate), Ordering::Relaxed);
}

/// Starts the time of a run.
pub fn arm(timeout: Duration) {
    let ms = |duration: Duration| c_int::try_from(duration.as_millis().max(1)).unwrap_or(c_int::MAX);
    STRIKES.store(0, Ordering::Relaxed);
    // SAFETY: both were registered when the process started.
    unsafe {
        unbound::enable_timeout_after(CANCEL.load(Ordering::Relaxed), ms(timeout));
        unbound::enable_timeout_after(TERMINATE.load(Ordering::Relaxed), ms(timeout + GRACE));
    }
}

/// Starts the time of a run in a client's session, which is cancelled and never terminated.
pub fn arm_cancel(timeout: Duration) {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| CANCEL.store(unbound::register_timeout(cancel), Ordering::Relaxed));
    STRIKES.store(0, Ordering::Relaxed);
    let ms = c_int::try_from(timeout.as_millis().max(1)).unwrap_or(c_int::MAX);
    // SAFETY: just registered.
    unsafe { unbound::enable_timeout_after(CANCEL.load(Ordering::Relaxed), ms) };
}

/// Stops it, and forgets its own cancellation if that came too late. Says whether the timer struck.
pub fn disarm_cancel() -> bool {
    // SAFETY: registered by `arm_cancel`. QueryCancelPending is this process's own flag.
    unsafe {
        unbound::disable_timeout(CANCEL.load(Ordering::Relaxed));
        let struck = STRIKES.swap(0, Ordering::Relaxed) > 0;
        if struck {
            (&raw mut pg_sys::QueryCancelPending).write_volatile(0);
        }
        struck
    }
}

/// Stops the time of a run, and forgets a cancellation that came too late. Returns how often the timer struck.
pub fn disarm() -> u32 {
    // SAFETY: as above. QueryCancelPending is this process's own flag.
    unsafe {
        unbound::disable_timeout(CANCEL.load(Ordering::Relaxed));
        unbound::disable_timeout(TERMINATE.load(Ordering::Relaxed));
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
    if sync_rep::is_waiting() {
        return;
    }
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
    if sync_rep::is_waiting() {
        return;
    }
    STRIKES.store(2, Ordering::Relaxed);
    // SAFETY: flags made to be written here.
    unsafe {
        (&raw mut pg_sys::ProcDiePending).write_volatile(1);
        (&raw mut pg_sys::InterruptPending).write_volatile(1);
        pg_sys::SetLatch(pg_sys::MyLatch);
    }
}
