//! Reads the row of a check that this transaction itself has written, as in `awty.travel()`.
//!
//! No other transaction can see such a row, so it needs no lock. Each run is a subtransaction, so a lock would add to a
//! list of lockers that all later runs read. For the same reason, `awty.travel()` releases its lock on another
//! transaction's row at once. It cannot commit, so it need not keep other sessions from the row.

use super::{Locked, Row, Table};
use pgrx::pg_sys;

impl Table {
    pub(super) fn look_at_own(&self, row: &Row) -> Locked {
        let mut tid = row.tid;
        // SAFETY: the row was read in this transaction; the snapshot is popped here.
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
