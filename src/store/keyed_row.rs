//! One row of a table of awty's that only awty writes, read by its key as it is now.
//!
//! It is read without the executor: starting that for one row takes longer than finding it.
//!
//! Invariant: nothing of the row is used after the scan that found it.
//! Does not: lock the row, or know what it means.

use crate::pg::catalog;
use crate::pg::relations::{self, Name};
use pgrx::pg_sys;

/// The columns of a row, by number.
pub struct Columns {
    values: Vec<pg_sys::Datum>,
    nulls: Vec<bool>,
}

impl Columns {
    /// A column, from 1; `None` for NULL.
    pub fn get(&self, column: i32) -> Option<pg_sys::Datum> {
        let index = usize::try_from(column - 1).ok().filter(|index| self.nulls.get(*index) == Some(&false))?;
        self.values.get(index).copied()
    }
}

/// What a column is compared with.
pub enum Key {
    Number(i64),
    /// A text, as a datum. Its column has the collation "C".
    Text(pg_sys::Datum),
}

/// A table, and the unique index of the columns that are its key.
pub struct Keyed {
    pub table: Name,
    pub index: Name,
    pub columns: &'static [i16],
}

/// Runs `body` with a snapshot of this moment, which [`Keyed::read`] reads by.
pub fn now<R>(body: impl FnOnce() -> R) -> R {
    // SAFETY: a transaction is open. What is pushed is popped below, or by the abort.
    unsafe { pg_sys::PushActiveSnapshot(pg_sys::GetLatestSnapshot()) };
    let result = body();
    // SAFETY: as above.
    unsafe { pg_sys::PopActiveSnapshot() };
    result
}

impl Keyed {
    /// Reads the row of a key, if it is there. What `read` returns must not point into the row.
    pub fn read<R>(&self, key: &[Key], read: impl FnOnce(&Columns) -> Option<R>) -> Option<R> {
        const MODE: pg_sys::LOCKMODE = pg_sys::RowExclusiveLock as pg_sys::LOCKMODE;
        assert_eq!(key.len(), self.columns.len(), "a value for each column of the key");
        let table = relations::oid(self.table)?;
        // Without the index, which an administrator may have dropped, the table is searched from end to end.
        let index = catalog::relation(self.index.0, self.index.1);
        let mut keys: Vec<pg_sys::ScanKeyData> =
            key.iter().zip(self.columns).map(|(key, column)| scan_key(key, *column)).collect();
        // SAFETY: the table exists, and its lock is kept until the transaction ends; a snapshot is active; the keys have the types of
        // their columns. The tuple and what points into it live until the end of the scan.
        unsafe {
            let relation = pg_sys::table_open(table, MODE);
            let scan = pg_sys::systable_beginscan(
                relation,
                index.unwrap_or(pg_sys::InvalidOid),
                index.is_some(),
                pg_sys::GetActiveSnapshot(),
                keys.len() as i32,
                keys.as_mut_ptr(),
            );
            let tuple = pg_sys::systable_getnext(scan);
            let found = if tuple.is_null() { None } else { read(&columns(tuple, (*relation).rd_att)) };
            pg_sys::systable_endscan(scan);
            pg_sys::table_close(relation, pg_sys::NoLock as pg_sys::LOCKMODE);
            found
        }
    }
}

fn scan_key(key: &Key, column: i16) -> pg_sys::ScanKeyData {
    let (function, value) = match key {
        Key::Number(number) => (pg_sys::F_INT8EQ, pg_sys::Datum::from(*number)),
        Key::Text(text) => (pg_sys::F_TEXTEQ, *text),
    };
    let mut scan_key = pg_sys::ScanKeyData::default();
    // SAFETY: fills the key in; the function is the type's equality, which a B-tree knows by this strategy.
    unsafe {
        pg_sys::ScanKeyInit(
            &mut scan_key,
            column,
            pg_sys::BTEqualStrategyNumber as u16,
            pg_sys::Oid::from(function),
            value,
        );
    }
    scan_key
}

/// # Safety
/// The tuple must be a row with these columns.
unsafe fn columns(tuple: pg_sys::HeapTuple, description: pg_sys::TupleDesc) -> Columns {
    // SAFETY: as the caller says. There is room for all columns.
    unsafe {
        let count = (*description).natts as usize;
        let (mut values, mut nulls) = (vec![pg_sys::Datum::from(0); count], vec![true; count]);
        pg_sys::heap_deform_tuple(tuple, description, values.as_mut_ptr(), nulls.as_mut_ptr());
        Columns { values, nulls }
    }
}
