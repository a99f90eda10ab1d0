//! Promotes a standby. An asynchronous standby may lack the last confirmed commits.

use super::look::{catch, settled};
use crate::checker::Told;
use crate::load::{DATABASES, Shared};
use crate::random::Random;
use awty_testkit::postgres::Error;
use awty_testkit::{Cluster, Signal, Stop, poll};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

const TO_FOLLOW: Duration = Duration::from_secs(20);

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
    take_over(cluster, standby, shared);
    true
}

/// Stops replication before the promotion, so that the promoted standby lacks the last confirmed commits.
pub fn promote_behind(cluster: &mut Cluster, shared: &Shared, random: &mut Random) -> bool {
    let mut standby = cluster.standby();
    let Some(sender) = catch::<i32>(shared, "SELECT pid FROM pg_stat_replication WHERE state = 'streaming'") else {
        return false;
    };
    let known: Vec<usize> = shared.told.iter().map(|told| told.lock().unwrap().len()).collect();
    let Some(here) = catch::<String>(shared, "SELECT pg_current_wal_insert_lsn()::text") else { return false };
    let there = format!("SELECT true FROM pg_stat_replication WHERE flush_lsn >= '{here}'");
    if catch::<bool>(shared, &there).is_none() {
        return false;
    }
    shared.note_struck();
    cluster.kill(Signal::STOP, sender);
    std::thread::park_timeout(Duration::from_millis(random.below(400)));
    cluster.kill(Signal::KILL, sender);
    cluster.kill_server();
    shared.look_for_faults_of(cluster);

    shared.away.store(true, Ordering::Relaxed);
    let left = poll("the clients to leave", TO_FOLLOW, || match shared.present.load(Ordering::Relaxed) {
        0 => Ok(()),
        clients => Err(clients.to_string()),
    });
    let replayed = poll("the standby to replay what it has", TO_FOLLOW, || replayed(&standby));
    let forgotten = (0..DATABASES.len()).map(|number| forget(&standby, shared, number, known[number]));
    let forgotten = forgotten.collect::<Result<Vec<usize>, Error>>();
    if let (Ok(()), Ok(()), Ok(forgotten)) = (&left, &replayed, &forgotten) {
        println!("         promoted without {} of what clients were told", forgotten.iter().sum::<usize>());
    } else {
        shared.saw("P3", format!("the standby cannot be read: {left:?}, {replayed:?}, {forgotten:?}"));
    }
    shared.epoch.fetch_add(1, Ordering::Relaxed);
    standby.promote();
    take_over(cluster, standby, shared);
    shared.away.store(false, Ordering::Relaxed);
    true
}

fn take_over(cluster: &mut Cluster, standby: Cluster, shared: &Shared) {
    *shared.server.lock().unwrap() = standby.socket_directory().into();
    *cluster = standby;
}

/// Succeeds when the standby has nothing more to replay. The replay may never reach the received position, because the
/// last WAL record may be incomplete.
fn replayed(standby: &Cluster) -> Result<(), String> {
    let mut client = standby.try_client("postgres", "postgres").map_err(|error| error.to_string())?;
    let mut look = || {
        let sql = "SELECT pg_last_wal_replay_lsn()::text, NOT EXISTS (SELECT FROM pg_stat_wal_receiver)";
        let row = client.query_one(sql, &[]).map_err(|error| error.to_string())?;
        Ok::<(String, bool), String>((row.get(0), row.get(1)))
    };
    let before = look()?;
    std::thread::park_timeout(Duration::from_millis(20));
    let after = look()?;
    if after == before && after.1 { Ok(()) } else { Err(format!("{before:?}, then {after:?}")) }
}

/// Removes from the clients' log the recent commits that the standby lacks. Removing too many commits is harmless,
/// because the checker only verifies the logged commits.
fn forget(standby: &Cluster, shared: &Shared, number: usize, known: usize) -> Result<usize, Error> {
    let mut client = standby.try_client(DATABASES[number], "postgres")?;
    let placed: BTreeSet<i64> =
        client.query("SELECT check_id FROM camp.placed", &[])?.iter().map(|row| row.get(0)).collect();
    let sql = "SELECT xmin::text::bigint FROM awty.future_job_history WHERE outcome = 'cancelled'";
    let cancelled: Vec<i64> = client.query(sql, &[])?.iter().map(|row| row.get(0)).collect();
    let is_there = |told: &Told| match told {
        Told::Placed { check } => placed.contains(check),
        Told::Cancelled { xid, count, .. } => {
            let rows = cancelled.iter().filter(|xmin| **xmin == xid & 0xffff_ffff).count();
            *count > 0 && rows as i64 == *count
        }
    };
    let mut told = shared.told[number].lock().unwrap();
    let before = told.len();
    let late = told.split_off(known);
    told.extend(late.into_iter().filter(is_there));
    Ok(before - told.len())
}
