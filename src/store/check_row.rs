//! Reads and locks the row of a check.
//!
//! Locks rows by the table's access method instead of SQL, because the access method tells whether another transaction
//! or the run itself has changed the row.
//!
//! Invariant: a TID is used only in the transaction that read it, because this transaction's table lock and snapshot
//! keep the TID valid.

mod own;
mod row;

use crate::pg::clock::{self, Timestamp};
use crate::pg::relations;
use crate::pg::subtransaction::undone_or_raised;
use crate::store::future_job;
use awty_core::{Answer, Time};
use pgrx::{FromDatum, IntoDatum, pg_sys};
use std::cell::RefCell;
use std::collections::HashSet;

pub struct Table {
    relation: pg_sys::Relation,
    key: pg_sys::Oid,
    slot: *mut pg_sys::TupleTableSlot,
    is_latest: bool,
    /// Whether a method that locks a row releases the lock before it returns. Only `awty.travel()` needs such short
    /// locks.
    gives_back: bool,
}

pub struct Row {
    pub id: i64,
    tid: pg_sys::ItemPointerData,
    is_own: bool,
    command: pg_sys::CommandId,
    pub slot: Time,
    pub check_count: i32,
    pub attempt: i32,
    pub held: bool,
    pub datum: pg_sys::Datum,
    columns: (Vec<pg_sys::Datum>, Vec<bool>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Locked {
    Same,
    Own,
    Other,
}

#[derive(Clone, Copy, Debug)]
pub struct Busy;

const ID: usize = 1;
const JOB: usize = 2;
const ENTITY_NAME: usize = 3;
const ENTITY_KEY: usize = 4;
const ARGS: usize = 5;
const FIRST_CHECK_AT: usize = 6;
const NEXT_CHECK_AT: usize = 7;
const CHECK_COUNT: usize = 8;
const ATTEMPT: usize = 9;
const HELD: usize = 10;
const SCHEDULED_BY: usize = 11;
const SCHEDULED_AT: usize = 12;

impl Table {
    pub fn open() -> Option<Self> {
        let table = Self::open_as_it_is()?;
        // Takes a new snapshot after the table is locked. In an older snapshot, a table that another session has
        // rewritten seems empty.
        // SAFETY: the caller has pushed the snapshot that is popped here.
        unsafe {
            pg_sys::PopActiveSnapshot();
            pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        }
        Some(table)
    }

    /// Takes new snapshots, so that a client's transaction also reads rows that were committed after its start.
    pub fn open_latest() -> Option<Self> {
        let mut table = Self::open_as_it_is()?;
        table.is_latest = true;
        // SAFETY: `drop` pops this snapshot. After an ERROR, the transaction's abort pops it.
        unsafe { pg_sys::PushActiveSnapshot(pg_sys::GetLatestSnapshot()) };
        Some(table)
    }

    pub fn open_to_travel() -> Option<Self> {
        let mut table = Self::open()?;
        table.gives_back = true;
        Some(table)
    }

    fn open_as_it_is() -> Option<Self> {
        let oid = relations::oid(relations::FUTURE_JOB)?;
        const MODE: pg_sys::LOCKMODE = pg_sys::RowExclusiveLock as pg_sys::LOCKMODE;
        // SAFETY: the table exists, and its lock is kept until the transaction ends.
        unsafe {
            let relation = pg_sys::table_open(oid, MODE);
            #[cfg(not(feature = "pg18"))]
            let key = pg_sys::RelationGetPrimaryKeyIndex(relation);
            #[cfg(feature = "pg18")]
            let key = pg_sys::RelationGetPrimaryKeyIndex(relation, false);
            let slot = pg_sys::table_slot_create(relation, std::ptr::null_mut());
            Some(Self { relation, key, slot, is_latest: false, gives_back: false })
        }
    }

    fn columns(&self) -> pg_sys::TupleDesc {
        // SAFETY: the relation stays open until this object is dropped.
        unsafe { (*self.relation).rd_att }
    }

    pub fn read(&self, id: i64) -> Option<Row> {
        self.scan(pg_sys::Datum::from(id), 0).pop()
    }

    pub fn read_all(&self, ids: impl ExactSizeIterator<Item = i64>) -> Vec<Row> {
        // SAFETY: a backend has only one thread, so no other thread writes `IgnoreSystemIndexes` during the read.
        let has_index = self.key != pg_sys::InvalidOid && !unsafe { pg_sys::IgnoreSystemIndexes };
        if ids.len() < 2 || !has_index {
            // Reads the checks one by one, because PostgreSQL can look up an array of ids only with an index.
            return ids.filter_map(|id| self.read(id)).collect();
        }
        let array = ids.collect::<Vec<_>>().into_datum();
        array.map_or_else(Vec::new, |ids| self.scan(ids, pg_sys::SK_SEARCHARRAY as i32))
    }

    fn scan(&self, key: pg_sys::Datum, flags: i32) -> Vec<Row> {
        let mut id = pg_sys::ScanKeyData::default();
        let mut rows = Vec::new();
        // SAFETY: the relation is open, a snapshot is active, and the scan key fits the primary key. `decode` copies
        // each tuple.
        unsafe {
            pg_sys::ScanKeyInit(
                &mut id,
                ID as i16,
                pg_sys::BTEqualStrategyNumber as u16,
                pg_sys::Oid::from(pg_sys::F_INT8EQ),
                key,
            );
            id.sk_flags |= flags;
            let has_key = self.key != pg_sys::InvalidOid;
            let snapshot = pg_sys::GetActiveSnapshot();
            let scan = pg_sys::systable_beginscan(self.relation, self.key, has_key, snapshot, 1, &mut id);
            loop {
                let tuple = pg_sys::systable_getnext(scan);
                if tuple.is_null() {
                    break;
                }
                rows.extend(self.decode(tuple));
            }
            pg_sys::systable_endscan(scan);
        }
        rows
    }

    /// # Safety
    ///
    /// `tuple` must be a row of this table.
    unsafe fn decode(&self, tuple: pg_sys::HeapTuple) -> Option<Row> {
        // SAFETY: the tuple is a row of this table, so both vectors have an entry for each column that is read.
        unsafe {
            let datum = pg_sys::heap_copy_tuple_as_datum(tuple, self.columns());
            let columns = self.columns_of(datum);
            let at = |column: usize| (!columns.1[column - 1]).then_some(columns.0[column - 1]);
            let number = |column: usize| at(column).map(|datum| datum.value());
            let id = number(ID)? as i64;
            let (Some(slot), Some(check_count), Some(attempt), Some(held)) =
                (number(NEXT_CHECK_AT), number(CHECK_COUNT), number(ATTEMPT), at(HELD))
            else {
                say_invalid(id);
                return None;
            };
            Some(Row {
                id,
                tid: (*tuple).t_self,
                is_own: pg_sys::TransactionIdIsCurrentTransactionId((*(*tuple).t_data).t_choice.t_heap.t_xmin),
                command: pg_sys::GetCurrentCommandId(false),
                slot: clock::clamped(slot as Timestamp),
                check_count: check_count as i32,
                attempt: attempt as i32,
                held: bool::from_datum(held, false)?,
                datum,
                columns,
            })
        }
    }

    /// # Safety
    ///
    /// `datum` must be a row of this table, and all its values must be inline.
    unsafe fn columns_of(&self, datum: pg_sys::Datum) -> (Vec<pg_sys::Datum>, Vec<bool>) {
        // SAFETY: `values` and `nulls` have one entry for each column of the table.
        unsafe {
            let count = (*self.columns()).natts as usize;
            let (mut values, mut nulls) = (vec![pg_sys::Datum::from(0); count], vec![true; count]);
            let header = datum.cast_mut_ptr::<pg_sys::HeapTupleHeaderData>();
            let mut tuple = pg_sys::HeapTupleData {
                t_len: pgrx::varsize_any(header.cast()) as u32,
                t_data: header,
                ..Default::default()
            };
            pg_sys::heap_deform_tuple(&mut tuple, self.columns(), values.as_mut_ptr(), nulls.as_mut_ptr());
            (values, nulls)
        }
    }

    /// The table must come from [`Table::open_latest`], because this function replaces the table's own snapshot.
    pub fn lock_waiting(&self, id: i64) -> Option<Row> {
        loop {
            let row = self.read(id)?;
            match self.lock_as(&row, pg_sys::LockWaitPolicy::LockWaitBlock) {
                Locked::Same => return Some(row),
                Locked::Own => return None,
                // SAFETY: the popped snapshot was pushed by this table itself.
                Locked::Other => unsafe {
                    pg_sys::PopActiveSnapshot();
                    pg_sys::PushActiveSnapshot(pg_sys::GetLatestSnapshot());
                },
            }
        }
    }

    pub fn lock_at_once(&self, id: i64) -> Result<Option<Row>, Busy> {
        for _ in 0..2 {
            let Some(row) = self.read(id) else { return Ok(None) };
            match self.lock(&row) {
                Locked::Same => return Ok(Some(row)),
                Locked::Own => return Ok(None),
                // SAFETY: the popped snapshot was pushed by this table itself.
                Locked::Other => unsafe {
                    pg_sys::PopActiveSnapshot();
                    pg_sys::PushActiveSnapshot(pg_sys::GetLatestSnapshot());
                },
            }
        }
        Err(Busy)
    }

    pub fn lock(&self, row: &Row) -> Locked {
        self.lock_as(row, pg_sys::LockWaitPolicy::LockWaitSkip)
    }

    fn lock_as(&self, row: &Row, policy: pg_sys::LockWaitPolicy::Type) -> Locked {
        if row.is_own {
            return self.look_at_own(row);
        }
        if self.gives_back {
            return undone_or_raised(|| self.take_lock(row, policy));
        }
        self.take_lock(row, policy)
    }

    fn take_lock(&self, row: &Row, policy: pg_sys::LockWaitPolicy::Type) -> Locked {
        let mut tid = row.tid;
        let mut failure = pg_sys::TM_FailureData::default();
        // SAFETY: this transaction has read the row's TID, so the TID is still valid.
        unsafe {
            let result = pg_sys::table_tuple_lock(
                self.relation,
                &mut tid,
                pg_sys::GetActiveSnapshot(),
                self.slot,
                pg_sys::GetCurrentCommandId(false),
                pg_sys::LockTupleMode::LockTupleExclusive,
                policy,
                0,
                &mut failure,
            );
            pg_sys::ExecClearTuple(self.slot);
            found(result)
        }
    }

    /// Deletes the row, which the caller must have locked.
    ///
    /// Deletes by SQL if an administrator has added triggers, foreign keys or rules to the table, because a direct
    /// deletion ignores them.
    pub fn delete(&self, row: &Row) {
        if !self.is_plain() {
            return future_job::remove(&[row.id]);
        }
        let mut tid = row.tid;
        // SAFETY: the relation is open, and this transaction has read and locked the row.
        unsafe { pg_sys::simple_table_tuple_delete(self.relation, &mut tid, pg_sys::GetActiveSnapshot()) };
    }

    pub fn lock_and_delete(&self, row: &Row) -> Locked {
        if self.is_plain() && !row.is_own && !self.gives_back && self.is_deleted_at_once(row) {
            return Locked::Same;
        }
        let locked = self.lock(row);
        if locked == Locked::Same {
            self.delete(row);
        }
        locked
    }

    /// Returns `false` without a change if any transaction has locked or changed the row.
    fn is_deleted_at_once(&self, row: &Row) -> bool {
        let mut tid = row.tid;
        let mut failure = pg_sys::TM_FailureData::default();
        // SAFETY: the relation is open, and this transaction has read the row's TID.
        unsafe {
            // Marks the current command as a writer, so that the next command sees the deletion.
            pg_sys::GetCurrentCommandId(true);
            // Passes the id of the command that read the row. If the job's function has deleted the row, a later
            // command's id would cause an ERROR.
            let result = pg_sys::table_tuple_delete(
                self.relation,
                &mut tid,
                row.command,
                pg_sys::GetActiveSnapshot(),
                std::ptr::null_mut(),
                false,
                &mut failure,
                false,
            );
            result == pg_sys::TM_Result::TM_Ok
        }
    }

    fn is_plain(&self) -> bool {
        // SAFETY: the relation stays open until this object is dropped.
        unsafe { (*self.relation).trigdesc.is_null() && (*self.relation).rd_rules.is_null() }
    }
}

fn found(result: pg_sys::TM_Result::Type) -> Locked {
    match result {
        pg_sys::TM_Result::TM_Ok => Locked::Same,
        pg_sys::TM_Result::TM_SelfModified | pg_sys::TM_Result::TM_Invisible => Locked::Own,
        _ => Locked::Other,
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // After an ERROR, the abort closes the relation.
        if !std::thread::panicking() {
            // SAFETY: the relation is open, and only this object uses the slot.
            unsafe {
                if self.is_latest {
                    pg_sys::PopActiveSnapshot();
                }
                pg_sys::ExecDropSingleTupleTableSlot(self.slot);
                pg_sys::table_close(self.relation, pg_sys::NoLock as pg_sys::LOCKMODE);
            }
        }
    }
}

fn say_invalid(id: i64) {
    thread_local! {
        static SAID: RefCell<HashSet<i64>> = RefCell::default();
    }
    if SAID.with_borrow_mut(|said| said.insert(id)) {
        pgrx::log!("awty: check {id} has an invalid row in awty.future_job, and is not run");
    }
}

pub fn array(rows: impl IntoIterator<Item = pg_sys::Datum>, element: pg_sys::Oid) -> pg_sys::Datum {
    let mut datums: Vec<pg_sys::Datum> = rows.into_iter().collect();
    // SAFETY: all composite types have the passed length (-1, variable) and alignment (double).
    unsafe {
        pg_sys::Datum::from(pg_sys::construct_array(
            datums.as_mut_ptr(),
            datums.len() as i32,
            element,
            -1,
            false,
            pg_sys::TYPALIGN_DOUBLE as std::ffi::c_char,
        ))
    }
}

pub fn answer(raw: Option<Timestamp>) -> Answer {
    match raw {
        None => Answer::Done,
        Some(raw) => Answer::Again(clock::clamped(raw)),
    }
}
