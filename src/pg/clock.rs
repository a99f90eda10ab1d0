//! Only this module reads the time and sleeps.
//!
//! `Mono` never goes backwards, so it measures time limits that must hold even if the wall clock jumps.

use awty_core::{Mono, Time};
use chrono::{DateTime, TimeDelta};
use pgrx::datum::TimestampWithTimeZone;
use pgrx::pg_sys;
use std::cell::Cell;
use std::time::Duration;

const POSTGRES_EPOCH: i64 = 946_684_800_000_000;

/// PostgreSQL's `timestamptz`: microseconds since 2000-01-01 UTC.
pub type Timestamp = i64;

thread_local! {
    /// Microseconds by which `awty.travel()` has moved this session's clock.
    static AHEAD: Cell<i64> = const { Cell::new(0) };
    static ARRIVED: Cell<Timestamp> = const { Cell::new(0) };
}

pub fn now() -> Time {
    // SAFETY: the function only reads the clock.
    from_timestamp(unsafe { pg_sys::GetCurrentTimestamp() }.saturating_add(AHEAD.get())).unwrap_or(Time::MIN_UTC)
}

pub fn transaction_start() -> Timestamp {
    match AHEAD.get() {
        // SAFETY: the function only reads a variable.
        0 => unsafe { pg_sys::GetCurrentTransactionStartTimestamp() },
        _ => ARRIVED.get(),
    }
}

pub fn statement_start() -> Timestamp {
    // SAFETY: the function only reads a variable.
    unsafe { pg_sys::GetCurrentStatementStartTimestamp() }
}

pub fn travel_to(time: Time) {
    AHEAD.set(AHEAD.get().saturating_add((time - now()).num_microseconds().unwrap_or(0).max(0)));
    ARRIVED.set(to_timestamp(now()));
}

pub fn ahead() -> (i64, Timestamp) {
    (AHEAD.get(), ARRIVED.get())
}

pub fn set_ahead((ahead, arrived): (i64, Timestamp)) {
    AHEAD.set(ahead);
    ARRIVED.set(arrived);
}

pub fn mono() -> Mono {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes into `time`, and every Linux has CLOCK_MONOTONIC.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    Mono(time.tv_sec * 1_000_000 + time.tv_nsec / 1_000)
}

pub fn is_past(until: Option<Mono>) -> bool {
    until.is_some_and(|until| mono() >= until)
}

/// Returns `None` if the timestamp is infinite, or after chrono's last year (262142).
pub fn from_timestamp(timestamp: Timestamp) -> Option<Time> {
    if timestamp == i64::MIN || timestamp == i64::MAX {
        return None;
    }
    DateTime::from_timestamp_micros(timestamp.checked_add(POSTGRES_EPOCH)?)
}

pub fn clamped(timestamp: Timestamp) -> Time {
    from_timestamp(timestamp).unwrap_or(if timestamp < 0 { Time::MIN_UTC } else { Time::MAX_UTC })
}

pub fn to_timestamp(time: Time) -> Timestamp {
    time.timestamp_micros().saturating_sub(POSTGRES_EPOCH)
}

pub fn to_timestamptz(time: Time) -> Option<TimestampWithTimeZone> {
    TimestampWithTimeZone::try_from(to_timestamp(time)).ok()
}

pub fn until(time: Time) -> Duration {
    (time - now()).to_std().unwrap_or(Duration::ZERO)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Woken {
    Latch,
    Timeout,
}

pub fn sleep(duration: Duration, wait_event: u32) -> Woken {
    let millis = duration.as_micros().div_ceil(1000).clamp(1, 60_000) as i64;
    // SAFETY: PostgreSQL sets up `MyLatch` before it runs the extension's code.
    unsafe {
        let events = pg_sys::WaitLatch(
            pg_sys::MyLatch,
            (pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH) as i32,
            millis,
            wait_event,
        );
        if events & pg_sys::WL_LATCH_SET as i32 == 0 {
            return Woken::Timeout;
        }
        pg_sys::ResetLatch(pg_sys::MyLatch);
    }
    Woken::Latch
}

/// Sleeps in a client's session, which the client may cancel.
pub fn pause(duration: Duration) {
    sleep(duration, pg_sys::PG_WAIT_EXTENSION);
    pg_sys::check_for_interrupts!();
}

pub fn delta_of(duration: Duration) -> TimeDelta {
    TimeDelta::from_std(duration).unwrap_or(TimeDelta::MAX)
}

/// As in `extract(epoch)`, a year has 365.25 days, a month 30 days, and a day 24 hours.
pub fn delta(interval: &pgrx::datum::Interval) -> Option<TimeDelta> {
    const DAY: i64 = 86_400_000_000;
    let (years, months) = (i64::from(interval.months() / 12), i64::from(interval.months() % 12));
    let quarter_days = years * 1461 + (months * 30 + i64::from(interval.days())) * 4;
    let micros = quarter_days.checked_mul(DAY / 4)?.checked_add(interval.micros())?;
    Some(TimeDelta::microseconds(micros))
}
