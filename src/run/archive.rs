//! Puts finished checks into the history without a statement: of a run's work this was the greatest part when an executor
//! was started for each row.
//!
//! Invariant: a row goes where INSERT would put it, with the same indexes and locks, and only where INSERT would do nothing
//! else: a history that an administrator has given triggers, constraints or special indexes is left to INSERT.
//! Does not: know what the columns mean (see `store::history`).

use crate::clock::Timestamp;
use crate::extension;
use pgrx::pg_sys;

/// So many columns has `awty.future_job_history`.
pub const COLUMNS: usize = 19;
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
        let history = extension::table(c"future_job_history")?;
        // SAFETY: relations that exist, as the parent is locked before its partitions are looked at; the locks are kept until the
        // transaction ends. Whatever is opened is closed by `drop`, or by the abort after an ERROR.
        unsafe {
            let parent = pg_sys::table_open(history, LOCK);
            let Some(partition) = find(pg_sys::RelationGetPartitionDesc(parent, true), at) else {
                pg_sys::table_close(parent, KEEP);
                return None;
            };
            let relation = pg_sys::table_open(partition, LOCK);
            let opened = Self { parent, relation, indexes: pg_sys::CatalogOpenIndexes(relation) };
            // What would make it another table has to wait for these locks, unless a job has done it itself.
            let known = extension::is_held(partition, LOCK);
            if !opened.has_plain_indexes() || !known && !opened.is_plain() {
                return None;
            }
            opened.hold_locks();
            Some(opened)
        }
    }

    /// The parent is held already where anything is.
    fn hold_locks(&self) {
        // SAFETY: all of it is open.
        let partition = unsafe { (*self.relation).rd_id };
        let indexes = self.indexes().map(|(index, _)| index.rd_id);
        std::iter::once(partition).chain(indexes).for_each(|oid| extension::hold_too(oid, LOCK));
    }

    fn indexes(&self) -> impl Iterator<Item = (&pg_sys::RelationData, &pg_sys::IndexInfo)> {
        // SAFETY: they are open, and there are as many of each as is said there.
        unsafe {
            let indexes = &*self.indexes;
            (0..indexes.ri_NumIndices as usize)
                .map(|which| (&**indexes.ri_IndexRelationDescs.add(which), &**indexes.ri_IndexRelationInfo.add(which)))
        }
    }

    /// Can a row be put into each index as it is, with no expression to be computed?
    fn has_plain_indexes(&self) -> bool {
        self.indexes().all(|(index, info)| {
            // SAFETY: an index that is open has its row of the catalog.
            let immediate = unsafe { (*index.rd_index).indimmediate };
            info.ii_Expressions.is_null() && info.ii_Predicate.is_null() && info.ii_ExclusionOps.is_null() && immediate
        })
    }

    /// Would INSERT do no more than put rows into the table and its indexes?
    fn is_plain(&self) -> bool {
        // SAFETY: all of it is open.
        unsafe {
            let (parent, relation) = (&*self.parent, &*self.relation);
            let class = &*relation.rd_rel;
            let constraints = (*relation.rd_att).constr.as_ref();
            class.relam == pg_sys::HEAP_TABLE_AM_OID
                && class.relkind == pg_sys::RELKIND_RELATION as std::ffi::c_char
                && pg_sys::convert_tuples_by_name(parent.rd_att, relation.rd_att).is_null()
                && parent.trigdesc.is_null()
                && relation.trigdesc.is_null()
                && constraints.is_none_or(|found| found.num_check == 0 && !found.has_generated_stored)
        }
    }

    /// Inserts rows, each with a value for every column.
    pub fn insert(&self, rows: impl Iterator<Item = [Value; COLUMNS]>) {
        let tuples: Vec<pg_sys::HeapTuple> = rows.map(|row| self.form(row)).collect();
        // SAFETY: the partition is open; the tuples live in the transaction's memory, and the slots until they are dropped.
        unsafe {
            if let [tuple] = tuples[..] {
                return pg_sys::CatalogTupleInsertWithInfo(self.relation, tuple, self.indexes);
            }
            // A copy that nobody counts references to: to remember hundreds of references to one thing, and to forget them, is
            // what PostgreSQL's resource owners are slow at.
            let columns = pg_sys::CreateTupleDescCopy((*self.relation).rd_att);
            let mut slots: Vec<*mut pg_sys::TupleTableSlot> = tuples
                .into_iter()
                .map(|tuple| {
                    let slot = pg_sys::MakeSingleTupleTableSlot(columns, &pg_sys::TTSOpsHeapTuple);
                    pg_sys::ExecStoreHeapTuple(tuple, slot, false)
                })
                .collect();
            let count = slots.len() as i32;
            pg_sys::CatalogTuplesMultiInsertWithInfo(self.relation, slots.as_mut_ptr(), count, self.indexes);
            slots.into_iter().for_each(|slot| pg_sys::ExecDropSingleTupleTableSlot(slot));
        }
    }

    fn form(&self, row: [Value; COLUMNS]) -> pg_sys::HeapTuple {
        let mut values = row.map(|value| value.unwrap_or(pg_sys::Datum::from(0)));
        let mut nulls = row.map(|value| value.is_none());
        // SAFETY: the partition is open; one value for each of its columns.
        unsafe {
            let columns = (*self.relation).rd_att;
            assert_eq!((*columns).natts as usize, COLUMNS, "awty.future_job_history has other columns");
            pg_sys::heap_form_tuple(columns, values.as_mut_ptr(), nulls.as_mut_ptr())
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
