//! The disk fails for a moment: it is full, or what was written cannot be flushed.
//!
//! Does not: lose what was written, as a broken disk would; PostgreSQL goes down instead of going on (`data_sync_retry`).

use super::server::be_up;
use crate::load::Shared;
use crate::random::Random;
use awty_testkit::{Cluster, DiskFault};
use std::time::Duration;

pub fn fail(cluster: &mut Cluster, shared: &Shared, random: &mut Random, how: DiskFault) -> bool {
    let checkpoints = how != DiskFault::FullForWal && how != DiskFault::FlushOfWal;
    let admin = shared.connect("postgres", "postgres");
    shared.note_struck();
    cluster.fail_disk(how);
    // So that something is written besides WAL; it cannot succeed.
    if let (true, Ok(mut admin)) = (checkpoints, admin) {
        let _ = admin.batch_execute("CHECKPOINT");
    }
    std::thread::park_timeout(Duration::from_millis(200 + random.below(800)));
    let refused = cluster.mend_disk();
    be_up(cluster, shared);
    refused > 0
}
