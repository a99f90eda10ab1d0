//! The faults: what is done to the server while it works, and how it is seen that it works again.
//!
//! Invariant: a fault that did not come about (its target was not there) is not counted.
//! Does not: look at the promises; see `checker`.

use crate::load::{DATABASES, ROLES, Shared};
use crate::random::Random;
use awty_testkit::postgres::{Client, Error};
use awty_testkit::{Cluster, Signal, Stop, poll};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// For a process to show up that is there for moments only.
const TO_CATCH: Duration = Duration::from_secs(3);
/// From a fault to when all is done that was due then. A crash takes up to some seconds on a loaded machine.
const TO_RECOVER: Duration = Duration::from_secs(90);
/// Of the server, before a check that was there each time is held.
pub const MAX_CRASHES: usize = 3;
/// After that, what is going on is worth a line.
const SLOW: Duration = Duration::from_secs(8);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fault {
    KillWorkerInRun,
    KillWorker,
    KillLauncher,
    KillDispatcher,
    KillCheckpointer,
    KillPostmaster,
    TerminateWorker,
    CancelWorker,
    TerminateLauncher,
    StopSmart,
    StopFast,
    StopImmediate,
    ChangeSlot,
    PauseAndResume,
    CrashingJob,
    Promote,
    SetClock,
}

impl Fault {
    /// One of them, each as often as it is worth.
    pub fn any(random: &mut Random) -> Self {
        *random.pick(&ALL)
    }

    /// Can it be done in a round whose clock can be set, or cannot? A standby has a clock of its own.
    pub fn is_for(self, movable_clock: bool) -> bool {
        match self {
            Fault::SetClock => movable_clock,
            Fault::Promote => !movable_clock,
            _ => true,
        }
    }

    /// Does it, and returns whether it came about.
    pub fn strike(self, cluster: &mut Cluster, shared: &Shared, random: &mut Random) -> bool {
        match self {
            Fault::KillWorkerInRun => crash(cluster, shared, IN_RUN),
            Fault::KillWorker => crash(cluster, shared, ANY_WORKER),
            Fault::KillLauncher => crash(cluster, shared, LAUNCHER),
            Fault::KillDispatcher => kill_dispatcher(cluster, shared).unwrap_or(false),
            Fault::KillCheckpointer => crash(cluster, shared, "backend_type = 'checkpointer'"),
            Fault::KillPostmaster => {
                cluster.kill_server();
                cluster.start();
                true
            }
            Fault::TerminateWorker => signal(shared, ANY_WORKER, "pg_terminate_backend"),
            Fault::CancelWorker => signal(shared, IN_RUN, "pg_cancel_backend"),
            Fault::TerminateLauncher => signal(shared, LAUNCHER, "pg_terminate_backend"),
            Fault::StopSmart => stop_smart(cluster, shared),
            Fault::StopFast => stop(cluster, Stop::Fast),
            Fault::StopImmediate => stop(cluster, Stop::Immediate),
            Fault::ChangeSlot => {
                cluster.configure(&format!("awty.slot = '{}'", random.pick(&["1s", "2s", "3s"])));
                cluster.reload();
                true
            }
            Fault::PauseAndResume => pause_and_resume(shared, random),
            Fault::CrashingJob => crashing_job(cluster, shared, random),
            Fault::Promote => promote(cluster, shared),
            Fault::SetClock => set_clock(cluster, random),
        }
    }
}

/// All of them, those that matter most more than once.
pub const ALL: [Fault; 28] = {
    use Fault::*;
    [
        KillWorkerInRun,
        KillWorkerInRun,
        KillWorkerInRun,
        KillWorkerInRun,
        KillWorker,
        KillWorker,
        KillWorker,
        KillLauncher,
        KillDispatcher,
        KillCheckpointer,
        KillPostmaster,
        TerminateWorker,
        TerminateWorker,
        CancelWorker,
        CancelWorker,
        TerminateLauncher,
        StopSmart,
        StopFast,
        StopImmediate,
        StopImmediate,
        ChangeSlot,
        PauseAndResume,
        CrashingJob,
        Promote,
        SetClock,
        SetClock,
        SetClock,
        SetClock,
    ]
};

const IN_RUN: &str = "backend_type = 'awty worker' AND wait_event = 'PgSleep'";
const ANY_WORKER: &str = "backend_type = 'awty worker'";
const LAUNCHER: &str = "backend_type = 'awty launcher'";

/// The first answer to a question, as superuser.
fn catch<T: for<'a> awty_testkit::postgres::types::FromSql<'a>>(shared: &Shared, sql: &str) -> Option<T> {
    let mut client = shared.connect("postgres", "postgres").ok()?;
    poll(sql, TO_CATCH, || match client.query_opt(sql, &[]) {
        Ok(Some(row)) => Ok(row.get(0)),
        other => Err(format!("{other:?}")),
    })
    .ok()
}

/// Kills a process, and waits until the server has noticed.
fn crash(cluster: &Cluster, shared: &Shared, whom: &str) -> bool {
    let Ok(mut witness) = shared.connect("postgres", "postgres") else { return false };
    let sql = format!("SELECT pid FROM pg_stat_activity WHERE {whom} ORDER BY random() LIMIT 1");
    let Some(pid) = catch::<i32>(shared, &sql) else { return false };
    cluster.kill(Signal::KILL, pid);
    is_down(&mut witness)
}

/// Has the server noticed? The process may also have gone by itself just before.
fn is_down(witness: &mut Client) -> bool {
    poll("the crash", TO_CATCH, || witness.execute("SELECT", &[]).err().ok_or_else(|| "alive".into())).is_ok()
}

fn signal(shared: &Shared, whom: &str, function: &str) -> bool {
    let sql = format!("SELECT {function}(pid) FROM pg_stat_activity WHERE {whom} ORDER BY random() LIMIT 1");
    catch::<bool>(shared, &sql).unwrap_or(false)
}

fn stop(cluster: &mut Cluster, how: Stop) -> bool {
    cluster.stop(how);
    cluster.start();
    true
}

/// Waits for all clients, so they have to leave.
fn stop_smart(cluster: &mut Cluster, shared: &Shared) -> bool {
    shared.away.store(true, Ordering::Relaxed);
    let done = stop(cluster, Stop::Smart);
    shared.away.store(false, Ordering::Relaxed);
    done
}

/// It comes when the jobs have changed, and is gone after moments: too few for a pause between two looks.
fn kill_dispatcher(cluster: &Cluster, shared: &Shared) -> Result<bool, Error> {
    let mut owner = shared.connect(DATABASES[0], ROLES[0])?;
    let mut witness = shared.connect("postgres", "postgres")?;
    let look = witness.prepare("SELECT pid FROM pg_stat_activity WHERE backend_type = 'awty dispatcher' LIMIT 1")?;
    for _ in 0..20 {
        owner.batch_execute("SELECT awty.alter('alice_set', max_checks => 5)")?;
        for _ in 0..500 {
            if let Some(row) = witness.query_opt(&look, &[])? {
                cluster.kill(Signal::KILL, row.get(0));
                return Ok(is_down(&mut witness));
            }
        }
    }
    Ok(false)
}

fn pause_and_resume(shared: &Shared, random: &mut Random) -> bool {
    let (database, role) = (*random.pick(&DATABASES), *random.pick(&ROLES));
    let Ok(mut client) = shared.connect(database, role) else { return false };
    let jobs = ["watch", "set"].map(|job| format!("{role}_{job}"));
    let pause = |client: &mut Client, verb| {
        jobs.iter().try_for_each(|job| client.batch_execute(&format!("SELECT awty.{verb}('{job}')")))
    };
    if pause(&mut client, "pause").is_err() {
        return false;
    }
    std::thread::park_timeout(Duration::from_millis(500 + random.below(2000)));
    pause(&mut client, "resume").is_ok()
}

/// A check that takes the whole server down, each time, until it is held.
fn crashing_job(cluster: &Cluster, shared: &Shared, random: &mut Random) -> bool {
    let (database, role) = (*random.pick(&DATABASES), *random.pick(&ROLES));
    let key = random.below(u64::MAX).to_string();
    let sql = "SELECT camp.schedule('crash', $2, $1, 0,
                   '{\"act\": \"crash\", \"nap\": 0, \"again\": 0}', 'replace')";
    let Ok(mut client) = shared.connect(database, role) else { return false };
    let Ok(row) = client.query_one(sql, &[&format!("{role}_watch"), &key]) else { return false };
    let id: i64 = row.get(0);
    let position = cluster.log_position();
    let held = poll("the crashing check to be held", TO_RECOVER, || {
        let mut client = shared.connect(database, "postgres").map_err(|error| error.to_string())?;
        let row = client.query_opt("SELECT held FROM awty.future_job WHERE id = $1", &[&id]);
        match row.map_err(|error| error.to_string())?.map(|row| row.get::<_, bool>(0)) {
            Some(false) => Err("not yet".into()),
            other => Ok(other),
        }
    });
    let crashes = cluster.log_since(position).matches("was terminated by signal 9").count();
    if crashes > MAX_CRASHES {
        shared.saw("P7", format!("check {id} took the server down {crashes} times before it was held"));
    }
    if held != Ok(Some(true)) {
        shared.saw("P7", format!("check {id}, which crashes the server each time, should be held: {held:?}"));
        // Or there would be no end to it.
        let _ = poll("a moment to cancel it", TO_RECOVER, || {
            let mut client = shared.connect(database, "postgres").map_err(|error| error.to_string())?;
            client.execute("SELECT awty.cancel('crash', $1)", &[&key]).map_err(|error| error.to_string())
        });
    }
    true
}

/// The primary dies, and a synchronous standby takes its place. The old one is gone for good.
fn promote(cluster: &mut Cluster, shared: &Shared) -> bool {
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
    standby.promote();
    *shared.server.lock().unwrap() = standby.socket_directory().into();
    *cluster = standby;
    true
}

/// Every client that is connected now waits for the standby: a transaction of each has been through since.
fn settled(shared: &Shared) -> bool {
    let before = shared.actions.load(Ordering::Relaxed);
    let enough = (DATABASES.len() * ROLES.len() * 10) as u64;
    poll("the clients to go on", TO_CATCH * 3, || {
        let done = shared.actions.load(Ordering::Relaxed) - before;
        if done > enough { Ok(()) } else { Err(done.to_string()) }
    })
    .is_ok()
}

/// Sets the clock ahead or back, by a second, an hour, days, or to just before the end of 32 bits.
fn set_clock(cluster: &Cluster, random: &mut Random) -> bool {
    const HOUR: i64 = 3600;
    let end_of_32_bits = i64::from(i32::MAX) - chrono::Utc::now().timestamp() - 5;
    let offsets = [0, 1, -1, 2, -2, 30, -30, HOUR, -HOUR, 24 * HOUR, -24 * HOUR, 48 * HOUR, -48 * HOUR, end_of_32_bits];
    cluster.set_clock(*random.pick(&offsets));
    true
}

/// Waits until the server is there, and has done all that was due then. An error says what was not.
pub fn recover(shared: &Shared) -> Result<(), String> {
    for database in DATABASES {
        let mut since: Option<crate::checker::Time> = None;
        let mut slow = Some(Instant::now() + SLOW);
        poll(&format!("what is due in database {database}"), TO_RECOVER, || {
            let mut client = shared.connect(database, "postgres").map_err(|error| error.to_string())?;
            if since.is_none() {
                let row = client.query_one("SELECT clock_timestamp()", &[]).map_err(|error| error.to_string())?;
                since = Some(row.get(0));
            }
            let sql = "SELECT count(*), min(f::text) FROM awty.future_job AS f WHERE NOT held AND next_check_at <= $1";
            let row = client.query_one(sql, &[&since]).map_err(|error| error.to_string())?;
            match row.get(0) {
                0_i64 => Ok(()),
                overdue => {
                    let seen = format!("{overdue} overdue, one of them {:?}", row.get::<_, Option<String>>(1));
                    if slow.take_if(|slow| *slow < Instant::now()).is_some() {
                        println!("slow: {seen}; {}", look_around(&mut client));
                    }
                    Err(seen)
                }
            }
        })?;
    }
    Ok(())
}

/// The state of the database and of awty's processes.
fn look_around(client: &mut Client) -> String {
    let sql = "SELECT concat_ws(' ', clock_timestamp(), (SELECT s FROM awty.status AS s),
                   (SELECT array_agg((datname, usename, backend_type, wait_event, state, clock_timestamp() - backend_start))
                    FROM pg_stat_activity WHERE starts_with(backend_type, 'awty')))";
    client.query_one(sql, &[]).map_or_else(|error| error.to_string(), |row| row.get(0))
}
