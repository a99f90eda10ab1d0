use crate::error::Error;
use crate::pg::owner::{self, as_owner};
use pgrx::pg_sys;
use pgrx::prelude::{PgSqlErrorCode, PgTryBuilder};
use std::ffi::CStr;
use std::panic::AssertUnwindSafe;

/// Longest time that a client waits for a lock, because a prepared transaction may keep a lock for days.
const PATIENCE: (&CStr, i32) = (c"5s", 5_000);

pub fn wait<R>(busy: impl Fn() -> Error, run: impl FnOnce() -> R) -> R {
    let busy = AssertUnwindSafe(busy);
    PgTryBuilder::new(AssertUnwindSafe(|| {
        as_owner(|| {
            // SAFETY: a backend has one thread, so nothing writes this variable during the read.
            let own = unsafe { pg_sys::LockTimeout };
            if own == 0 || own > PATIENCE.1 {
                owner::set_local(c"lock_timeout", PATIENCE.0);
            }
            run()
        })
    }))
    .catch_when(PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE, move |_| (*busy)().raise())
    .execute()
}
