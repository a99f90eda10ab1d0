use crate::Cluster;
use crate::preload::DISK;
use std::time::Duration;

/// The numbers must match `disk.c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFault {
    /// The disk is full for WAL, so PostgreSQL shuts down, as it is designed to do.
    FullForWal = 1,
    FullForTables = 2,
    Full = 1 | 2 | 4,
    /// WAL cannot be flushed, so PostgreSQL shuts down, as it is designed to do.
    FlushOfWal = 8,
    /// Data files cannot be flushed, so PostgreSQL shuts down at its next checkpoint, as it is designed to do.
    FlushOfData = 16,
}

impl Cluster {
    #[track_caller]
    pub fn fail_disk(&self, how: DiskFault) {
        DISK.set(self, 1, 0);
        DISK.set(self, 0, how as i64);
    }

    /// Returns the number of writes and flushes that failed.
    #[track_caller]
    pub fn mend_disk(&self) -> i64 {
        DISK.set(self, 0, 0);
        DISK.get(self, 1)
    }

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
