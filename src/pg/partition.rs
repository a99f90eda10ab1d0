//! Finds tables in the partition tree of a table that another role owns.
//!
//! When PostgreSQL plans a query of a partitioned table, it evaluates constant parts of the indexes, statistics and
//! constraints of each partition as the user who executes the query. A partition also has the indexes of the partitioned
//! table above it.

use super::table::{self, Described};
use super::{catalog, unbound};
use pgrx::pg_sys;

const NO_LOCK: pg_sys::LOCKMODE = pg_sys::NoLock as pg_sys::LOCKMODE;
const READ: pg_sys::LOCKMODE = pg_sys::AccessShareLock as pg_sys::LOCKMODE;

/// Returns a partition of the table, or a partitioned table above it, whose owner is another role and no
/// superuser. If `locks` is set, locks the table and its partitions against another owner until the end of the
/// transaction.
pub fn of_another_role(table: &Described, locks: bool) -> Option<Described> {
    if locks && table.kind != table::Kind::Plain {
        // PostgreSQL would wait for this lock only after the comparison.
        // SAFETY: a transaction is open, and the OID need not exist.
        unsafe { pg_sys::LockRelationOid(table.oid, READ) };
    }
    let partitions = match table.kind {
        table::Kind::Partitioned if locks => locked(table.oid),
        _ => all(table),
    };
    let is_others = |oid: &pg_sys::Oid| {
        table::owner(*oid).is_some_and(|owner| owner != table.owner && !catalog::is_superuser(owner))
    };
    partitions.into_iter().chain(above(table.oid)).filter(is_others).find_map(table::describe)
}

/// Returns a partitioned table and its partitions, without a lock.
pub fn all(table: &Described) -> Vec<pg_sys::Oid> {
    match table.kind {
        table::Kind::Partitioned => below(table.oid, NO_LOCK),
        _ => Vec::new(),
    }
}

/// PostgreSQL would lock the partitions only while it plans, after the comparison of their owners. Looks for partitions
/// again, because one may have been attached during the wait for a lock.
fn locked(table: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    let mut known = below(table, READ);
    loop {
        let found = below(table, READ);
        if found == known {
            return found;
        }
        known = found;
    }
}

/// Returns the table and its partitions. Locks the partitions.
pub(super) fn below(table: pg_sys::Oid, lock: pg_sys::LOCKMODE) -> Vec<pg_sys::Oid> {
    // SAFETY: the list is one of OIDs.
    unsafe { oids(unbound::find_all_inheritors(table, lock)) }
}

/// Also returns the tables above a partition that is being detached concurrently, because the planner still uses their
/// partition keys. `get_partition_ancestors()` ends at such a partition.
fn above(table: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    let parent = |table: &pg_sys::Oid| {
        // SAFETY: a transaction is open, and the OID need not exist.
        unsafe { pg_sys::get_rel_relispartition(*table) }.then(|| unbound::get_partition_parent(*table))
    };
    std::iter::successors(parent(&table), parent).collect()
}

/// # Safety
///
/// The list must be one of OIDs. It is freed.
unsafe fn oids(list: *mut pg_sys::List) -> Vec<pg_sys::Oid> {
    // SAFETY: the caller passes a list of OIDs.
    unsafe {
        let length = if list.is_null() { 0 } else { (*list).length as usize };
        let oids = (0..length).map(|place| (*(*list).elements.add(place)).oid_value).collect();
        pg_sys::list_free(list);
        oids
    }
}
