//! Inserts rows into a partitioned table without an executor, as COPY FROM does, because starting an executor costs
//! more than inserting the row.
//!
//! Invariant: a row is inserted in this way only if an INSERT would have the same result.
//!
//! Does not: fire triggers. The table may have no foreign key and no deferrable constraint, because both need triggers.

use super::owner::as_owner;
use super::{changes, unbound};
use pgrx::{PgTupleDesc, pg_sys};
use std::cell::RefCell;
use std::ffi::CStr;

pub type Column = (&'static CStr, pg_sys::Oid);

const LOCK: pg_sys::LOCKMODE = pg_sys::RowExclusiveLock as pg_sys::LOCKMODE;

/// Inserts the rows in order, and stops at the first row that needs an SQL INSERT. Returns the number of inserted rows.
pub fn insert<const N: usize>(table: pg_sys::Oid, columns: &[Column; N], rows: &[[Option<pg_sys::Datum>; N]]) -> usize {
    // SAFETY: the caller has locked the table, so the relation stays valid.
    as_owner(|| unsafe {
        let relation = pg_sys::table_open(table, LOCK);
        let inserted = if is_plain(relation, columns) { insert_into(relation, columns, rows) } else { 0 };
        pg_sys::table_close(relation, pg_sys::NoLock as pg_sys::LOCKMODE);
        inserted
    })
}

unsafe fn insert_into<const N: usize>(
    relation: pg_sys::Relation,
    columns: &[Column; N],
    rows: &[[Option<pg_sys::Datum>; N]],
) -> usize {
    // SAFETY: the table is open, and the code makes the same calls as PostgreSQL's COPY FROM. `estate` is freed last.
    unsafe {
        let estate = pg_sys::CreateExecutorState();
        let memory = pg_sys::MemoryContextSwitchTo((*estate).es_query_cxt);
        let slot = pg_sys::MakeSingleTupleTableSlot((*relation).rd_att, &raw const pg_sys::TTSOpsVirtual);
        let state = target(estate, relation);
        let routing = unbound::exec_setup_partition_tuple_routing(estate, relation);
        let mut inserted = 0;
        for row in rows {
            pg_sys::ExecClearTuple(slot);
            for (n, value) in row.iter().enumerate() {
                *(*slot).tts_values.add(n) = value.unwrap_or(pg_sys::Datum::from(0));
                *(*slot).tts_isnull.add(n) = value.is_none();
            }
            pg_sys::ExecStoreVirtualTuple(slot);
            let partition = unbound::exec_find_partition(state, routing, slot, estate);
            if !is_plain((*partition).ri_RelationDesc, columns) {
                break;
            }
            write(partition, slot, estate);
            inserted += 1;
        }
        unbound::exec_cleanup_tuple_routing(state, routing);
        pg_sys::ExecDropSingleTupleTableSlot(slot);
        // Frees the tuple slots that routing has created for partitions with another column order.
        pg_sys::ExecResetTupleTable((*estate).es_tupleTable, false);
        pg_sys::MemoryContextSwitchTo(memory);
        pg_sys::FreeExecutorState(estate);
        pg_sys::CommandCounterIncrement();
        inserted
    }
}

/// # Safety
///
/// `relation` stays open as long as `estate` exists. The memory context of `estate` is current.
unsafe fn target(estate: *mut pg_sys::EState, relation: pg_sys::Relation) -> *mut pg_sys::ModifyTableState {
    // SAFETY: zeroed memory with its tag is a valid node.
    unsafe {
        let entry = node::<pg_sys::RangeTblEntry>(pg_sys::NodeTag::T_RangeTblEntry);
        (*entry).rtekind = pg_sys::RTEKind::RTE_RELATION;
        (*entry).relid = (*relation).rd_id;
        (*entry).relkind = (*(*relation).rd_rel).relkind;
        (*entry).rellockmode = LOCK;
        let range_table = pg_sys::lappend(std::ptr::null_mut(), entry.cast());
        #[cfg(feature = "pg15")]
        pg_sys::ExecInitRangeTable(estate, range_table);
        #[cfg(not(feature = "pg15"))]
        {
            let mut rights = std::ptr::null_mut();
            pg_sys::addRTEPermissionInfo(&mut rights, entry);
            #[cfg(not(feature = "pg18"))]
            pg_sys::ExecInitRangeTable(estate, range_table, rights);
            #[cfg(feature = "pg18")]
            pg_sys::ExecInitRangeTable(estate, range_table, rights, pg_sys::bms_make_singleton(1));
        }
        let root = node::<pg_sys::ResultRelInfo>(pg_sys::NodeTag::T_ResultRelInfo);
        pg_sys::InitResultRelInfo(root, relation, 1, std::ptr::null_mut(), 0);
        let state = node::<pg_sys::ModifyTableState>(pg_sys::NodeTag::T_ModifyTableState);
        (*state).ps.state = estate;
        (*state).operation = pg_sys::CmdType::CMD_INSERT;
        (*state).mt_nrels = 1;
        (*state).resultRelInfo = root;
        (*state).rootResultRelInfo = root;
        state
    }
}

unsafe fn node<T>(tag: pg_sys::NodeTag) -> *mut T {
    // SAFETY: every node type begins with its tag, and `tag` is that of `T`.
    unsafe {
        let node = pg_sys::palloc0(size_of::<T>());
        *node.cast::<pg_sys::NodeTag>() = tag;
        node.cast()
    }
}

unsafe fn write(partition: *mut pg_sys::ResultRelInfo, slot: *mut pg_sys::TupleTableSlot, estate: *mut pg_sys::EState) {
    // SAFETY: the partition is open, and the slot has a row of this partition.
    unsafe {
        let relation = (*partition).ri_RelationDesc;
        (*slot).tts_tableOid = (*relation).rd_id;
        if !(*(*relation).rd_att).constr.is_null() {
            pg_sys::ExecConstraints(partition, slot, estate);
        }
        pg_sys::table_tuple_insert(relation, slot, pg_sys::GetCurrentCommandId(true), 0, std::ptr::null_mut());
        if (*partition).ri_NumIndices > 0 {
            pg_sys::ExecInsertIndexTuples(
                partition,
                slot,
                estate,
                false,
                false,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                #[cfg(not(feature = "pg15"))]
                false,
            );
        }
        pg_sys::MemoryContextReset((*(*estate).es_per_tuple_exprcontext).ecxt_per_tuple_memory);
    }
}

/// Returns whether awty can insert rows without SQL into this table, or into its partitions if the table is
/// partitioned.
unsafe fn is_plain(relation: pg_sys::Relation, columns: &[Column]) -> bool {
    thread_local! {
        static PLAIN: RefCell<(u64, Vec<pg_sys::Oid>)> = const { RefCell::new((0, Vec::new())) };
    }
    // SAFETY: the caller has opened and locked the relation.
    unsafe {
        let (changes, table) = (changes::of_relations(), (*relation).rd_id);
        PLAIN.with_borrow_mut(|(then, known)| {
            if *then != changes {
                known.clear();
                *then = changes;
            }
            if !known.contains(&table) && needs_no_sql(relation) && are_columns(relation, columns) {
                known.push(table);
            }
            known.contains(&table)
        })
    }
}

unsafe fn needs_no_sql(relation: pg_sys::Relation) -> bool {
    const KINDS: [u8; 2] = [pg_sys::RELKIND_PARTITIONED_TABLE, pg_sys::RELKIND_RELATION];
    // SAFETY: the relation is open, so its cache entry is valid.
    unsafe {
        let class = &*(*relation).rd_rel;
        KINDS.contains(&(class.relkind as u8))
            && (*relation).trigdesc.is_null()
            && (*relation).rd_rules.is_null()
            && !class.relforcerowsecurity
            && class.relowner == pg_sys::GetUserId()
    }
}

unsafe fn are_columns(relation: pg_sys::Relation, columns: &[Column]) -> bool {
    // SAFETY: the relation is open, and the names of its columns are C strings.
    unsafe {
        let present = PgTupleDesc::from_pg_unchecked((*relation).rd_att);
        present.len() == columns.len()
            && present.iter().zip(columns).all(|(column, (name, kind))| {
                CStr::from_ptr(column.attname.data.as_ptr()) == *name
                    && column.atttypid == *kind
                    && column.atttypmod == -1
                    && !column.atthasdef
            })
    }
}
