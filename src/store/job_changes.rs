//! Word of changes of `awty.job`: the trigger `job_changed` sends an invalidation of the table, which arrives here.
//!
//! Invariant: what a session remembers of jobs is not older than the transaction that uses it.
//! Does not: say which job has changed.

use crate::pg::relations;
use pgrx::pg_sys;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

static TABLE: AtomicU32 = AtomicU32::new(0);
static EPOCH: AtomicU64 = AtomicU64::new(0);

/// Counts the changes of `awty.job` that this session has heard of: of its own at once, of others at the start of each
/// transaction. Its trigger sends word of every change, of any role's.
pub fn epoch() -> u64 {
    static WATCHING: Once = Once::new();
    let table = relations::oid(relations::JOB).unwrap_or(pg_sys::InvalidOid);
    if TABLE.swap(table.to_u32(), Ordering::Relaxed) != table.to_u32() {
        EPOCH.fetch_add(1, Ordering::Relaxed);
    }
    WATCHING.call_once(|| {
        // SAFETY: the callback only counts, and the library that it is in is never unloaded.
        unsafe { pg_sys::CacheRegisterRelcacheCallback(Some(changed), pg_sys::Datum::from(0)) };
    });
    EPOCH.load(Ordering::Relaxed)
}

/// # Safety
/// Called by PostgreSQL, whenever the description of a table may have changed; of any table if it names none.
unsafe extern "C-unwind" fn changed(_argument: pg_sys::Datum, table: pg_sys::Oid) {
    if table == pg_sys::InvalidOid || table.to_u32() == TABLE.load(Ordering::Relaxed) {
        EPOCH.fetch_add(1, Ordering::Relaxed);
    }
}
