//! Counts what has changed in the catalogs, and in what is registered, as word of it arrives.
//!
//! Invariant: what was read while a count was the same as now is still so. A session hears of its own changes at the end of the
//! statement that makes them, and of others' whenever it takes a lock, or asks by [`listen`].
//! Does not: say what has changed.

use super::catalog;
use pgrx::pg_sys;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Descriptions of relations, and schemas.
static RELATIONS: AtomicU64 = AtomicU64::new(0);
/// Functions, roles, memberships and schemas.
static FUNCTIONS: AtomicU64 = AtomicU64::new(0);
/// Rows of `awty.job` and of `awty.rule`, and where these tables are. Their triggers send word of every change, of any role's.
static ROWS: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];
static TABLES: [AtomicU32; 2] = [AtomicU32::new(0), AtomicU32::new(0)];
/// The count of relations when the tables were last looked up.
static LOOKED_UP: AtomicU64 = AtomicU64::new(u64::MAX);

/// Takes in what other sessions have changed.
pub fn listen() {
    // SAFETY: a transaction is open.
    unsafe { pg_sys::AcceptInvalidationMessages() };
}

/// Changes of any relation in this database, or of a schema.
pub fn of_relations() -> u64 {
    watch();
    RELATIONS.load(Ordering::Relaxed)
}

/// Changes of functions, roles, memberships and schemas.
pub fn of_functions() -> u64 {
    watch();
    FUNCTIONS.load(Ordering::Relaxed)
}

/// Changes of jobs.
pub fn of_jobs() -> u64 {
    of_rows(0)
}

/// Changes of rules.
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
        // SAFETY: the callbacks only count, and the library that they are in is never unloaded.
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
/// Called by PostgreSQL, whenever the description of a table may have changed; of any table if it names none.
unsafe extern "C-unwind" fn relation_changed(_argument: pg_sys::Datum, table: pg_sys::Oid) {
    RELATIONS.fetch_add(1, Ordering::Relaxed);
    for (known, rows) in TABLES.iter().zip(&ROWS) {
        if table == pg_sys::InvalidOid || table.to_u32() == known.load(Ordering::Relaxed) {
            rows.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// # Safety
/// Called by PostgreSQL, whenever an invalidation arrives.
unsafe extern "C-unwind" fn function_changed(_argument: pg_sys::Datum, _cache: i32, _hash: u32) {
    FUNCTIONS.fetch_add(1, Ordering::Relaxed);
}

/// # Safety
/// Called by PostgreSQL, whenever an invalidation arrives.
unsafe extern "C-unwind" fn schema_changed(_argument: pg_sys::Datum, _cache: i32, _hash: u32) {
    FUNCTIONS.fetch_add(1, Ordering::Relaxed);
    RELATIONS.fetch_add(1, Ordering::Relaxed);
}
