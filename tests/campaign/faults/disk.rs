//! Simulates a full disk or failed flushes. PostgreSQL may stop with a PANIC, so that no written data is lost.

use super::server::be_up;
use crate::load::Shared;
use crate::random::Random;
use awty_testkit::{Cluster, DiskFault};
use std::time::Duration;

pub fn fail(cluster: &mut Cluster, shared: &Shared, random: &mut Random, how: DiskFault) -> bool {
    let admin = shared.connect("postgres", "postgres");
    shared.note_struck();
    cluster.fail_disk(how);
    // Executes CHECKPOINT, because other statements flush only WAL and no data files.
    if let (DiskFault::Full | DiskFault::FlushOfData, Ok(mut admin)) = (how, admin) {
        let _ = admin.batch_execute("CHECKPOINT");
    }
    std::thread::park_timeout(Duration::from_millis(200 + random.below(1300)));
    let refused = cluster.mend_disk();
    be_up(cluster, shared);
    refused > 0
}
