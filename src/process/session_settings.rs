use crate::settings;
use pgrx::pg_sys;
use std::ffi::CStr;

/// Overrides settings of the role or the database that could stop checks or make checks run as the wrong role.
pub fn override_settings() {
    for (name, value) in [
        (c"role", c"none"),
        (c"default_transaction_read_only", c"off"),
        (c"default_transaction_isolation", c"read committed"),
        (c"default_transaction_deferrable", c"off"),
        (c"idle_in_transaction_session_timeout", c"0"),
        (c"statement_timeout", c"0"),
        (c"exit_on_error", c"off"),
        #[cfg(any(feature = "pg17", feature = "pg18"))]
        (c"transaction_timeout", c"0"),
        // Disables parallel workers, because the run's time limit does not end them.
        (c"max_parallel_workers_per_gather", c"0"),
    ] {
        set(name, value);
    }
}

/// If `awty.synchronous_commit` is off, makes commits asynchronous. awty then flushes the WAL once per batch.
pub fn set_commit_mode() {
    set_or_reset(c"synchronous_commit", (!settings::synchronous_commit()).then_some(c"off"));
}

/// Runs `body`, whose commit waits for the local flush but not for standbys. The flush includes all earlier commits.
pub fn flushed<R>(body: impl FnOnce() -> R) -> R {
    set(c"synchronous_commit", c"local");
    let result = body();
    set_commit_mode();
    result
}

pub fn acknowledged<R>(body: impl FnOnce() -> R) -> R {
    // SAFETY: no other thread uses this setting.
    let is_flushed = unsafe { pg_sys::synchronous_commit } != pg_sys::SyncCommitLevel::SYNCHRONOUS_COMMIT_OFF as i32;
    if settings::synchronous_commit() && is_flushed { body() } else { flushed(body) }
}

pub fn set(name: &CStr, value: &CStr) {
    set_or_reset(name, Some(value));
}

fn set_or_reset(name: &CStr, value: Option<&CStr>) {
    // SAFETY: `name` is a C string, and `value` is a C string or null.
    unsafe {
        pg_sys::SetConfigOption(
            name.as_ptr(),
            value.map_or(std::ptr::null(), CStr::as_ptr),
            pg_sys::GucContext::PGC_USERSET,
            pg_sys::GucSource::PGC_S_SESSION,
        );
    }
}
