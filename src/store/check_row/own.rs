//! Reads the row of a check that this transaction itself has written, as in `awty.travel()`.
//!
//! Such a row needs no lock, because no other transaction can see it. A lock would be expensive: each run is a
//! subtransaction, so each lock would add an entry to a list of lockers that all later runs read.
//!
//! If `awty.travel()` locks a row of another transaction, it releases the lock at once, for the same reason. Other
//! sessions may then change the row, because `awty.travel()` never commits its own changes.

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
