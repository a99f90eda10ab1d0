//! Fills PostgreSQL's NOTIFY queue, so that COMMIT fails. The queue stays full, because a listener with an open
//! transaction does not read the notifications.
//!
//! This fault happens only on request, because filling the queue takes 8 GB of disk and most of a minute.

use crate::load::Shared;
use awty_testkit::postgres::Client;
use awty_testkit::postgres::error::SqlState;
use std::time::Duration;

const FILL: &str = "SELECT count(pg_notify('full', n || repeat('x', 7900))) FROM generate_series(1, 5000) AS n";
const ENOUGH: usize = 400;
const WHILE: Duration = Duration::from_secs(5);

pub fn fill(shared: &Shared) -> bool {
    let listener = shared.connect("postgres", "postgres").and_then(|mut client| {
        client.batch_execute("LISTEN nothing")?;
        client.batch_execute("BEGIN; SELECT")?;
        Ok(client)
    });
    let (Ok(_listener), Ok(mut filler)) = (listener, shared.connect("postgres", "postgres")) else { return false };
    let is_full = (0..ENOUGH).any(|_| is_refused(&mut filler, FILL));
    // The queue has no space left for a large notification, so small ones fill the rest.
    let is_full = is_full && (0..ENOUGH * 100).any(|_| is_refused(&mut filler, "NOTIFY nothing"));
    std::thread::park_timeout(WHILE);
    is_full
}

fn is_refused(client: &mut Client, sql: &str) -> bool {
    client.batch_execute(sql).is_err_and(|error| error.code() == Some(&SqlState::PROGRAM_LIMIT_EXCEEDED))
}
