//! A server's disk that fails or is slow on request.

use crate::Cluster;
use crate::preload::DISK;
use std::time::Duration;

/// What fails, as in `disk.c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFault {
    /// No space for WAL: the server goes down by design.
    FullForWal = 1,
    /// No space for tables and indexes: operations that need space fail.
    FullForTables = 2,
    /// No space at all.
    Full = 1 | 2 | 4,
    /// Flushes of WAL fail: the server goes down by design.
    FlushOfWal = 8,
    /// Flushes of data fail: the server goes down by design at its next checkpoint.
    FlushOfData = 16,
}

impl Cluster {
    /// Makes the disk fail from now on. Needs [`with_failing_disk`](crate::Builder::with_failing_disk).
    #[track_caller]
    pub fn fail_disk(&self, how: DiskFault) {
        DISK.set(self, 1, 0);
        DISK.set(self, 0, how as i64);
    }

    /// Repairs the disk. Returns how many calls failed.
    #[track_caller]
    pub fn mend_disk(&self) -> i64 {
        DISK.set(self, 0, 0);
        DISK.get(self, 1)
    }

    /// Slows each flush of WAL down to this duration; zero ends it. Needs a failing disk.
    #[track_caller]
    pub fn slow_down_flushes(&self, to: Duration) {
        DISK.set(self, 3, 0);
        DISK.set(self, 2, i64::try_from(to.as_micros()).unwrap_or(i64::MAX));
    }

    /// Returns the number of slowed flushes since then, in all server processes.
    #[track_caller]
    pub fn slow_flushes(&self) -> i64 {
        DISK.get(self, 3)
    }
}
