//! Evaluates expressions over a role's own table, with the role's rights.
//!
//! Invariant: session settings do not change an expression's meaning. If a row-level security policy would hide rows,
//! PostgreSQL raises an error.

use super::owner::{as_user, pin_search_path, set_local};
use super::{catalog, scalar};
use pgrx::pg_sys;

/// Runs `body` with the current role's rights. The security-restricted operation keeps `body` from taking the session
/// role's rights.
pub fn confined<R>(body: impl FnOnce() -> R) -> R {
    as_user(catalog::current_role(), pg_sys::SECURITY_RESTRICTED_OPERATION, || unheard(body))
}

/// Hides the messages of `body` from the client after SET ROLE or SET SESSION AUTHORIZATION, because `body` may be code
/// of a role that the client does not trust. `client_min_messages` would not suffice, because `body` could change it.
fn unheard<R>(body: impl FnOnce() -> R) -> R {
    struct Heard(pg_sys::CommandDest::Type);
    impl Drop for Heard {
        fn drop(&mut self) {
            // SAFETY: no other thread uses this variable.
            unsafe { pg_sys::whereToSendOutput = self.0 };
        }
    }
    // SAFETY: dropping `_heard` restores the variable, also after an ERROR.
    let _heard = unsafe {
        let [outer, session] = [pg_sys::GetOuterUserId(), pg_sys::GetSessionUserId()];
        (outer != session || session != pg_sys::GetAuthenticatedUserId()).then(|| {
            let heard = Heard(pg_sys::whereToSendOutput);
            pg_sys::whereToSendOutput = pg_sys::CommandDest::DestNone;
            heard
        })
    };
    body()
}

/// Runs `body` as `role`. `body` cannot change the session's settings or its role.
pub fn as_role<R>(role: pg_sys::Oid, body: impl FnOnce() -> R) -> R {
    as_role_of(role, true, body)
}

/// Runs `body` as `role`, with the session's `search_path`.
pub fn as_reader<R>(role: pg_sys::Oid, body: impl FnOnce() -> R) -> R {
    let flags = pg_sys::SECURITY_LOCAL_USERID_CHANGE | pg_sys::SECURITY_RESTRICTED_OPERATION;
    as_user(role, flags, || unheard(body))
}

pub fn as_role_of<R>(role: pg_sys::Oid, by_settings: bool, body: impl FnOnce() -> R) -> R {
    as_reader(role, || {
        if by_settings {
            scalar::pin()
        } else {
            pin_search_path()
        }
        set_local(c"row_security", c"off");
        body()
    })
}
