use crate::Cluster;
use crate::preload::DISK;
use std::time::Duration;

/// Each variant has the number by which `disk.c` knows the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFault {
    /// Writing WAL fails because the disk is full, so PostgreSQL must shut down.
    FullForWal = 1,
    FullForTables = 2,
    Full = 1 | 2 | 4,
    /// Makes each flush of WAL fail, so that PostgreSQL must shut down.
    FlushOfWal = 8,
    /// Makes each flush of a data file fail, so that PostgreSQL must shut down at its next checkpoint.
    FlushOfData = 16,
}

impl Cluster {
    #[track_caller]
    pub fn fail_disk(&self, how: DiskFault) {
        DISK.set(self, 1, 0);
        DISK.set(self, 0, how as i64);
    }

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
