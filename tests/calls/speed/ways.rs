//! Ways to make the same calls, each from a full queue; each gives calls per second.

use super::field::Field;
use awty_testkit::checkout;
use awty_testkit::postgres::Client;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Calls that the gateway makes to one origin at once, and what the others may, too: awty_http's default.
const AT_ONCE: u32 = 10;
/// Leases of one claim, and answers of one statement, of the SQL ceiling.
const BATCH: i32 = 500;

fn now() -> i64 {
    Utc::now().timestamp_micros()
}

/// awty_http.send, all due in one slot, one gateway as it is by default.
pub fn gateway(field: &mut Field) -> Result<f64, String> {
    let from = field.place.receiver.count();
    field.place.start_gateway();
    // Enough to send them all, and to write everything.
    let due = Utc::now() + TimeDelta::seconds(10 + i64::from(field.calls / 1_500));
    let sql = "SELECT count(awty_http.send(($1::text[])[n % cardinality($1) + 1] || '/' || n, jsonb_build_object('order', n), at => $2))
        FROM generate_series(1, $3::int) AS n";
    field.place.app().execute(sql, &[&field.origins, &due, &(field.calls as i32)]).unwrap();
    field.superuser().batch_execute("VACUUM ANALYZE awty.future_job, awty_internal.lease").unwrap();
    field.superuser().batch_execute("CHECKPOINT").unwrap();
    let mut client = field.superuser();
    let slot: DateTime<Utc> =
        client.query_one("SELECT max(next_check_at) FROM awty.future_job WHERE job = 'http'", &[]).unwrap().get(0);
    assert!(Utc::now() < slot, "the calls were due before all was written");
    let booked = "SELECT NOT EXISTS (SELECT FROM awty.future_job WHERE job = 'http')";
    let rate = field.rate(field.calls, from, slot.timestamp_micros(), booked);
    field.place.end_gateway();
    rate
}

/// net.http_post, all in one transaction. Its tables are empty before.
pub fn pg_net(field: &Field, calls: u32, batch: u32) -> Result<f64, String> {
    let from = field.place.receiver.count();
    let mut client = field.superuser();
    client.batch_execute(&format!("ALTER SYSTEM SET pg_net.batch_size = {batch}")).unwrap();
    client.batch_execute("TRUNCATE net.http_request_queue, net._http_response").unwrap();
    field.place.cluster.reload();
    client.batch_execute("CHECKPOINT").unwrap();
    let sql =
        "SELECT count(net.http_post(($1::text[])[n % cardinality($1) + 1] || '/' || n, jsonb_build_object('order', n),
        timeout_milliseconds => 60000)) FROM generate_series(1, $2::int) AS n";
    let mut transaction = client.transaction().unwrap();
    transaction.execute(sql, &[&field.origins, &(calls as i32)]).unwrap();
    transaction.batch_execute("ANALYZE net.http_request_queue").unwrap();
    let begin = now();
    transaction.commit().unwrap();
    field.rate(
        calls,
        from,
        begin,
        &format!("SELECT count(*) = {} FROM net._http_response WHERE status_code = 200", calls),
    )
}

/// Where `scripts/setup bench` puts Node's packages.
pub fn packages() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| checkout().join("target"), PathBuf::from).join("bench/npm")
}

/// One process of Node.js: so many loops, each with so many fetched at a time.
pub fn pg_boss(field: &Field, [loops, batch]: [u32; 2]) -> Result<f64, String> {
    let from = field.place.receiver.count();
    field.superuser().batch_execute("DROP SCHEMA IF EXISTS pgboss CASCADE").unwrap();
    let mut node = Command::new("node");
    node.current_dir(packages()).arg("pg-boss-calls.mjs");
    node.args([field.calls, loops, batch, AT_ONCE].map(|n| n.to_string())).args(&field.origins);
    node.envs(field.place.cluster.environment()).env("PGDATABASE", "postgres");
    let begin = run(&mut node)?;
    field.rate(
        field.calls,
        from,
        begin,
        "SELECT NOT EXISTS (SELECT FROM pgboss.job WHERE name = 'call' AND state <> 'completed')",
    )
}

/// The gateway's own requests and connections, without a database.
pub fn http_alone(field: &Field) -> Result<f64, String> {
    let from = field.place.receiver.count();
    let program = std::env::var_os("AWTY_CALLER").ok_or("AWTY_CALLER names no program")?;
    let mut caller = Command::new(program);
    let begin = run(caller.args([field.calls, AT_ONCE].map(|n| n.to_string())).args(&field.origins))?;
    field.rate(field.calls, from, begin, "SELECT true")
}

/// Runs it to its end; the number that it prints.
fn run(command: &mut Command) -> Result<i64, String> {
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|error| format!("cannot run: {error}"))?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).map_err(|error| error.to_string())?;
    let status = child.wait().map_err(|error| error.to_string())?;
    let begin = line.trim().parse().ok().filter(|_| status.success());
    begin.ok_or_else(|| format!("it ended with {status} and said {line:?}"))
}

/// Claims and answers by plain SQL on one connection, with the result of a real call for each.
pub fn sql_alone(field: &Field) -> Result<f64, String> {
    let mut client: Client = field.superuser();
    let real = "SELECT result FROM awty.attempt WHERE job = 'http' AND ok LIMIT 1";
    let result: Value = client.query_one(real, &[]).map_err(|error| error.to_string())?.get(0);
    client.execute("SELECT plain.fill($1, $2)", &[&field.origins, &(field.calls as i32)]).unwrap();
    client.batch_execute("VACUUM ANALYZE plain.pending, plain.lease").unwrap();
    client.batch_execute("CHECKPOINT").unwrap();
    let claim = client.prepare("SELECT * FROM plain.claim($1)").unwrap();
    let complete = client.prepare("SELECT plain.complete($1, $2)").unwrap();
    let (began, mut done) = (Instant::now(), 0);
    while done < field.calls as usize {
        let leases: Vec<i64> = client.query(&claim, &[&BATCH]).unwrap().iter().map(|row| row.get(0)).collect();
        if leases.is_empty() {
            return Err(format!("{done} of {} were handed out", field.calls));
        }
        client.execute(&complete, &[&leases, &vec![&result; leases.len()]]).unwrap();
        done += leases.len();
    }
    let rate = f64::from(field.calls) / began.elapsed().as_secs_f64();
    client.batch_execute("TRUNCATE plain.attempt").unwrap();
    Ok(rate)
}
