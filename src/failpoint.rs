//! Failpoints are steps at which a test can make a process fail.
//!
//! The file `awty_failpoints/STEP` in the data directory contains the action (`error`, `term` or `kill`). The first
//! process that reaches the step removes the file.
//!
//! Invariant: if [`Step::may_raise`] is false, the failpoint raises no error, because no real error can occur at this
//! step.

#[cfg(feature = "failpoints")]
mod steps;

macro_rules! failpoint {
    ($step:literal) => {
        #[cfg(feature = "failpoints")]
        $crate::failpoint::cross($step);
    };
}
pub(crate) use failpoint;

#[cfg(feature = "failpoints")]
pub use armed::{cross, watch_commits};

#[cfg(feature = "failpoints")]
mod armed {
    use super::steps::STEPS;
    use pgrx::{PgSqlErrorCode, ereport, pg_guard, pg_sys};
    use std::fs;

    pub fn cross(step: &str) {
        let file = format!("awty_failpoints/{step}");
        let Ok(action) = fs::read_to_string(&file) else { return };
        if fs::remove_file(&file).is_err() {
            return;
        }
        let may_raise = STEPS.iter().any(|known| known.name == step && known.may_raise);
        pgrx::log!("awty: failpoint {step}: {action}");
        match action.trim() {
            "kill" => strike(libc::SIGKILL),
            "term" => strike(libc::SIGTERM),
            _ if may_raise => {
                ereport!(ERROR, PgSqlErrorCode::ERRCODE_IO_ERROR, format!("failpoint {step}"));
            }
            _ => {}
        }
    }

    fn strike(signal: i32) {
        // SAFETY: the call only sends a signal to this process.
        unsafe { libc::kill(libc::getpid(), signal) };
    }

    pub fn watch_commits() {
        // SAFETY: the callback ignores its argument.
        unsafe { pg_sys::RegisterXactCallback(Some(at_commit), std::ptr::null_mut()) };
    }

    #[pg_guard]
    unsafe extern "C-unwind" fn at_commit(event: pg_sys::XactEvent::Type, _argument: *mut std::ffi::c_void) {
        match event {
            pg_sys::XactEvent::XACT_EVENT_PRE_COMMIT => cross("commit.before_record"),
            pg_sys::XactEvent::XACT_EVENT_COMMIT => cross("commit.after_record"),
            _ => {}
        }
    }
}
