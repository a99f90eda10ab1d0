//! The row of a check that this transaction itself has written, as in `awty.travel()`.
//!
//! No other transaction can see or lock such a row. It is not locked, because PostgreSQL would add each lock to the row's lockers, and every
//! later look at one of the row's versions would read all of them.

use super::{Locked, Row, Table};
use pgrx::pg_sys;

impl Table {
    /// Returns whether the row is still as it was read, or was changed by the run itself.
    pub(super) fn look_at_own(&self, row: &Row) -> Locked {
        let mut tid = row.tid;
        // SAFETY: the row was read in this transaction; the slot is one of this table; the snapshot is popped here.
        unsafe {
            pg_sys::CommandCounterIncrement();
            pg_sys::PushActiveSnapshot(pg_sys::GetLatestSnapshot());
            let snapshot = pg_sys::GetActiveSnapshot();
            let is_there = pg_sys::table_tuple_fetch_row_version(self.relation, &mut tid, snapshot, self.slot);
            pg_sys::PopActiveSnapshot();
            pg_sys::ExecClearTuple(self.slot);
            if is_there { Locked::Same } else { Locked::Own }
        }
    }
}
