//! Runs as another role, for what that role has written: expressions over its own table.
//!
//! Invariant: settings of the session do not change what such an expression means: the search path is pinned, and so is how values
//! are written as text. A policy that would hide rows is an error.
//! Does not: run what a job does (see `run::call`).

use super::owner::{as_user, pin_search_path, set_local};
use super::scalar;
use pgrx::pg_sys;

/// Runs `body` as `role`. Nothing that it starts can outlast it, and it can change no setting and no role of the session.
pub fn as_role<R>(role: pg_sys::Oid, body: impl FnOnce() -> R) -> R {
    as_role_of(role, true, body)
}

/// The same for expressions that mean the same under all settings, if not `by_settings`: only names are pinned then.
pub fn as_role_of<R>(role: pg_sys::Oid, by_settings: bool, body: impl FnOnce() -> R) -> R {
    as_user(role, pg_sys::SECURITY_LOCAL_USERID_CHANGE | pg_sys::SECURITY_RESTRICTED_OPERATION, || {
        if by_settings {
            scalar::pin()
        } else {
            pin_search_path()
        }
        set_local(c"row_security", c"off");
        body()
    })
}
