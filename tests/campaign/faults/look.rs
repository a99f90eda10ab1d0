use crate::load::{DATABASES, ROLES, Shared};
use awty_testkit::poll;
use awty_testkit::postgres::Client;
use awty_testkit::postgres::types::FromSql;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub const TO_CATCH: Duration = Duration::from_secs(3);

pub fn catch<T: for<'a> FromSql<'a>>(shared: &Shared, sql: &str) -> Option<T> {
    let mut client = shared.connect("postgres", "postgres").ok()?;
    poll(sql, TO_CATCH, || match client.query_opt(sql, &[]) {
        Ok(Some(row)) => Ok(row.get(0)),
        other => Err(format!("{other:?}")),
    })
    .ok()
}

pub fn is_down(witness: &mut Client) -> bool {
    poll("the crash", TO_CATCH, || witness.execute("SELECT", &[]).err().ok_or_else(|| "alive".into())).is_ok()
}

/// Waits until each connected client has committed again, and has therefore read the new setting. All later commits
/// then wait for the standby.
pub fn settled(shared: &Shared) -> bool {
    let before = shared.actions.load(Ordering::Relaxed);
    let enough = (DATABASES.len() * ROLES.len() * 10) as u64;
    poll("the clients to go on", TO_CATCH * 3, || {
        let done = shared.actions.load(Ordering::Relaxed) - before;
        if done > enough { Ok(()) } else { Err(done.to_string()) }
    })
    .is_ok()
}

pub fn look_around(client: &mut Client) -> String {
    let sql = "SELECT concat_ws(' ', clock_timestamp(), (SELECT s FROM awty.status AS s),
                   (SELECT array_agg((datname, usename, backend_type, wait_event, state, clock_timestamp() - backend_start))
                    FROM pg_stat_activity WHERE starts_with(backend_type, 'awty')))";
    client.query_one(sql, &[]).map_or_else(|error| error.to_string(), |row| row.get(0))
}
