use crate::error::{Error, Result};
use crate::pg::owner::{as_owner, set_local};
use crate::pg::subtransaction::unless_locked;
use pgrx::pg_sys;
use pgrx::prelude::{PgSqlErrorCode, PgTryBuilder};
use std::ffi::CStr;
use std::panic::AssertUnwindSafe;

/// Longest time that a client waits for a lock, because a prepared transaction may keep a lock for days.
const PATIENCE: (&CStr, i32) = (c"5s", 5_000);

/// Longest time that a client waits for a lock while it has locked a table, because other clients wait for the table.
const MOMENT: (&CStr, i32) = (c"200ms", 200);

pub fn wait<R>(busy: impl Fn() -> Error, run: impl FnOnce() -> R) -> R {
    let busy = AssertUnwindSafe(busy);
    PgTryBuilder::new(AssertUnwindSafe(|| as_owner(|| limited(PATIENCE, run))))
        .catch_when(PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE, move |_| (*busy)().raise())
        .execute()
}

/// Undoes `run` and returns `busy` if another transaction keeps a lock for longer than a moment.
pub fn for_a_moment<R>(busy: impl Fn() -> Error, run: impl FnOnce() -> Result<R>) -> Result<R> {
    let mut result = None;
    let ran = unless_locked(|| result = Some(limited(MOMENT, run)));
    ran.and(result).unwrap_or_else(|| Err(busy()))
}

/// Runs `run` with this `lock_timeout`, unless the session has a shorter one.
fn limited<R>((text, limit): (&CStr, i32), run: impl FnOnce() -> R) -> R {
    // SAFETY: AtEOXact_GUC() below, or the abort after an ERROR, ends the new level of settings. A backend has one
    // thread, so nothing writes the variable during the read.
    let (nest, own) = unsafe { (pg_sys::NewGUCNestLevel(), pg_sys::LockTimeout) };
    if own == 0 || own > limit {
        set_local(c"lock_timeout", text);
    }
    let result = run();
    // SAFETY: `nest` is the level of settings that `NewGUCNestLevel` has opened above.
    unsafe { pg_sys::AtEOXact_GUC(false, nest) };
    result
}
