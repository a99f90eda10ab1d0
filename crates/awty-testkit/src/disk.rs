//! A server's disk that fails, or is slow, when a test says so.

use crate::Cluster;
use crate::preload::DISK;
use std::time::Duration;

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

    /// From now on each flush of WAL takes so long, for clusters as above; with zero, none does any more.
    #[track_caller]
    pub fn slow_down_flushes(&self, to: Duration) {
        DISK.set(self, 3, 0);
        DISK.set(self, 2, i64::try_from(to.as_micros()).unwrap_or(i64::MAX));
    }

    /// How many flushes were that slow since then, in all processes of the server.
    #[track_caller]
    pub fn slow_flushes(&self) -> i64 {
        DISK.get(self, 3)
    }
}
