use super::look::{catch, is_down};
use crate::load::{DATABASES, ROLES, Shared};
use awty_testkit::postgres::Error;
use awty_testkit::{Cluster, Signal};

pub const IN_RUN: &str = "backend_type = 'awty worker' AND wait_event = 'PgSleep'";
pub const ANY_WORKER: &str = "backend_type = 'awty worker'";
pub const LAUNCHER: &str = "backend_type = 'awty launcher'";
pub const OTHERS: &str = "backend_type IN ('checkpointer', 'background writer', 'walwriter', 'autovacuum launcher',
    'autovacuum worker', 'logical replication launcher')";
pub const CLIENT: &str = "backend_type = 'client backend' AND application_name = 'campaign' AND pid <> pg_backend_pid()
    AND datname <> 'postgres'";

pub fn kill(cluster: &Cluster, shared: &Shared, whom: &str) -> bool {
    let Ok(mut witness) = shared.connect("postgres", "postgres") else { return false };
    let sql = format!("SELECT pid FROM pg_stat_activity WHERE {whom} ORDER BY random() LIMIT 1");
    let Some(pid) = catch::<i32>(shared, &sql) else { return false };
    shared.note_struck();
    cluster.kill(Signal::KILL, pid);
    is_down(&mut witness)
}

pub fn signal(shared: &Shared, whom: &str, function: &str) -> bool {
    let sql = format!("SELECT {function}(pid) FROM pg_stat_activity WHERE {whom} ORDER BY random() LIMIT 1");
    shared.note_struck();
    catch::<bool>(shared, &sql).unwrap_or(false)
}

/// Terminates the launcher and waits for its restart, because the postmaster would delay the restart if a later fault
/// set the clock back.
pub fn terminate_launcher(shared: &Shared) -> bool {
    let is_another = |pid: i32| format!("SELECT true FROM pg_stat_activity WHERE {LAUNCHER} AND pid <> {pid}");
    let Some(pid) = catch::<i32>(shared, &format!("SELECT pid FROM pg_stat_activity WHERE {LAUNCHER}")) else {
        return false;
    };
    signal(shared, LAUNCHER, "pg_terminate_backend") && catch::<bool>(shared, &is_another(pid)).is_some()
}

/// Polls without sleeping, because the maintainer's process lives only for a moment.
pub fn kill_maintainer(cluster: &Cluster, shared: &Shared) -> Result<bool, Error> {
    let mut owner = shared.connect(DATABASES[0], ROLES[0])?;
    let mut witness = shared.connect("postgres", "postgres")?;
    let look = witness.prepare("SELECT pid FROM pg_stat_activity WHERE backend_type = 'awty maintainer' LIMIT 1")?;
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
