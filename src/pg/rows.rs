use pgrx::pg_sys;

pub struct Sink(*mut pg_sys::ReturnSetInfo);

impl Sink {
    pub fn begin(fcinfo: pg_sys::FunctionCallInfo) -> Self {
        // SAFETY: InitMaterializedSRF() raises an ERROR if the caller cannot take rows.
        unsafe {
            pg_sys::InitMaterializedSRF(fcinfo, 0);
            Self((*fcinfo).resultinfo.cast())
        }
    }

    pub fn put(&self, row: &[Option<pg_sys::Datum>]) {
        let mut nulls: Vec<bool> = row.iter().map(Option::is_none).collect();
        let mut values: Vec<pg_sys::Datum> = row.iter().map(|value| value.unwrap_or(pg_sys::Datum::from(0))).collect();
        // SAFETY: `begin` has created the tuplestore, and `values` has one entry for each column.
        unsafe {
            let columns = (*self.0).setDesc;
            assert_eq!(row.len(), (*columns).natts as usize, "wrong number of columns");
            pg_sys::tuplestore_putvalues((*self.0).setResult, columns, values.as_mut_ptr(), nulls.as_mut_ptr());
        }
    }
}
