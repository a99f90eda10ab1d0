//! Tests that a run that executes pg_sleep blocks no client (promise P4).
//!
//! The test reads the locks between two observations of a run. If the run sleeps in both, it also slept while the test
//! read the locks.

use crate::load::{ROLES, Shared};
use awty_testkit::postgres::Client;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(60);

/// The process id and the start time identify a transaction, because one process executes many transactions.
const WAITING: &str = "
    SELECT concat_ws(' ', c.usename, c.pid, c.xact_start, 'waits for', w.usename, w.pid, w.xact_start, 'in', c.datname)
    FROM pg_stat_activity AS c
    CROSS JOIN LATERAL unnest(pg_blocking_pids(c.pid)) AS blocking (pid)
    JOIN pg_stat_activity AS w ON w.pid = blocking.pid
    WHERE c.wait_event_type = 'Lock' AND c.application_name = 'campaign' AND c.usename = ANY ($1)
        AND w.backend_type = 'awty worker' AND w.wait_event = 'PgSleep'";

pub fn start(shared: &Arc<Shared>) -> JoinHandle<()> {
    let shared = Arc::clone(shared);
    std::thread::spawn(move || {
        let mut connection: Option<Client> = None;
        let mut before = BTreeSet::new();
        while !shared.over.load(Ordering::Relaxed) {
            std::thread::park_timeout(PAUSE);
            if shared.away.load(Ordering::Relaxed) {
                connection = None;
            } else if connection.is_none() {
                connection = shared.connect("postgres", "postgres").ok();
            }
            let seen = connection.as_mut().map(look).unwrap_or_default();
            for waits in seen.intersection(&before) {
                shared.saw("P4", format!("a client waits for a run: {waits}"));
            }
            if connection.as_ref().is_some_and(Client::is_closed) {
                connection = None;
            }
            before = seen;
        }
    })
}

fn look(client: &mut Client) -> BTreeSet<String> {
    let rows = client.query(WAITING, &[&ROLES.as_slice()]);
    rows.unwrap_or_default().iter().map(|row| row.get(0)).collect()
}
