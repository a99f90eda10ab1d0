//! The rows that a set-returning function answers with, put into a tuplestore as its caller wants them.
//!
//! Does not: know what the columns are.

use pgrx::pg_sys;

/// The rows of one call.
pub struct Sink(*mut pg_sys::ReturnSetInfo);

impl Sink {
    /// No rows yet.
    pub fn begin(fcinfo: pg_sys::FunctionCallInfo) -> Self {
        // SAFETY: PostgreSQL's own call information of a function that is declared to return a set of rows; it refuses a caller that
        // cannot take them.
        unsafe {
            pg_sys::InitMaterializedSRF(fcinfo, 0);
            Self((*fcinfo).resultinfo.cast())
        }
    }

    /// One more row, which is copied. The values must be of the declared columns, in their order.
    pub fn put(&self, row: &[Option<pg_sys::Datum>]) {
        let mut nulls: Vec<bool> = row.iter().map(Option::is_none).collect();
        let mut values: Vec<pg_sys::Datum> = row.iter().map(|value| value.unwrap_or(pg_sys::Datum::from(0))).collect();
        // SAFETY: made by `begin`; as many values as there are columns.
        unsafe {
            let columns = (*self.0).setDesc;
            assert_eq!(row.len(), (*columns).natts as usize, "wrong number of columns");
            pg_sys::tuplestore_putvalues((*self.0).setResult, columns, values.as_mut_ptr(), nulls.as_mut_ptr());
        }
    }
}
