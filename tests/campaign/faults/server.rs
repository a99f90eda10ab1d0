//! Stops and starts of the whole server, and a standby that takes its place.

use super::look::{catch, settled};
use crate::load::Shared;
use awty_testkit::{Cluster, Stop};
use std::sync::atomic::Ordering;
use std::time::Instant;

pub fn stop(cluster: &mut Cluster, shared: &Shared, how: Stop) -> bool {
    let since = Instant::now();
    cluster.stop(how);
    let what = match how {
        Stop::Smart => "pg_ctl stop -m smart, once the clients have left",
        Stop::Fast => "pg_ctl stop -m fast",
        Stop::Immediate => "pg_ctl stop -m immediate",
    };
    shared.time(what, since);
    cluster.start();
    true
}

pub fn kill_postmaster(cluster: &mut Cluster, shared: &Shared) -> bool {
    shared.note_struck();
    cluster.kill_server();
    cluster.start();
    true
}

/// Waits for all clients, so they have to leave.
pub fn stop_smart(cluster: &mut Cluster, shared: &Shared) -> bool {
    shared.away.store(true, Ordering::Relaxed);
    let done = stop(cluster, shared, Stop::Smart);
    shared.away.store(false, Ordering::Relaxed);
    done
}

/// The primary dies, and a synchronous standby takes its place. The old one is gone for good.
pub fn promote(cluster: &mut Cluster, shared: &Shared) -> bool {
    let mut standby = cluster.standby();
    standby.configure("synchronous_standby_names = ''");
    standby.reload();
    cluster.configure("synchronous_standby_names = '*'");
    cluster.reload();
    let sync = "SELECT true FROM pg_stat_replication WHERE sync_state = 'sync'";
    let following = catch::<bool>(shared, sync).is_some() && settled(shared);
    if !following {
        cluster.configure("synchronous_standby_names = ''");
        cluster.reload();
        return false;
    }
    cluster.stop(Stop::Immediate);
    shared.look_for_faults_of(cluster);
    standby.promote();
    *shared.server.lock().unwrap() = standby.socket_directory().into();
    *cluster = standby;
    true
}
