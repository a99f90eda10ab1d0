//! Runs that neither a cancellation nor a termination reaches, because their code never asks.

use std::time::{Duration, Instant};

use awty_testkit::postgres::Client;
use awty_testkit::{Cluster, PATIENCE};

use crate::field::{DB, Field};

/// How long such a run takes here, about. The second strike comes after three seconds.
const LONG: Duration = Duration::from_secs(12);

/// The distance of two paths of so many points each asks for no interrupts, and takes a time that grows with their square.
fn distance(points: f64) -> String {
    format!(
        "(SELECT path <-> path FROM (SELECT ('[' || string_agg(format('(%s,%s)', i, i % 7), ',') || ']')::path AS path
              FROM generate_series(1, {points:.0}) AS i) AS p)"
    )
}

/// How many points take [`LONG`].
fn points(client: &mut Client) -> f64 {
    const SAMPLE: f64 = 500.0;
    let began = Instant::now();
    client.batch_execute(&format!("SELECT {}", distance(SAMPLE))).unwrap();
    SAMPLE * (LONG.as_secs_f64() / began.elapsed().as_secs_f64()).sqrt()
}

/// P6, P7, P8: a run that was struck twice and goes on is none of the workers that there may be; `awty.status` and the log say
/// that it is there.
#[test]
fn a_run_that_nothing_stops_takes_no_place_from_others() {
    let field = Field::with(Cluster::builder().set("awty.max_workers", "1").set("awty.max_workers_per_role", "1"));
    let points = points(&mut field.client("mallory"));
    field.alice_goes_on();
    let status = "SELECT concat_ws(' ', why, last_error) FROM awty.status";
    assert_eq!(field.one::<String>("alice", status), "");

    let body = format!("BEGIN PERFORM pg_advisory_xact_lock(97); PERFORM {}; RETURN NULL; END", distance(points));
    field.job_with("mallory", "deaf", &body, "timeout => '1 second', max_attempts => 1");
    let position = field.cluster.log_position();
    let id = field.schedule("mallory", "deaf", "1");
    field.await_sign(97);
    let pid: i32 = field.one("postgres", "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid = 97");
    let hers = field.schedule("alice", "innocent", "2");
    field.end_of(hers).is_done();
    // Its own length is the measure.
    let goes_on = format!("SELECT count(*) = 1 FROM pg_stat_activity WHERE pid = {pid}");
    assert!(field.one::<bool>("postgres", &goes_on), "alice's check waited for the end of mallory's run");
    let told: String = field.one("alice", status);
    assert!(told.contains("run"), "awty.status says {told:?}");
    field.cluster.await_that("the log to name the process", Duration::from_secs(2), || {
        let log = field.cluster.log_since(position);
        // Who writes a line is named in front of its level. The postmaster's are of the end of the process.
        let messages =
            log.lines().filter(|line| !line.contains("postmaster")).filter_map(|line| line.split_once(":  "));
        let named = messages.map(|(_, message)| message).any(|message| message.contains(&pid.to_string()));
        if named { Ok(()) } else { Err(log.clone()) }
    });

    let ended = field.cluster.await_that("the end of its process", PATIENCE + LONG, || {
        if field.one::<bool>("postgres", &goes_on) { Err(format!("{pid} goes on")) } else { Ok(field.end_of(id)) }
    });
    assert_eq!((ended.outcome.as_str(), ended.sqlstate.as_str()), ("timed_out", "57014"), "{ended:?}");
    field.cluster.await_sql(DB, "no worker to be left of it", &format!("SELECT NOT ({goes_on})"));
}
