//! Runs code as the owner of awty's tables, with a fixed `search_path`.
//!
//! Invariant: no user's code runs inside [`as_owner`], because every name is qualified or in `pg_catalog`, and only the
//! owner can add triggers, rules or policies to awty's tables.

use super::{catalog, changes};
use pgrx::pg_sys;
use std::cell::Cell;
use std::ffi::CStr;

const SEARCH_PATH: &CStr = c"pg_catalog, pg_temp";

pub fn as_owner<R>(body: impl FnOnce() -> R) -> R {
    as_user(owner(), pg_sys::SECURITY_LOCAL_USERID_CHANGE, || {
        pin_search_path();
        // Sets `plan_cache_mode` to `auto`, because another value can make PostgreSQL plan awty's statements at each
        // execution.
        // SAFETY: no other thread uses this setting.
        if unsafe { pg_sys::plan_cache_mode } != pg_sys::PlanCacheMode::PLAN_CACHE_MODE_AUTO as i32 {
            set_local(c"plan_cache_mode", c"auto");
        }
        body()
    })
}

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

pub(super) fn pin_search_path() {
    // SAFETY: the setting always points to a C string.
    if unsafe { CStr::from_ptr(pg_sys::namespace_search_path) } != SEARCH_PATH {
        set_local(c"search_path", SEARCH_PATH);
    }
}

pub(super) fn as_user<R>(role: pg_sys::Oid, flags: u32, body: impl FnOnce() -> R) -> R {
    let mut user = pg_sys::InvalidOid;
    let mut context = 0;
    // SAFETY: the code below, or an abort, restores the old user and settings.
    let nest = unsafe {
        pg_sys::GetUserIdAndSecContext(&mut user, &mut context);
        let nest = pg_sys::NewGUCNestLevel();
        pg_sys::SetUserIdAndSecContext(role, context | flags as i32);
        nest
    };
    let result = body();
    // SAFETY: `nest`, `user` and `context` were saved above, before `body` ran.
    unsafe {
        // Passes `false`, so that settings that a user's code has changed get their old values again.
        pg_sys::AtEOXact_GUC(false, nest);
        pg_sys::SetUserIdAndSecContext(user, context);
    }
    result
}

pub fn set_local(name: &CStr, value: &CStr) {
    // SAFETY: `name` and `value` are C strings, and any user may change these settings.
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
