//! Makes a server's disk fail or become slow for as long as a test needs.

use crate::Cluster;
use crate::preload::DISK;
use std::time::Duration;

/// Kind of disk failure, with the number that `disk.c` uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFault {
    /// The disk has no space for WAL. By design, the server goes down.
    FullForWal = 1,
    /// The disk has no space for tables and indexes. Operations that need space fail.
    FullForTables = 2,
    /// The disk has no space for any of the server's files.
    Full = 1 | 2 | 4,
    /// Flushes of WAL fail. By design, the server goes down.
    FlushOfWal = 8,
    /// Flushes of data fail. By design, the server goes down at its next checkpoint.
    FlushOfData = 16,
}

impl Cluster {
    /// Makes the server's disk fail from now on. Needs [`with_failing_disk`](crate::Builder::with_failing_disk).
    #[track_caller]
    pub fn fail_disk(&self, how: DiskFault) {
        DISK.set(self, 1, 0);
        DISK.set(self, 0, how as i64);
    }

    /// Repairs the server's disk. Returns the number of writes and flushes that failed.
    #[track_caller]
    pub fn mend_disk(&self) -> i64 {
        DISK.set(self, 0, 0);
        DISK.get(self, 1)
    }

    /// Makes each flush of WAL take at least this long. A delay of zero ends the slowness. Needs
    /// [`with_failing_disk`](crate::Builder::with_failing_disk).
    #[track_caller]
    pub fn slow_down_flushes(&self, to: Duration) {
        DISK.set(self, 3, 0);
        DISK.set(self, 2, i64::try_from(to.as_micros()).unwrap_or(i64::MAX));
    }

    /// Returns the number of flushes that the server has slowed since [`slow_down_flushes`](Self::slow_down_flushes).
    #[track_caller]
    pub fn slow_flushes(&self) -> i64 {
        DISK.get(self, 3)
    }
}
