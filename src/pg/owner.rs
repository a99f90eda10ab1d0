//! Runs as the owner of awty's tables, with a fixed `search_path`: the only way in which awty touches them.
//!
//! Invariant: no code of a user can run inside of [`as_owner`]. Nobody may put a trigger, rule or policy on
//! awty's tables; their columns are of core types; every name in the statements is qualified, and operators can only be
//! found in `pg_catalog`. An ERROR inside leaves by aborting the (sub)transaction, which restores user and settings.
//! Does not: hold SQL (see `store`), or decide who may do what.

use super::{catalog, changes};
use pgrx::pg_sys;
use std::cell::Cell;
use std::ffi::CStr;

/// Where awty's names are looked up.
const SEARCH_PATH: &CStr = c"pg_catalog, pg_temp";

/// Runs `body` as the owner of awty's tables.
pub fn as_owner<R>(body: impl FnOnce() -> R) -> R {
    as_user(owner(), pg_sys::SECURITY_LOCAL_USERID_CHANGE, || {
        pin_search_path();
        // SAFETY: a setting of this session. Any other value than the default would have awty's statements planned at each execution.
        if unsafe { pg_sys::plan_cache_mode } != pg_sys::PlanCacheMode::PLAN_CACHE_MODE_AUTO as i32 {
            set_local(c"plan_cache_mode", c"auto");
        }
        body()
    })
}

/// The owner of awty's tables, as it was found when a relation has last changed.
fn owner() -> pg_sys::Oid {
    thread_local! {
        static KNOWN: Cell<(u64, pg_sys::Oid)> = const { Cell::new((0, pg_sys::InvalidOid)) };
    }
    let changes = changes::of_relations();
    let (then, known) = KNOWN.get();
    if then == changes && known != pg_sys::InvalidOid {
        return known;
    }
    let owner = catalog::owner();
    KNOWN.set((changes, owner));
    owner
}

/// Has names looked up in PostgreSQL's own schema until the end of the innermost nest level, if that is not so already.
pub(super) fn pin_search_path() {
    // SAFETY: a setting of this session, which is never null.
    if unsafe { CStr::from_ptr(pg_sys::namespace_search_path) } != SEARCH_PATH {
        set_local(c"search_path", SEARCH_PATH);
    }
}

/// Runs `body` with the identity of a role, under these flags of PostgreSQL's security context. What `body` sets by [`set_local`] is
/// undone with it.
pub(super) fn as_user<R>(role: pg_sys::Oid, flags: u32, body: impl FnOnce() -> R) -> R {
    let mut user = pg_sys::InvalidOid;
    let mut context = 0;
    // SAFETY: plain getters and setters of this process's identity; what was there is restored below, or by the abort.
    let nest = unsafe {
        pg_sys::GetUserIdAndSecContext(&mut user, &mut context);
        let nest = pg_sys::NewGUCNestLevel();
        pg_sys::SetUserIdAndSecContext(role, context | flags as i32);
        nest
    };
    let result = body();
    // SAFETY: `nest` is the level opened above, and `user` and `context` are what was there.
    unsafe {
        pg_sys::AtEOXact_GUC(true, nest);
        pg_sys::SetUserIdAndSecContext(user, context);
    }
    result
}

/// Sets a setting until the end of the innermost nest level.
pub fn set_local(name: &CStr, value: &CStr) {
    // SAFETY: both are valid C strings; the settings that awty sets are ones that any user may set.
    unsafe {
        pg_sys::set_config_option(
            name.as_ptr(),
            value.as_ptr(),
            pg_sys::GucContext::PGC_USERSET,
            pg_sys::GucSource::PGC_S_SESSION,
            pg_sys::GucAction::GUC_ACTION_SAVE,
            true,
            0,
            false,
        );
    }
}
