//! Makes a server's disk fail or become slow.

use crate::Cluster;
use crate::preload::DISK;
use std::time::Duration;

/// Ways in which the disk can fail. `disk.c` uses the same numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFault {
    /// With this fault, PostgreSQL goes down by design.
    FullForWal = 1,
    FullForTables = 2,
    Full = 1 | 2 | 4,
    /// With this fault, PostgreSQL goes down by design.
    FlushOfWal = 8,
    /// With this fault, PostgreSQL goes down by design, at its next checkpoint.
    FlushOfData = 16,
}

impl Cluster {
    /// Needs [`with_failing_disk`](crate::Builder::with_failing_disk).
    #[track_caller]
    pub fn fail_disk(&self, how: DiskFault) {
        DISK.set(self, 1, 0);
        DISK.set(self, 0, how as i64);
    }

    /// Returns the number of failed writes and flushes.
    #[track_caller]
    pub fn mend_disk(&self) -> i64 {
        DISK.set(self, 0, 0);
        DISK.get(self, 1)
    }

    /// Sets how long a flush of WAL takes at least. Needs [`with_failing_disk`](crate::Builder::with_failing_disk).
    #[track_caller]
    pub fn slow_down_flushes(&self, to: Duration) {
        DISK.set(self, 3, 0);
        DISK.set(self, 2, i64::try_from(to.as_micros()).unwrap_or(i64::MAX));
    }

    #[track_caller]
    pub fn slow_flushes(&self) -> i64 {
        DISK.get(self, 3)
    }
}
