use super::look::catch;
use crate::load::Shared;
use crate::random::Random;
use awty_testkit::{Cluster, Signal};
use std::time::Duration;

pub fn freeze(cluster: &Cluster, shared: &Shared, random: &mut Random, whom: &str) -> bool {
    let sql = format!("SELECT pid FROM pg_stat_activity WHERE {whom} ORDER BY random() LIMIT 1");
    let Some(pid) = catch::<i32>(shared, &sql) else { return false };
    cluster.kill(Signal::STOP, pid);
    std::thread::park_timeout(Duration::from_millis(500 + random.below(2500)));
    let stood_still = is_stopped(pid);
    cluster.kill(Signal::CONT, pid);
    stood_still
}

fn is_stopped(pid: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // Searches the line backwards for the process state, because the process name may contain any character.
    status.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
}
