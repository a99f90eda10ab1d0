//! The queue of NOTIFY is full: who notifies gets an error at COMMIT, as it does where a listener sits in an open transaction.
//!
//! It is chosen only where it is asked for: the queue takes 8 GB, and with it the disk and most of a minute. (From PostgreSQL 17 on
//! `max_notify_queue_pages` could make it small; the campaign leaves it as it is.)

use crate::load::Shared;
use awty_testkit::postgres::Client;
use awty_testkit::postgres::error::SqlState;
use std::time::Duration;

/// Not on the channel that the campaign's jobs use: nobody has to be told.
const FILL: &str = "SELECT count(pg_notify('full', n || repeat('x', 7900))) FROM generate_series(1, 5000) AS n";
/// More than any queue takes.
const ENOUGH: usize = 400;
/// For runs and clients to meet it.
const WHILE: Duration = Duration::from_secs(5);

/// Comes about when the queue is full while awty is at work.
pub fn fill(shared: &Shared) -> bool {
    let listener = shared.connect("postgres", "postgres").and_then(|mut client| {
        client.batch_execute("LISTEN nothing")?;
        client.batch_execute("BEGIN; SELECT")?;
        Ok(client)
    });
    let (Ok(_listener), Ok(mut filler)) = (listener, shared.connect("postgres", "postgres")) else { return false };
    let is_full = (0..ENOUGH).any(|_| is_refused(&mut filler, FILL));
    // One that fits in where a large one does not.
    let is_full = is_full && (0..ENOUGH * 100).any(|_| is_refused(&mut filler, "NOTIFY nothing"));
    std::thread::park_timeout(WHILE);
    is_full
}

fn is_refused(client: &mut Client, sql: &str) -> bool {
    client.batch_execute(sql).is_err_and(|error| error.code() == Some(&SqlState::PROGRAM_LIMIT_EXCEEDED))
}
