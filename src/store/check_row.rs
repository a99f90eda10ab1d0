//! The row of one check: read by its key without a lock, and locked at the end of its run, without waiting.
//!
//! The lock is taken through the table's access method and not by SQL. Only the access method tells who has changed the row:
//! somebody else, so that the run has to be undone, or the run itself, which has thereby given its answer.
//!
//! Invariant: a place in the file (TID) is used only in the transaction that read it. That transaction holds a lock on the table
//! and a snapshot that sees the row, so the row stays where it is.
//! Does not: remember anything from one transaction to the next.

use crate::error::Label;
use crate::pg::clock::{self, Timestamp};
use crate::pg::relations;
use crate::pg::text::Text;
use crate::store::future_job;
use awty_core::{Answer, Check, Time};
use pgrx::{FromDatum, pg_sys};
use std::cell::RefCell;
use std::collections::HashSet;

/// `awty.future_job`, opened for the length of a transaction.
pub struct Table {
    relation: pg_sys::Relation,
    key: pg_sys::Oid,
    /// A row is fetched into it.
    slot: *mut pg_sys::TupleTableSlot,
}

/// A check as it stands.
pub struct Row {
    pub id: i64,
    tid: pg_sys::ItemPointerData,
    pub slot: Time,
    pub check_count: i32,
    pub attempt: i32,
    pub held: bool,
    /// The row as the job function takes it.
    pub datum: pg_sys::Datum,
}

/// What was found at the end of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Locked {
    /// It is as it was read, and locked now.
    Same,
    /// The run itself has replaced, cancelled or rescheduled its check.
    Own,
    /// Somebody else has changed or locked it.
    Other,
}

/// Columns of `awty.future_job`, by number.
const ID: usize = 1;
const ENTITY_NAME: usize = 3;
const ENTITY_KEY: usize = 4;
const NEXT_CHECK_AT: usize = 7;
const CHECK_COUNT: usize = 8;
const ATTEMPT: usize = 9;
const HELD: usize = 10;

impl Table {
    /// Opens the table, if it is there, and takes a snapshot under its lock. Keeps out ALTER, DROP and every rewrite until the transaction
    /// ends.
    pub fn open() -> Option<Self> {
        let oid = relations::oid(relations::FUTURE_JOB)?;
        const MODE: pg_sys::LOCKMODE = pg_sys::RowExclusiveLock as pg_sys::LOCKMODE;
        // SAFETY: a table that exists; the lock is kept until the transaction ends.
        let table = unsafe {
            let relation = pg_sys::table_open(oid, MODE);
            #[cfg(not(feature = "pg18"))]
            let key = pg_sys::RelationGetPrimaryKeyIndex(relation);
            #[cfg(feature = "pg18")]
            let key = pg_sys::RelationGetPrimaryKeyIndex(relation, false);
            Self { relation, key, slot: pg_sys::table_slot_create(relation, std::ptr::null_mut()) }
        };
        // SAFETY: the snapshot of `transaction`, which is on top. To one that is older than the lock, a table that ALTER has rewritten
        // meanwhile looks empty.
        unsafe {
            pg_sys::PopActiveSnapshot();
            pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        }
        Some(table)
    }

    fn columns(&self) -> pg_sys::TupleDesc {
        // SAFETY: the relation is open.
        unsafe { (*self.relation).rd_att }
    }

    /// Reads a check by its id, if it is there.
    pub fn read(&self, id: i64) -> Option<Row> {
        let mut key = pg_sys::ScanKeyData::default();
        // SAFETY: the relation is open and a snapshot is active. The key compares the one column of the primary key. The datum is
        // a copy in the transaction's memory, with what was toasted brought in.
        unsafe {
            pg_sys::ScanKeyInit(
                &mut key,
                ID as i16,
                pg_sys::BTEqualStrategyNumber as u16,
                pg_sys::Oid::from(pg_sys::F_INT8EQ),
                pg_sys::Datum::from(id),
            );
            // Without a primary key, which an administrator may have dropped, the table is searched from end to end.
            let has_key = self.key != pg_sys::InvalidOid;
            let snapshot = pg_sys::GetActiveSnapshot();
            let scan = pg_sys::systable_beginscan(self.relation, self.key, has_key, snapshot, 1, &mut key);
            let tuple = pg_sys::systable_getnext(scan);
            let row = (!tuple.is_null()).then(|| self.decode(tuple));
            pg_sys::systable_endscan(scan);
            let row = row?;
            if row.is_none() {
                say_invalid(id);
            }
            row
        }
    }

    /// # Safety
    /// The tuple must be a row of this table.
    unsafe fn decode(&self, tuple: pg_sys::HeapTuple) -> Option<Row> {
        // SAFETY: as the caller says. There is room for all columns.
        unsafe {
            let columns = self.columns();
            let count = (*columns).natts as usize;
            let (mut values, mut nulls) = (vec![pg_sys::Datum::from(0); count], vec![true; count]);
            pg_sys::heap_deform_tuple(tuple, columns, values.as_mut_ptr(), nulls.as_mut_ptr());
            let (value, null) = (|column: usize| values[column - 1], |column: usize| nulls[column - 1]);
            Some(Row {
                id: i64::from_datum(value(ID), null(ID))?,
                tid: (*tuple).t_self,
                slot: clock::clamped(i64::from_datum(value(NEXT_CHECK_AT), null(NEXT_CHECK_AT))?),
                check_count: i32::from_datum(value(CHECK_COUNT), null(CHECK_COUNT))?,
                attempt: i32::from_datum(value(ATTEMPT), null(ATTEMPT))?,
                held: bool::from_datum(value(HELD), null(HELD))?,
                datum: pg_sys::heap_copy_tuple_as_datum(tuple, columns),
            })
        }
    }

    /// Locks the version of a row that was read, if that is possible at once.
    pub fn lock(&self, row: &Row) -> Locked {
        let mut tid = row.tid;
        let mut failure = pg_sys::TM_FailureData::default();
        // SAFETY: the row was read in this transaction (see the file's invariant); the slot is one of this table.
        unsafe {
            let result = pg_sys::table_tuple_lock(
                self.relation,
                &mut tid,
                pg_sys::GetActiveSnapshot(),
                self.slot,
                pg_sys::GetCurrentCommandId(false),
                pg_sys::LockTupleMode::LockTupleExclusive,
                pg_sys::LockWaitPolicy::LockWaitSkip,
                0,
                &mut failure,
            );
            pg_sys::ExecClearTuple(self.slot);
            found(result)
        }
    }

    /// Deletes a row that the caller has locked. Triggers, foreign keys and rules that an administrator has added see a DELETE.
    pub fn delete(&self, row: &Row) {
        let mut tid = row.tid;
        // SAFETY: the relation is open; the row was read and locked in this transaction.
        unsafe {
            if (*self.relation).trigdesc.is_null() && (*self.relation).rd_rules.is_null() {
                pg_sys::simple_table_tuple_delete(self.relation, &mut tid, pg_sys::GetActiveSnapshot());
                return;
            }
        }
        future_job::remove(&[row.id]);
    }
}

/// What an access method's answer means.
fn found(result: pg_sys::TM_Result::Type) -> Locked {
    match result {
        pg_sys::TM_Result::TM_Ok => Locked::Same,
        pg_sys::TM_Result::TM_SelfModified | pg_sys::TM_Result::TM_Invisible => Locked::Own,
        _ => Locked::Other,
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // SAFETY: opened by `open`. After an ERROR the abort has closed it, or is about to.
        if !std::thread::panicking() {
            // SAFETY: as above.
            unsafe {
                pg_sys::ExecDropSingleTupleTableSlot(self.slot);
                pg_sys::table_close(self.relation, pg_sys::NoLock as pg_sys::LOCKMODE);
            }
        }
    }
}

impl Row {
    /// What it asks about, for people.
    pub fn label(&self) -> Label {
        Label { name: self.text(ENTITY_NAME), key: self.text(ENTITY_KEY) }
    }

    fn text(&self, column: usize) -> String {
        let mut null = true;
        // SAFETY: the datum is a row of the table, flat and in the transaction's memory; the column is a text.
        let text = unsafe {
            let datum = pg_sys::GetAttributeByNum(self.datum.cast_mut_ptr(), column as i16, &mut null);
            Text::from_datum(datum, null)
        };
        text.map(|text| text.to_string()).unwrap_or_default()
    }

    /// What the guards look at.
    pub fn check(&self) -> Check {
        Check { slot: self.slot, check_count: self.check_count.unsigned_abs(), attempt: self.attempt.unsigned_abs() }
    }
}

/// Says once that a check has a row that cannot be read: an administrator has been there.
fn say_invalid(id: i64) {
    thread_local! {
        static SAID: RefCell<HashSet<i64>> = RefCell::default();
    }
    if SAID.with_borrow_mut(|said| said.insert(id)) {
        pgrx::log!("awty: check {id} has an invalid row in awty.future_job, and is not run");
    }
}

/// A list of rows, as job functions take them, as the array that a set-based job takes.
pub fn array(rows: impl IntoIterator<Item = pg_sys::Datum>, element: pg_sys::Oid) -> pg_sys::Datum {
    let mut datums: Vec<pg_sys::Datum> = rows.into_iter().collect();
    // SAFETY: as many composite datums of that type; rows are passed by reference, of any length, aligned to 8 bytes.
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

/// A time, or NULL, as a job answered it.
pub fn answer(raw: Option<Timestamp>) -> Answer {
    match raw {
        None => Answer::Done,
        Some(raw) => Answer::Again(clock::clamped(raw)),
    }
}
