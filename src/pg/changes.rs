//! Counts changes of tables and functions, so that a session knows whether its cached data is current. A session sees
//! other sessions' changes when it takes a lock or calls [`listen`].

use super::catalog;
use pgrx::pg_sys;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

static RELATIONS: AtomicU64 = AtomicU64::new(0);
static FUNCTIONS: AtomicU64 = AtomicU64::new(0);
/// Counts changes to rows of `awty.job`, `awty.rule` and `awty.calendar`. Triggers announce each change to all sessions
/// (see [`rows_changed`]).
static ROWS: AtomicU64 = AtomicU64::new(0);
static TYPE: AtomicU32 = AtomicU32::new(0);
static LOOKED_UP: AtomicU64 = AtomicU64::new(u64::MAX);

pub fn listen() {
    // SAFETY: a transaction is open, so PostgreSQL can reload catalog entries.
    unsafe { pg_sys::AcceptInvalidationMessages() };
}

pub fn of_relations() -> u64 {
    watch();
    RELATIONS.load(Ordering::Relaxed)
}

pub fn of_functions() -> u64 {
    watch();
    FUNCTIONS.load(Ordering::Relaxed)
}

pub fn of_rows() -> u64 {
    let relations = of_relations();
    if LOOKED_UP.load(Ordering::Relaxed) != relations {
        let oid = type_of_changes().unwrap_or(pg_sys::InvalidOid).to_u32();
        if TYPE.swap(oid, Ordering::Relaxed) != oid {
            ROWS.fetch_add(1, Ordering::Relaxed);
        }
        LOOKED_UP.store(relations, Ordering::Relaxed);
    }
    ROWS.load(Ordering::Relaxed)
}

fn type_of_changes() -> Option<pg_sys::Oid> {
    catalog::relation(c"awty_internal", c"change")
}

/// Tells all sessions that a row has changed, through PostgreSQL's cache invalidation. Invalidates an unused type,
/// because thousands of recursive invalidations of a table would make its queries fail.
pub fn rows_changed() {
    if let Some(oid) = type_of_changes() {
        // SAFETY: a transaction is open, and the type has a row in pg_class.
        unsafe { pg_sys::CacheInvalidateRelcacheByRelid(oid) };
    }
}

fn watch() {
    static WATCHING: Once = Once::new();
    WATCHING.call_once(|| {
        // SAFETY: the callbacks only increment counters, and their library is never unloaded.
        unsafe {
            pg_sys::CacheRegisterRelcacheCallback(Some(relation_changed), pg_sys::Datum::from(0));
            for cache in [
                pg_sys::SysCacheIdentifier::PROCOID,
                pg_sys::SysCacheIdentifier::AUTHOID,
                pg_sys::SysCacheIdentifier::AUTHMEMROLEMEM,
            ] {
                pg_sys::CacheRegisterSyscacheCallback(cache as i32, Some(function_changed), pg_sys::Datum::from(0));
            }
            let schemas = pg_sys::SysCacheIdentifier::NAMESPACEOID;
            pg_sys::CacheRegisterSyscacheCallback(schemas as i32, Some(schema_changed), pg_sys::Datum::from(0));
        }
    });
}

/// PostgreSQL passes an invalid `table` if any table may have changed.
unsafe extern "C-unwind" fn relation_changed(_argument: pg_sys::Datum, table: pg_sys::Oid) {
    RELATIONS.fetch_add(1, Ordering::Relaxed);
    if table == pg_sys::InvalidOid || table.to_u32() == TYPE.load(Ordering::Relaxed) {
        ROWS.fetch_add(1, Ordering::Relaxed);
    }
}

unsafe extern "C-unwind" fn function_changed(_argument: pg_sys::Datum, _cache: i32, _hash: u32) {
    FUNCTIONS.fetch_add(1, Ordering::Relaxed);
}

unsafe extern "C-unwind" fn schema_changed(_argument: pg_sys::Datum, _cache: i32, _hash: u32) {
    FUNCTIONS.fetch_add(1, Ordering::Relaxed);
    RELATIONS.fetch_add(1, Ordering::Relaxed);
}
