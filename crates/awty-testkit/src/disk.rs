//! A server's disk that fails when a test says so.

use crate::Cluster;
use crate::preload::DISK;

/// What fails, as in `disk.c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFault {
    /// No space is left to write WAL: the server goes down by design.
    FullForWal = 1,
    /// No space is left to write tables and indexes: what needs it fails.
    FullForTables = 2,
    /// No space is left at all.
    Full = 1 | 2 | 4,
    /// WAL cannot be flushed: the server goes down by design.
    FlushOfWal = 8,
    /// Data cannot be flushed: the server goes down by design, at its next checkpoint.
    FlushOfData = 16,
}

impl Cluster {
    /// From now on the disk fails so. For clusters that were built
    /// [`with_failing_disk`](crate::Builder::with_failing_disk).
    #[track_caller]
    pub fn fail_disk(&self, how: DiskFault) {
        DISK.set(self, 1, 0);
        DISK.set(self, 0, how as i64);
    }

    /// The disk works again. Returns how many calls failed meanwhile.
    #[track_caller]
    pub fn mend_disk(&self) -> i64 {
        DISK.set(self, 0, 0);
        DISK.get(self, 1)
    }
}
