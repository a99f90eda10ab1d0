//! Counts changes of catalogs and of awty's registered objects, as invalidation messages arrive.
//!
//! Invariant: data that was read while a count had its present value are still current. A session sees its own changes
//! at the end of their statement, and changes of other sessions whenever it takes a lock or calls [`listen`].

use super::catalog;
use pgrx::pg_sys;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Changes of relations and schemas.
static RELATIONS: AtomicU64 = AtomicU64::new(0);
/// Changes of functions, roles, memberships and schemas.
static FUNCTIONS: AtomicU64 = AtomicU64::new(0);
/// Rows of `awty.job` and `awty.rule`, and the OIDs of these tables. Triggers on the tables send an invalidation for
/// every change.
static ROWS: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];
static TABLES: [AtomicU32; 2] = [AtomicU32::new(0), AtomicU32::new(0)];
/// Count of changes when the OIDs were last looked up.
static LOOKED_UP: AtomicU64 = AtomicU64::new(u64::MAX);

/// Receives the changes of other sessions.
pub fn listen() {
    // SAFETY: a transaction is open.
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

pub fn of_jobs() -> u64 {
    of_rows(0)
}

pub fn of_rules() -> u64 {
    of_rows(1)
}

fn of_rows(table: usize) -> u64 {
    let relations = of_relations();
    if LOOKED_UP.load(Ordering::Relaxed) != relations {
        for ((known, rows), name) in TABLES.iter().zip(&ROWS).zip([c"job", c"rule"]) {
            let table = catalog::relation(c"awty", name).unwrap_or(pg_sys::InvalidOid).to_u32();
            if known.swap(table, Ordering::Relaxed) != table {
                rows.fetch_add(1, Ordering::Relaxed);
            }
        }
        LOOKED_UP.store(relations, Ordering::Relaxed);
    }
    ROWS[table].load(Ordering::Relaxed)
}

fn watch() {
    static WATCHING: Once = Once::new();
    WATCHING.call_once(|| {
        // SAFETY: the callbacks only count, and their library is never unloaded.
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

/// # Safety
/// PostgreSQL calls it when the description of a table may have changed; of all tables if `table` is invalid.
unsafe extern "C-unwind" fn relation_changed(_argument: pg_sys::Datum, table: pg_sys::Oid) {
    RELATIONS.fetch_add(1, Ordering::Relaxed);
    for (known, rows) in TABLES.iter().zip(&ROWS) {
        if table == pg_sys::InvalidOid || table.to_u32() == known.load(Ordering::Relaxed) {
            rows.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// # Safety
/// PostgreSQL calls it when an invalidation arrives.
unsafe extern "C-unwind" fn function_changed(_argument: pg_sys::Datum, _cache: i32, _hash: u32) {
    FUNCTIONS.fetch_add(1, Ordering::Relaxed);
}

/// # Safety
/// PostgreSQL calls it when an invalidation arrives.
unsafe extern "C-unwind" fn schema_changed(_argument: pg_sys::Datum, _cache: i32, _hash: u32) {
    FUNCTIONS.fetch_add(1, Ordering::Relaxed);
    RELATIONS.fetch_add(1, Ordering::Relaxed);
}
