//! Cancels a run at its time limit. If the function catches the cancellation, awty terminates the process after
//! [`GRACE`].
//!
//! Invariant: a timer only sets flags that PostgreSQL checks at interrupts. It never interrupts a commit that waits for
//! a synchronous standby, because the interrupt would end only the wait.

use super::sync_rep;
use crate::pg::unbound;
use awty_core::watchdog::GRACE;
use pgrx::pg_sys;
use std::ffi::c_int;
use std::sync::Once;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::time::Duration;

static CANCEL: AtomicI32 = AtomicI32::new(-1);
static TERMINATE: AtomicI32 = AtomicI32::new(-1);
static STRIKES: AtomicU32 = AtomicU32::new(0);

pub fn register() {
    CANCEL.store(unbound::register_timeout(cancel), Ordering::Relaxed);
    TERMINATE.store(unbound::register_timeout(terminate), Ordering::Relaxed);
}

fn ms(duration: Duration) -> c_int {
    c_int::try_from(duration.as_millis().max(1)).unwrap_or(c_int::MAX)
}

pub fn arm(timeout: Duration) {
    STRIKES.store(0, Ordering::Relaxed);
    // SAFETY: `register` has registered both timers.
    unsafe {
        unbound::enable_timeout_after(CANCEL.load(Ordering::Relaxed), ms(timeout));
        unbound::enable_timeout_after(TERMINATE.load(Ordering::Relaxed), ms(timeout + GRACE));
    }
}

pub fn arm_cancel(timeout: Duration) {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(register);
    STRIKES.store(0, Ordering::Relaxed);
    // SAFETY: `register` has registered the timer.
    unsafe { unbound::enable_timeout_after(CANCEL.load(Ordering::Relaxed), ms(timeout)) };
}

/// Starts a timer that ends the session if the function ignores its cancellation. The timer expires [`GRACE`] after the
/// earlier of `timeout` and `statement_timeout`.
pub fn arm_terminate(timeout: Duration) {
    // SAFETY: no other thread uses this setting.
    let of_statement = u64::try_from(unsafe { pg_sys::StatementTimeout }).unwrap_or_default();
    let of_statement = Some(Duration::from_millis(of_statement)).filter(|time| !time.is_zero());
    let cancelled = of_statement.map_or(timeout, |time| time.min(timeout));
    // SAFETY: `arm_cancel` has registered the timer.
    unsafe { unbound::enable_timeout_after(TERMINATE.load(Ordering::Relaxed), ms(cancelled + GRACE)) };
}

pub fn disarm_cancel() -> bool {
    if CANCEL.load(Ordering::Relaxed) < 0 {
        return false; // `arm_cancel` has never run, so no timer is armed
    }
    // SAFETY: both timers are registered, and the flag belongs to this process.
    unsafe {
        unbound::disable_timeout(CANCEL.load(Ordering::Relaxed));
        unbound::disable_timeout(TERMINATE.load(Ordering::Relaxed));
        let struck = STRIKES.swap(0, Ordering::Relaxed) > 0;
        if struck {
            (&raw mut pg_sys::QueryCancelPending).write_volatile(0);
        }
        struck
    }
}

pub fn disarm() -> u32 {
    // SAFETY: both timers are registered, and the flag belongs to this process.
    unsafe {
        unbound::disable_timeout(CANCEL.load(Ordering::Relaxed));
        unbound::disable_timeout(TERMINATE.load(Ordering::Relaxed));
        (&raw mut pg_sys::QueryCancelPending).write_volatile(0);
    }
    STRIKES.swap(0, Ordering::Relaxed)
}

pub fn strikes() -> u32 {
    STRIKES.load(Ordering::Relaxed)
}

unsafe extern "C" fn cancel() {
    if sync_rep::is_waiting() {
        return;
    }
    STRIKES.store(1, Ordering::Relaxed);
    // SAFETY: PostgreSQL allows a signal handler to write these flags and to set the latch.
    unsafe {
        (&raw mut pg_sys::QueryCancelPending).write_volatile(1);
        (&raw mut pg_sys::InterruptPending).write_volatile(1);
        pg_sys::SetLatch(pg_sys::MyLatch);
    }
}

unsafe extern "C" fn terminate() {
    if sync_rep::is_waiting() {
        return;
    }
    STRIKES.store(2, Ordering::Relaxed);
    // SAFETY: PostgreSQL allows a signal handler to write these flags and to set the latch.
    unsafe {
        (&raw mut pg_sys::ProcDiePending).write_volatile(1);
        (&raw mut pg_sys::InterruptPending).write_volatile(1);
        pg_sys::SetLatch(pg_sys::MyLatch);
    }
}
