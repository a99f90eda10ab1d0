//! Invariant: a statement is planned once, and its plan uses indexes, because a table that is empty at planning time
//! may later have ten million rows.

use crate::pg::owner;
use crate::pg::relations;
use pgrx::{FromDatum, pg_sys};
use std::cell::Cell;
use std::ffi::CStr;
use std::thread::LocalKey;

pub struct Statement {
    sql: &'static CStr,
    types: &'static [pg_sys::Oid],
    plan: Cell<pg_sys::SPIPlanPtr>,
}

/// Stands for the type `awty.future_job[]`, because the type's OID differs between databases.
const CHECKS: pg_sys::Oid = pg_sys::RECORDARRAYOID;

pub type Arg = Option<pg_sys::Datum>;

pub struct Prepared(pub &'static LocalKey<Statement>);

impl Prepared {
    pub fn execute(&self, args: &[Arg]) -> u64 {
        self.query(args, |rows| rows.processed)
    }

    /// The result of `read` must not point into the rows, because SPI frees them before this function returns.
    pub fn query<R>(&self, args: &[Arg], read: impl FnOnce(&Rows) -> R) -> R {
        self.as_owner(|statement| statement.run(args, false, read))
    }

    /// Uses a new snapshot, except in a parallel query, because a parallel query may not take one.
    pub fn query_latest<R>(&self, args: &[Arg], read: impl FnOnce(&Rows) -> R) -> R {
        self.as_owner(|statement| statement.run_latest(args, read))
    }

    pub fn query_as_caller<R>(&self, args: &[Arg], read: impl FnOnce(&Rows) -> R) -> R {
        self.as_owner(|statement| statement.run(args, true, read))
    }

    fn as_owner<R>(&self, run: impl FnOnce(&Statement) -> R) -> R {
        owner::as_owner(|| self.0.with(run))
    }
}

impl Statement {
    pub const fn new(sql: &'static CStr, types: &'static [pg_sys::Oid]) -> Self {
        Self { sql, types, plan: Cell::new(std::ptr::null_mut()) }
    }

    fn run_latest<R>(&self, args: &[Arg], read: impl FnOnce(&Rows) -> R) -> R {
        // SAFETY: the function only reads this process's transaction state.
        if unsafe { pg_sys::IsInParallelMode() } {
            return self.run(args, true, read);
        }
        // SAFETY: the snapshot is popped below, or by the abort after an ERROR.
        unsafe { pg_sys::PushActiveSnapshot(pg_sys::GetLatestSnapshot()) };
        let result = self.run(args, true, read);
        // SAFETY: the popped snapshot is the one that was pushed above.
        unsafe { pg_sys::PopActiveSnapshot() };
        result
    }

    fn run<R>(&self, args: &[Arg], read_only: bool, read: impl FnOnce(&Rows) -> R) -> R {
        assert_eq!(args.len(), self.types.len(), "wrong number of parameters");
        let mut values: Vec<pg_sys::Datum> = args.iter().map(|arg| arg.unwrap_or(pg_sys::Datum::from(0))).collect();
        let nulls: Vec<std::ffi::c_char> =
            args.iter().map(|arg| if arg.is_some() { b' ' } else { b'n' } as std::ffi::c_char).collect();
        // SAFETY: `values` and `nulls` have one entry for each parameter, and the abort closes SPI after an ERROR.
        unsafe {
            pg_sys::SPI_connect();
            let plan = self.prepared();
            let code = pg_sys::SPI_execute_plan(plan, values.as_mut_ptr(), nulls.as_ptr(), read_only, 0);
            assert!(code >= 0, "a statement of awty failed with SPI code {code}");
            let result = read(&Rows::current());
            pg_sys::SPI_finish();
            result
        }
    }

    /// # Safety
    ///
    /// SPI must be connected.
    unsafe fn prepared(&self) -> pg_sys::SPIPlanPtr {
        let mut plan = self.plan.get();
        // SAFETY: SPI is connected, and only this function frees the statement's plan.
        unsafe {
            if !plan.is_null() && pg_sys::SPI_plan_is_valid(plan) {
                return plan;
            }
            for (name, value) in [
                (c"enable_seqscan", c"off"),
                (c"enable_bitmapscan", c"off"),
                (c"enable_indexscan", c"on"),
                (c"enable_indexonlyscan", c"on"),
                (c"enable_nestloop", c"on"),
                (c"transform_null_equals", c"off"),
                (c"standard_conforming_strings", c"on"),
                (c"jit", c"off"),
            ] {
                owner::set_local(name, value);
            }
            if !plan.is_null() && self.types.contains(&CHECKS) {
                pg_sys::SPI_freeplan(self.plan.replace(std::ptr::null_mut()));
                plan = std::ptr::null_mut();
            }
            if plan.is_null() {
                let mut types: Vec<pg_sys::Oid> = self.types.iter().map(|known| known_type(*known)).collect();
                plan = pg_sys::SPI_prepare_cursor(
                    self.sql.as_ptr(),
                    types.len() as i32,
                    types.as_mut_ptr(),
                    pg_sys::CURSOR_OPT_GENERIC_PLAN as i32,
                );
                assert!(!plan.is_null(), "a statement of awty cannot be prepared");
                pg_sys::SPI_keepplan(plan);
                self.plan.set(plan);
            }
        }
        plan
    }
}

fn known_type(oid: pg_sys::Oid) -> pg_sys::Oid {
    if oid == CHECKS { relations::row_array_type() } else { oid }
}

struct Raw(pg_sys::Datum);

impl FromDatum for Raw {
    unsafe fn from_polymorphic_datum(datum: pg_sys::Datum, is_null: bool, _type: pg_sys::Oid) -> Option<Self> {
        (!is_null).then_some(Self(datum))
    }
}

pub struct Rows {
    table: *mut pg_sys::SPITupleTable,
    pub processed: u64,
}

impl Rows {
    /// # Safety
    ///
    /// SPI must stay connected while the rows are read.
    pub unsafe fn current() -> Self {
        // SAFETY: the caller has connected SPI, so `SPI_tuptable` and `SPI_processed` belong to the caller's last SPI
        // command.
        unsafe { Self { table: pg_sys::SPI_tuptable, processed: pg_sys::SPI_processed } }
    }

    pub fn datum(&self, row: usize, column: i32) -> Option<pg_sys::Datum> {
        assert!(row < self.len(), "row {row} of {} rows", self.len());
        // SAFETY: the row exists, and the caller passes the number of a column of the result.
        unsafe {
            let tuple = *(*self.table).vals.add(row);
            let mut null = false;
            let datum = pg_sys::SPI_getbinval(tuple, (*self.table).tupdesc, column, &mut null);
            (!null).then_some(datum)
        }
    }

    pub fn len(&self) -> usize {
        // SAFETY: the table is NULL or lives until SPI_finish, which is called after the reader has returned.
        unsafe { self.table.as_ref() }.map_or(0, |table| table.numvals as usize)
    }

    pub fn all<T>(&self, read: impl FnMut(usize) -> Option<T>) -> Vec<T> {
        (0..self.len()).filter_map(read).collect()
    }

    /// Columns count from 1, and rows from 0. A value passed by reference points into SPI's memory.
    pub fn get<T: FromDatum>(&self, row: usize, column: i32) -> Option<T> {
        assert!(row < self.len(), "row {row} of {} rows", self.len());
        // SAFETY: the assertion checks the row. The caller passes the number of an existing column, and that column's
        // type.
        unsafe {
            let tuple = *(*self.table).vals.add(row);
            let mut null = false;
            let datum = pg_sys::SPI_getbinval(tuple, (*self.table).tupdesc, column, &mut null);
            T::from_datum(datum, null)
        }
    }

    pub fn raw(&self, row: usize, column: i32) -> Option<pg_sys::Datum> {
        self.get::<Raw>(row, column).map(|Raw(datum)| datum)
    }

    pub fn first<T: FromDatum>(&self, column: i32) -> Option<T> {
        if self.len() == 0 { None } else { self.get(0, column) }
    }
}

impl Rows {
    pub fn first_ids(&self, column: i32) -> Vec<i64> {
        self.first::<Vec<Option<i64>>>(column).into_iter().flatten().flatten().collect()
    }
}

pub struct Kept(pub pg_sys::Datum);

impl FromDatum for Kept {
    unsafe fn from_polymorphic_datum(datum: pg_sys::Datum, is_null: bool, _type: pg_sys::Oid) -> Option<Self> {
        // SAFETY: SPI is connected while its rows are read. The length is -1, because the value has a variable length.
        (!is_null).then(|| Self(unsafe { pg_sys::SPI_datumTransfer(datum, false, -1) }))
    }
}
