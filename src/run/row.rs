//! The row of one check: read without a lock, and locked only at the end of its run, without waiting.
//!
//! This is done through the table's access method and not by SQL, because only it tells apart who has changed the row:
//! somebody else, so that the run must be undone, or the run itself, which has thereby given its answer.
//!
//! Invariant: a row that was read stays where it was for the length of the transaction, which holds a snapshot that sees it.
//! Does not: write, but for the deletion of a check that ends.

use crate::clock::{self, Timestamp};
use crate::extension;
use crate::store::future_job::Candidate;
use awty_core::{Answer, Check, Time};
use pgrx::{FromDatum, pg_sys};
use std::cell::RefCell;
use std::collections::HashSet;

/// `awty.future_job`, opened for the length of a transaction.
pub struct Table {
    relation: pg_sys::Relation,
    /// What a row is fetched into.
    slot: *mut pg_sys::TupleTableSlot,
}

/// A check as it stands.
pub struct Row {
    pub id: i64,
    pub tid: pg_sys::ItemPointerData,
    pub slot: Time,
    pub check_count: i32,
    pub attempt: i32,
    pub held: bool,
    /// The row as the job function takes it.
    pub datum: pg_sys::Datum,
    /// Its columns, which point into that.
    columns: [Option<pg_sys::Datum>; COLUMNS],
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
const NEXT_CHECK_AT: usize = 7;
const CHECK_COUNT: usize = 8;
const ATTEMPT: usize = 9;
const HELD: usize = 10;
const COLUMNS: usize = 12;

impl Table {
    /// Opens it, if it is there; keeps out ALTER and DROP until the transaction ends.
    pub fn open() -> Option<Self> {
        let oid = extension::table(c"future_job")?;
        const MODE: pg_sys::LOCKMODE = pg_sys::RowExclusiveLock as pg_sys::LOCKMODE;
        // SAFETY: a table that exists; the lock is kept until the transaction ends.
        let table = unsafe {
            let relation = pg_sys::table_open(oid, MODE);
            Self { relation, slot: pg_sys::table_slot_create(relation, std::ptr::null_mut()) }
        };
        extension::hold_too(oid, MODE);
        Some(table)
    }

    /// Reads a check where it was found, if it still is there.
    pub fn read(&self, candidate: &Candidate) -> Option<Row> {
        let mut tid = candidate.tid;
        // SAFETY: the relation is open and a snapshot is active; the slot is emptied again. The datum
        // is a copy in the transaction's memory.
        unsafe {
            let fetch = (*(*self.relation).rd_tableam).tuple_fetch_row_version?;
            let (relation, slot, snapshot) = (self.relation, self.slot, pg_sys::GetActiveSnapshot());
            let found = pg_sys::ffi::pg_guard_ffi_boundary(|| fetch(relation, &mut tid, snapshot, slot));
            let datum = found.then(|| pg_sys::ExecFetchSlotHeapTupleDatum(slot));
            clear(slot);
            let row = self.decode(datum?, tid);
            if row.is_none() {
                say_invalid(candidate.id);
            }
            row.filter(|row| row.id == candidate.id)
        }
    }

    /// # Safety
    /// The datum must be a row of this table.
    unsafe fn decode(&self, datum: pg_sys::Datum, tid: pg_sys::ItemPointerData) -> Option<Row> {
        let mut values = [pg_sys::Datum::from(0); COLUMNS];
        let mut nulls = [true; COLUMNS];
        // SAFETY: a composite datum is a heap tuple without its header's location; the table has that many columns, as
        // the version of the extension was checked.
        unsafe {
            if (*(*self.relation).rd_att).natts as usize != COLUMNS {
                return None;
            }
            let header = pg_sys::pg_detoast_datum(datum.cast_mut_ptr()).cast::<pg_sys::HeapTupleHeaderData>();
            let mut tuple = pg_sys::HeapTupleData {
                t_len: pgrx::varsize_any(header.cast()) as u32,
                t_self: tid,
                t_tableOid: (*self.relation).rd_id,
                t_data: header,
            };
            pg_sys::heap_deform_tuple(&mut tuple, (*self.relation).rd_att, values.as_mut_ptr(), nulls.as_mut_ptr());
            Some(Row {
                id: i64::from_datum(values[0], nulls[0])?,
                tid,
                slot: clock::clamped(i64::from_datum(values[NEXT_CHECK_AT - 1], nulls[NEXT_CHECK_AT - 1])?),
                check_count: i32::from_datum(values[CHECK_COUNT - 1], nulls[CHECK_COUNT - 1])?,
                attempt: i32::from_datum(values[ATTEMPT - 1], nulls[ATTEMPT - 1])?,
                held: bool::from_datum(values[HELD - 1], nulls[HELD - 1])?,
                datum,
                columns: std::array::from_fn(|column| (!nulls[column]).then_some(values[column])),
            })
        }
    }

    /// Locks the version of a row that was read, if it can be had at once.
    pub fn lock(&self, row: &Row) -> Locked {
        let mut tid = row.tid;
        // SAFETY: as in `read`.
        unsafe {
            let mut failure = pg_sys::TM_FailureData::default();
            let Some(lock) = (*(*self.relation).rd_tableam).tuple_lock else { return Locked::Other };
            let (relation, slot, snapshot) = (self.relation, self.slot, pg_sys::GetActiveSnapshot());
            let command = pg_sys::GetCurrentCommandId(false);
            let result = pg_sys::ffi::pg_guard_ffi_boundary(|| {
                lock(
                    relation,
                    &mut tid,
                    snapshot,
                    slot,
                    command,
                    pg_sys::LockTupleMode::LockTupleExclusive,
                    pg_sys::LockWaitPolicy::LockWaitSkip,
                    0,
                    &mut failure,
                )
            });
            clear(slot);
            found(result)
        }
    }

    /// Deletes the version of a row that was read, if it can be had at once. No trigger is fired: nobody may put one there.
    pub fn delete(&self, row: &Row) -> Locked {
        match self.try_delete(row, false) {
            // The run itself may have locked it.
            pg_sys::TM_Result::TM_BeingModified => match self.lock(row) {
                Locked::Same => found(self.try_delete(row, true)),
                other => other,
            },
            result => found(result),
        }
    }

    /// `wait`: for who has it locked, unless that is this transaction.
    fn try_delete(&self, row: &Row, wait: bool) -> pg_sys::TM_Result::Type {
        let mut tid = row.tid;
        // SAFETY: as in `read`. The indexes keep their entries until VACUUM, as after any DELETE.
        unsafe {
            let mut failure = pg_sys::TM_FailureData::default();
            let Some(delete) = (*(*self.relation).rd_tableam).tuple_delete else {
                return pg_sys::TM_Result::TM_BeingModified;
            };
            let (relation, snapshot) = (self.relation, pg_sys::GetActiveSnapshot());
            // As of the transaction's first command: what the run itself has done to the row since is then said to be that, and
            // not an error.
            let command = pg_sys::FirstCommandId;
            pg_sys::ffi::pg_guard_ffi_boundary(|| {
                delete(relation, &mut tid, command, snapshot, std::ptr::null_mut(), wait, &mut failure, false)
            })
        }
    }
}

/// Lets go of the page that a slot's row is on. PostgreSQL has this inline only.
///
/// # Safety
/// Must be a slot.
unsafe fn clear(slot: *mut pg_sys::TupleTableSlot) {
    // SAFETY: every kind of slot can do it.
    unsafe {
        if let Some(clear) = (*(*slot).tts_ops).clear {
            pg_sys::ffi::pg_guard_ffi_boundary(|| clear(slot));
        }
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
    /// The columns by which a check is known also when it is finished: all up to its slot, and who scheduled it and when.
    pub fn identity(&self) -> [Option<pg_sys::Datum>; 9] {
        let [
            id,
            job,
            entity_name,
            entity_key,
            args,
            first_check_at,
            next_check_at,
            _,
            _,
            _,
            scheduled_by,
            scheduled_at,
        ] = self.columns;
        [id, job, entity_name, entity_key, args, first_check_at, next_check_at, scheduled_by, scheduled_at]
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

/// A list of rows as the array that a set-based job takes.
pub fn array<'a>(rows: impl IntoIterator<Item = &'a Row>, element: pg_sys::Oid) -> pg_sys::Datum {
    let mut datums: Vec<pg_sys::Datum> = rows.into_iter().map(|row| row.datum).collect();
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

/// The type of the rows of `awty.future_job`.
pub fn row_type() -> pg_sys::Oid {
    let relation = extension::table(c"future_job").unwrap_or(pg_sys::InvalidOid);
    // SAFETY: a catalog lookup in a transaction.
    unsafe { pg_sys::get_rel_type_id(relation) }
}
