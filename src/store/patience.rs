use crate::error::{Error, Result};
use crate::pg::clock;
use crate::pg::owner::{as_owner, set_local};
use crate::pg::subtransaction::unless_locked;
use pgrx::pg_sys;
use pgrx::prelude::{PgSqlErrorCode, PgTryBuilder};
use std::cell::Cell;
use std::ffi::CString;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

/// Longest time that a client waits for a lock, because a prepared transaction may keep a lock for days.
const PATIENCE: Duration = Duration::from_secs(5);

/// Longest time that a client waits for a lock while it has locked a table or checks of other roles, because other
/// clients and runs wait for these.
pub const MOMENT: Duration = Duration::from_millis(200);

thread_local! {
    /// What is left of `PATIENCE` in [`shared`].
    static LEFT: Cell<Option<Duration>> = const { Cell::new(None) };
}

/// All calls of [`wait`] in `run` together wait no longer than `PATIENCE`. PostgreSQL's `lock_timeout` begins anew with
/// each lock, so another session could make the caller wait for one lock after the other.
pub fn shared<R>(run: impl FnOnce() -> R) -> R {
    struct Over;
    impl Drop for Over {
        fn drop(&mut self) {
            LEFT.set(None);
        }
    }
    LEFT.set(Some(PATIENCE));
    let _over = Over;
    run()
}

pub fn wait<R>(busy: impl Fn() -> Error, run: impl FnOnce() -> R) -> R {
    let (busy, left, began) = (AssertUnwindSafe(busy), LEFT.get(), clock::mono());
    let limit = left.unwrap_or(PATIENCE);
    let result = PgTryBuilder::new(AssertUnwindSafe(|| as_owner(|| limited(limit, run))))
        .catch_when(PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE, move |_| (*busy)().raise())
        .execute();
    LEFT.set(left.map(|left| left.saturating_sub(clock::mono().since(began))));
    result
}

/// Undoes `run` and returns `busy` if another transaction keeps a lock for longer than a moment.
pub fn for_a_moment<R>(busy: impl Fn() -> Error, run: impl FnOnce() -> Result<R>) -> Result<R> {
    let mut result = None;
    let ran = unless_locked(|| result = Some(limited(MOMENT, run)));
    ran.and(result).unwrap_or_else(|| Err(busy()))
}

/// Runs `run` with this `lock_timeout`, unless the session has a shorter one.
fn limited<R>(limit: Duration, run: impl FnOnce() -> R) -> R {
    let limit = (limit.as_millis() as i32).max(1);
    // SAFETY: AtEOXact_GUC() below, or the abort after an ERROR, ends the new level of settings. A backend has one
    // thread, so nothing writes the variable during the read.
    let (nest, own) = unsafe { (pg_sys::NewGUCNestLevel(), pg_sys::LockTimeout) };
    if own == 0 || own > limit {
        let text = CString::new(limit.to_string()).unwrap_or_default();
        set_local(c"lock_timeout", &text);
    }
    let result = run();
    // SAFETY: `nest` is the level of settings that `NewGUCNestLevel` has opened above.
    unsafe { pg_sys::AtEOXact_GUC(false, nest) };
    result
}
