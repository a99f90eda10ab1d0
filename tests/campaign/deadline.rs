//! Tests two rules of a table, which together use all arguments of `awty.watch()`.
//!
//! Each transaction writes its changes to logs, and `camp.broken_deadlines()` (deadline.sql) compares awty's tables
//! with these logs.

use crate::random::Random;
use crate::watched::Visitor;
use awty_testkit::postgres::{Client, Error};

const KEYS: u64 = 24;
const RULES: [&str; 2] = ["ticket", "promise"];

/// Reads the rules' counters from shared memory, which no snapshot covers. Must run before the snapshot of [`BROKEN`],
/// so that the counters are not newer than the tables.
pub const COUNTED: &str = "SELECT coalesce(jsonb_agg(jsonb_build_object('job', job, 'met', met, 'late', late)), '[]')
    FROM awty.job_status WHERE job IN ('ticket', 'promise')";

/// Returns the contradictions between awty's tables and the logs. $1 is true if the clock was set, and $2 is the result
/// of [`COUNTED`].
pub const BROKEN: &str = "SELECT promise, what FROM camp.broken_deadlines($1, $2)";

pub const SET_UP: &str = "SELECT camp.replace_calendar('office');
    SELECT camp.watch('ticket', 2, '{4 s}', '4 s'); SELECT camp.watch('promise', 2, '{4 s}', '4 s')";

pub fn statement(random: &mut Random) -> String {
    let key = random.below(KEYS);
    let since = format!("clock_timestamp() + interval '{} ms'", random.below(8000) as i64 - 3000);
    let state = *random.pick(&["open", "open", "waiting"]);
    match random.below(100) {
        0..22 => format!(
            "INSERT INTO camp.ticket SELECT {key}, {since}, '{state}' WHERE NOT EXISTS (SELECT FROM camp.ticket WHERE id = {key})"
        ),
        22..28 => format!(
            "DELETE FROM camp.ticket WHERE id BETWEEN {key} AND {key} + 2; INSERT INTO camp.ticket SELECT n, {since}, '{state}' FROM generate_series({key}, {key} + 2) AS n"
        ),
        28..42 => format!("UPDATE camp.ticket SET state = 'solved' WHERE id = {key}"),
        42..58 => format!("UPDATE camp.ticket SET state = 'waiting' WHERE id = {key}"),
        58..76 => format!("UPDATE camp.ticket SET state = 'open' WHERE id = {key}"),
        76..84 => format!("UPDATE camp.ticket SET since = {since} WHERE id = {key}"),
        84..87 => format!("UPDATE camp.ticket SET since = NULL WHERE id = {key}"),
        87..93 => format!("DELETE FROM camp.ticket WHERE id = {key}"),
        93..95 => format!("UPDATE camp.ticket SET note = 'x' WHERE id = {key}"),
        _ => format!(
            "UPDATE camp.ticket SET state = CASE state WHEN 'open' THEN 'waiting' ELSE 'open' END WHERE id % 4 = {key} % 4"
        ),
    }
}

pub fn own(visitor: &mut Visitor, client: &mut Client) -> Result<(), Error> {
    let random = &mut visitor.random;
    let rule = *random.pick(&RULES);
    let script = match random.below(40) {
        0 => "SELECT camp.replace_calendar('office')".into(),
        1 => {
            let within = 1 + random.below(3);
            let escalate = *random.pick(&["{}", "{4 s}", "{4 s,6 s}"]);
            let every = *random.pick(&["NULL", "'4 s'", "'5 s'"]);
            format!("SELECT camp.watch('{rule}', {within}, '{escalate}', {every})")
        }
        2..14 => {
            let (key, seconds) = (random.below(KEYS), random.below(5));
            let until =
                if seconds == 0 { "NULL".into() } else { format!("clock_timestamp() + interval '{seconds} s'") };
            format!("SELECT camp.hold('{rule}', {key}, {until})")
        }
        14..24 => format!("SELECT camp.release('{rule}', {})", random.below(KEYS)),
        24 => format!("SELECT camp.pause('{rule}', clock_timestamp() + interval '{} s')", 1 + random.below(3)),
        25 => format!("SELECT camp.resume('{rule}')"),
        _ => return Ok(()),
    };
    match visitor.attempt(client, &format!("BEGIN; {script}; COMMIT")) {
        // Ignores errors that random calls may cause, such as 42704 if the row has no alert, and 22023 if the given end
        // of a hold has already passed.
        Err(error) if error.code().is_some_and(|code| ["42704", "55000", "22023"].contains(&code.code())) => {
            client.batch_execute("ROLLBACK")
        }
        done => done,
    }
}
