//! Runs as another role, for what that role has written: expressions over its own table.
//!
//! Invariant: settings of the session do not change what such an expression means: the search path is pinned, and so is how values
//! are written as text. A policy that would hide rows is an error.
//! Does not: run what a job does (see `run::call`).

use super::owner::set_local;
use super::scalar;
use pgrx::pg_sys;

/// Runs `body` as `role`. Nothing that it starts can outlast it, and it can change no setting and no role of the session.
pub fn as_role<R>(role: pg_sys::Oid, body: impl FnOnce() -> R) -> R {
    let mut user = pg_sys::InvalidOid;
    let mut context = 0;
    let flags = pg_sys::SECURITY_LOCAL_USERID_CHANGE | pg_sys::SECURITY_RESTRICTED_OPERATION;
    // SAFETY: plain getters and setters of this process's identity; what was there is restored below, or by the abort.
    let nest = unsafe {
        pg_sys::GetUserIdAndSecContext(&mut user, &mut context);
        let nest = pg_sys::NewGUCNestLevel();
        pg_sys::SetUserIdAndSecContext(role, context | flags as i32);
        nest
    };
    scalar::pin();
    set_local(c"row_security", c"off");
    let result = body();
    // SAFETY: `nest` is the level opened above, and `user` and `context` are what was there.
    unsafe {
        pg_sys::AtEOXact_GUC(true, nest);
        pg_sys::SetUserIdAndSecContext(user, context);
    }
    result
}
