//! Reads the row of a check that this transaction itself has written, as `awty.travel()` does.
//!
//! Such a row needs no lock. A lock would stay on each later version of the row, in a list of lockers that all later
//! runs read. Therefore `awty.travel()` also releases its locks on other rows at once. This is safe, because its
//! transaction never commits.

use super::{Locked, Row, Table};
use pgrx::pg_sys;

impl Table {
    pub(super) fn look_at_own(&self, row: &Row) -> Locked {
        let mut tid = row.tid;
        // SAFETY: this transaction has read the row's TID, and the block pops the snapshot that it has pushed.
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
