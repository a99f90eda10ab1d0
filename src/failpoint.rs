//! Failpoints: the steps at which the campaign makes a process fail. Only with the feature `failpoints`; without it, a step is
//! nothing at all.
//!
//! A file `awty_failpoints/STEP` in the data directory says what is to happen to the next process that comes there: `error`,
//! `term` or `kill`. It is taken by removing it, so that it happens once.
//!
//! Invariant: at a step whose [`Step::may_raise`] is false nothing is raised, because no error can come about there.
//! Does not: cost anything in a library that is installed anywhere.

#[cfg(feature = "failpoints")]
mod steps;

/// `failpoint!("run.called")`: something may happen here.
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

    /// A process comes by.
    pub fn cross(step: &str) {
        let file = format!("awty_failpoints/{step}");
        let Ok(action) = fs::read_to_string(&file) else { return };
        // The process that removes the file has its action.
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
        // SAFETY: a signal to this process itself.
        unsafe { libc::kill(libc::getpid(), signal) };
    }

    /// Makes steps of the moments before and after the record of a commit.
    pub fn watch_commits() {
        // SAFETY: the callback takes no argument.
        unsafe { pg_sys::RegisterXactCallback(Some(at_commit), std::ptr::null_mut()) };
    }

    /// # Safety
    /// Called by PostgreSQL only.
    #[pg_guard]
    unsafe extern "C-unwind" fn at_commit(event: pg_sys::XactEvent::Type, _argument: *mut std::ffi::c_void) {
        match event {
            pg_sys::XactEvent::XACT_EVENT_PRE_COMMIT => cross("commit.before_record"),
            pg_sys::XactEvent::XACT_EVENT_COMMIT => cross("commit.after_record"),
            _ => {}
        }
    }
}
