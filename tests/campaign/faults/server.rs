use super::TO_RECOVER;
use crate::load::Shared;
use awty_testkit::{Cluster, Stop, poll};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

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

pub fn stop_smart(cluster: &mut Cluster, shared: &Shared) -> bool {
    shared.away.store(true, Ordering::Relaxed);
    let done = stop(cluster, shared, Stop::Smart);
    shared.away.store(false, Ordering::Relaxed);
    done
}

/// Time limit for a server's recovery from a crash. Then the test kills and restarts the server, because PostgreSQL
/// 18.6 itself stays in recovery mode forever if its startup process fails.
const RESTARTED_AFTER: Duration = Duration::from_secs(30);

pub fn be_up(cluster: &mut Cluster, shared: &Shared) {
    let (since, mut was_restarted) = (Instant::now(), false);
    let up = poll("the server to be up", TO_RECOVER, || match shared.connect("postgres", "postgres") {
        Ok(_) => Ok(()),
        Err(error) => {
            if !was_restarted && since.elapsed() > RESTARTED_AFTER {
                cluster.kill_server();
                was_restarted = true;
            }
            if !cluster.is_running() {
                cluster.start();
            }
            Err(error.to_string())
        }
    });
    if let Err(what) = up {
        shared.saw("P5", what);
    }
}
