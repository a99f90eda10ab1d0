//! Measures programs that make HTTP calls. Each program starts when all calls are in its queue.

use super::field::{Field, LONGEST};
use super::run::{Calls, Run};
use awty_testkit::postgres::Client;
use awty_testkit::{poll, target};
use chrono::{DateTime, Utc};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Number of concurrent calls to one target, equal to the default limit of awty_http.
const AT_ONCE: u32 = 10;
const BATCH: i32 = 500;
const FILES: u32 = 10_000;

fn now() -> i64 {
    Utc::now().timestamp_micros()
}

fn soon(calls: &Calls) -> i64 {
    now() / 1_000_000 + 10 + i64::from(calls.count / 1_500)
}

pub fn gateway(field: &mut Field, calls: &Calls) -> Result<Run, String> {
    let from = field.place.receiver.count();
    field.place.start_gateway();
    let begin = DateTime::from_timestamp(soon(calls), 0).ok_or("a time out of bounds")?;
    let sql =
        "SELECT count(awty_http.send(($1::text[])[n % cardinality($1) + 1] || '/' || n, jsonb_build_object('order', n),
        at => $2::timestamptz + interval '1 s' * ((n - 1) / $4::int))) FROM generate_series(1, $3::int) AS n";
    let [count, each_second] = [calls.count, calls.each_second()].map(|n| n as i32);
    field.place.app().execute(sql, &[&field.origins, &begin, &count, &each_second]).unwrap();
    field.superuser().batch_execute("VACUUM ANALYZE awty.future_job, awty_internal.lease").unwrap();
    field.superuser().batch_execute("CHECKPOINT").unwrap();
    let first = "SELECT min(next_check_at) FROM awty.future_job WHERE job = 'http.app'";
    let first: DateTime<Utc> = field.superuser().query_one(first, &[]).unwrap().get(0);
    assert!(first == begin && Utc::now() < begin, "the calls were due before all was written, or in another slot");
    let booked = "SELECT NOT EXISTS (SELECT FROM awty.future_job WHERE job = 'http.app')";
    let run = field.run(calls.count, from, begin.timestamp_micros(), booked);
    field.place.end_gateway();
    run
}

pub fn pg_net(field: &Field, calls: u32, batch: u32) -> Result<Run, String> {
    let from = field.place.receiver.count();
    let mut client = field.superuser();
    // pg_net needs many open files, because it opens one connection for each call of a batch.
    let worker = "SELECT pid FROM pg_stat_activity WHERE backend_type LIKE 'pg_net%'";
    let worker: i32 = client.query_one(worker, &[]).map_err(|error| format!("pg_net's worker: {error}"))?.get(0);
    field.place.cluster.allow_files(worker, FILES);
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
    let ended = "SELECT count(*), count(*) FILTER (WHERE status_code IS DISTINCT FROM 200) FROM net._http_response";
    let failed: i64 = poll("pg_net to end its calls", LONGEST, || {
        let row = client.query_one(ended, &[]).map_err(|error| error.to_string())?;
        let count: i64 = row.get(0);
        if count == i64::from(calls) { Ok(row.get(1)) } else { Err(format!("{count} of {calls}")) }
    })?;
    if failed > 0 {
        return Err(format!("{failed} of {calls} calls failed"));
    }
    field.run(calls, from, begin, "SELECT true")
}

pub fn packages() -> PathBuf {
    target().join("bench/npm")
}

pub fn pg_boss(field: &Field, calls: &Calls, [loops, batch]: [u32; 2]) -> Result<Run, String> {
    let from = field.place.receiver.count();
    field.superuser().batch_execute("DROP SCHEMA IF EXISTS pgboss CASCADE").unwrap();
    let mut node = Command::new("node");
    node.current_dir(packages()).arg("pg-boss-calls.mjs");
    let begin = calls.a_second.map_or(0, |_| soon(calls));
    node.args([calls.count, loops, batch, AT_ONCE].map(|n| n.to_string()));
    node.args([begin.to_string(), calls.each_second().to_string()]).args(&field.origins);
    node.envs(field.place.cluster.environment()).env("PGDATABASE", "postgres");
    let begin = run(&mut node)?;
    field.run(
        calls.count,
        from,
        begin,
        "SELECT NOT EXISTS (SELECT FROM pgboss.job WHERE name = 'call' AND state <> 'completed')",
    )
}

pub fn http_alone(field: &Field, calls: u32) -> Result<Run, String> {
    let from = field.place.receiver.count();
    let program = std::env::var_os("AWTY_CALLER").ok_or("AWTY_CALLER names no program")?;
    let mut caller = Command::new(program);
    let begin = run(caller.args([calls, AT_ONCE].map(|n| n.to_string())).args(&field.origins))?;
    field.run(calls, from, begin, "SELECT true")
}

fn run(command: &mut Command) -> Result<i64, String> {
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|error| format!("cannot run: {error}"))?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).map_err(|error| error.to_string())?;
    let status = child.wait().map_err(|error| error.to_string())?;
    let begin = line.trim().parse().ok().filter(|_| status.success());
    begin.ok_or_else(|| format!("it ended with {status} and said {line:?}"))
}

pub fn sql_alone(field: &Field, calls: u32) -> Result<f64, String> {
    let mut client: Client = field.superuser();
    let real = "SELECT result FROM awty.attempt WHERE job = 'http.app' AND ok LIMIT 1";
    let result: Value = client.query_one(real, &[]).map_err(|error| error.to_string())?.get(0);
    client.execute("SELECT plain.fill($1, $2)", &[&field.origins, &(calls as i32)]).unwrap();
    client.batch_execute("VACUUM ANALYZE plain.pending, plain.lease").unwrap();
    client.batch_execute("CHECKPOINT").unwrap();
    let claim = client.prepare("SELECT * FROM plain.claim($1)").unwrap();
    let complete = client.prepare("SELECT plain.complete($1, $2)").unwrap();
    let (began, mut done) = (Instant::now(), 0);
    while done < calls as usize {
        let leases: Vec<i64> = client.query(&claim, &[&BATCH]).unwrap().iter().map(|row| row.get(0)).collect();
        if leases.is_empty() {
            return Err(format!("{done} of {calls} were handed out"));
        }
        client.execute(&complete, &[&leases, &vec![&result; leases.len()]]).unwrap();
        done += leases.len();
    }
    let rate = f64::from(calls) / began.elapsed().as_secs_f64();
    client.batch_execute("TRUNCATE plain.attempt").unwrap();
    Ok(rate)
}
