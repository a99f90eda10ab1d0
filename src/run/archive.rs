//! Puts finished checks into the history without a statement: of a run's work this was the greatest part when an executor
//! was started for each row.
//!
//! Invariant: a row goes where INSERT would put it, with the same indexes and locks, and only where INSERT would do nothing
//! else: a history that an administrator has given triggers, constraints or special indexes is left to INSERT.
//! Does not: know what the columns mean (see `store::history`).

use crate::clock::Timestamp;
use crate::extension;
use pgrx::pg_sys;

/// A value, or NULL.
pub type Value = Option<pg_sys::Datum>;

const LOCK: pg_sys::LOCKMODE = pg_sys::RowExclusiveLock as pg_sys::LOCKMODE;
const KEEP: pg_sys::LOCKMODE = pg_sys::NoLock as pg_sys::LOCKMODE;

/// The partition of `awty.future_job_history` for one time, open for rows.
pub struct Partition {
    parent: pg_sys::Relation,
    relation: pg_sys::Relation,
    indexes: pg_sys::CatalogIndexState,
}

impl Partition {
    /// The one that takes rows of that time; `None` if INSERT is to do it.
    pub fn open(at: Timestamp) -> Option<Self> {
        let parent = extension::table(c"future_job_history")?;
        // SAFETY: relations that exist, as the parent is locked before its partitions are looked at; the locks are kept until the
        // transaction ends. Whatever is opened is closed by `drop`, or by the abort after an ERROR.
        unsafe {
            let parent = pg_sys::table_open(parent, LOCK);
            let Some(partition) = find(pg_sys::RelationGetPartitionDesc(parent, true), at) else {
                pg_sys::table_close(parent, KEEP);
                return None;
            };
            let relation = pg_sys::table_open(partition, LOCK);
            let opened = Self { parent, relation, indexes: pg_sys::CatalogOpenIndexes(relation) };
            opened.hold_locks();
            opened.is_plain().then_some(opened)
        }
    }

    fn hold_locks(&self) {
        // SAFETY: all of it is open.
        unsafe {
            let indexes = &*self.indexes;
            let indexes = (0..indexes.ri_NumIndices as usize).map(|which| *indexes.ri_IndexRelationDescs.add(which));
            [self.parent, self.relation]
                .into_iter()
                .chain(indexes)
                .for_each(|open| extension::hold_too((*open).rd_id, LOCK));
        }
    }

    /// Would INSERT do no more than put rows into the table and its indexes?
    fn is_plain(&self) -> bool {
        // SAFETY: all of it is open.
        unsafe {
            let (parent, relation) = (&*self.parent, &*self.relation);
            let class = &*relation.rd_rel;
            let constraints = (*relation.rd_att).constr.as_ref();
            let indexes = &*self.indexes;
            let is_plain_index = |which: usize| {
                let (info, index) =
                    (&**indexes.ri_IndexRelationInfo.add(which), &**indexes.ri_IndexRelationDescs.add(which));
                info.ii_Expressions.is_null()
                    && info.ii_Predicate.is_null()
                    && info.ii_ExclusionOps.is_null()
                    && (*index.rd_index).indimmediate
            };
            class.relam == pg_sys::HEAP_TABLE_AM_OID
                && class.relkind == pg_sys::RELKIND_RELATION as std::ffi::c_char
                && pg_sys::convert_tuples_by_name(parent.rd_att, relation.rd_att).is_null()
                && parent.trigdesc.is_null()
                && relation.trigdesc.is_null()
                && constraints.is_none_or(|found| found.num_check == 0 && !found.has_generated_stored)
                && (0..indexes.ri_NumIndices as usize).all(is_plain_index)
        }
    }

    /// Inserts a row.
    pub fn insert<const COLUMNS: usize>(&self, row: [Value; COLUMNS]) {
        let mut values = row.map(|value| value.unwrap_or(pg_sys::Datum::from(0)));
        let mut nulls = row.map(|value| value.is_none());
        // SAFETY: the partition is open; one value for each of its columns, which `open` and this have compared.
        unsafe {
            let columns = (*self.relation).rd_att;
            assert_eq!((*columns).natts as usize, COLUMNS, "awty.future_job_history has other columns");
            let tuple = pg_sys::heap_form_tuple(columns, values.as_mut_ptr(), nulls.as_mut_ptr());
            pg_sys::CatalogTupleInsertWithInfo(self.relation, tuple, self.indexes);
            pg_sys::heap_freetuple(tuple);
        }
    }
}

impl Drop for Partition {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: opened by `open`. After an ERROR the abort has closed them, or is about to.
            unsafe {
                pg_sys::CatalogCloseIndexes(self.indexes);
                pg_sys::table_close(self.relation, KEEP);
                pg_sys::table_close(self.parent, KEEP);
            }
        }
    }
}

/// The partition for that time, as PostgreSQL finds it: the bounds are in order, and above each of them begins the
/// partition of the next index.
///
/// # Safety
/// Must be what `RelationGetPartitionDesc()` gave for a table that is partitioned by ranges of one timestamptz.
unsafe fn find(partitions: pg_sys::PartitionDesc, at: Timestamp) -> Option<pg_sys::Oid> {
    // SAFETY: as the caller says: one bound of one value each, and one index more than bounds.
    unsafe {
        let bounds = (*partitions).boundinfo.as_ref()?;
        let is_below = |bound: usize| match **bounds.kind.add(bound) {
            pg_sys::PartitionRangeDatumKind::PARTITION_RANGE_DATUM_MINVALUE => true,
            pg_sys::PartitionRangeDatumKind::PARTITION_RANGE_DATUM_MAXVALUE => false,
            _ => (**bounds.datums.add(bound)).value() as Timestamp <= at,
        };
        let below = (0..bounds.ndatums as usize).take_while(|bound| is_below(*bound)).count();
        let index = match *bounds.indexes.add(below) {
            -1 => bounds.default_index,
            index => index,
        };
        (index >= 0).then(|| *(*partitions).oids.add(index as usize))
    }
}
