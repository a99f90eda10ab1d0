//! After a crash, awty runs the interrupted checks (the suspects) one at a time. The suspects of one role must not
//! delay the checks of other roles.

use std::time::Duration;

use awty_testkit::postgres::Client;
use awty_testkit::{Cluster, PATIENCE, Signal};

use crate::field::{DB, Field};

/// Time limit for alice's checks. The limit is below one minute, the interval of the maintainer's inspections, because
/// the checks must not wait for an inspection.
const SOON: Duration = Duration::from_secs(40);

fn dies_once(role: &str) -> String {
    format!(
        "IF nextval('{role}.runs') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(1); END IF;"
    )
}

fn job_with_door(field: &Field, role: &str, name: &str, begin: &str, sign: i32, end: &str) {
    field.sql(role, &format!("CREATE SEQUENCE {role}.runs; CREATE TABLE {role}.door AS SELECT false AS open"));
    let body = format!(
        "BEGIN
             {begin}
             PERFORM pg_advisory_xact_lock_shared({sign});
             WHILE NOT (SELECT open FROM {role}.door) LOOP PERFORM pg_sleep(0.02); END LOOP;
             {end}
             RETURN NULL;
         END"
    );
    field.job_with(role, name, &body, "timeout => '1 day', max_attempts => 1");
}

fn open_door(field: &Field, role: &str) {
    field.sql(role, &format!("UPDATE {role}.door SET open = true"));
}

const LONG: i32 = 95;
const QUICK: i32 = 96;
const DIE: &str = "PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(1);";

fn mallory_has_a_suspect(end: &str) -> Field {
    let field = Field::new();
    job_with_door(&field, "mallory", "long", &dies_once("mallory"), LONG, end);
    field.schedule("mallory", "long", "1");
    field.await_sign(LONG);
    field
}

#[track_caller]
fn mallory_abandons_it(field: &Field) -> Client {
    let mut holding = field.client("mallory");
    let keep = "BEGIN; SELECT awty.schedule('thing', '1', 'long', after => '1 day', on_conflict => 'keep')";
    holding.batch_execute(keep).unwrap();
    let position = field.cluster.log_position();
    open_door(field, "mallory");
    field.cluster.await_log(&["FATAL:  terminating"], position);
    holding
}

#[track_caller]
fn alices_suspect_is_done(field: &Field) {
    field.sql("alice", "CREATE SEQUENCE alice.runs");
    field.job("alice", "moody", &format!("BEGIN {} RETURN NULL; END", dies_once("alice")));
    field.schedule("alice", "moody", "1");
    await_alice(field, 1);
}

#[track_caller]
fn await_alice(field: &Field, checks: i64) {
    let mut client = field.client("alice");
    field.cluster.await_that("alice's checks to be done", SOON, || {
        let done = "SELECT count(*) FROM awty.future_job_history WHERE outcome = 'done'";
        let done: i64 = client.query_one(done, &[]).map_err(|error| format!("{error:?}"))?.get(0);
        if done == checks { Ok(()) } else { Err(format!("{done} of {checks}")) }
    });
}

/// Pauses alice's job before the crash, so that mallory's check runs first after the restart.
#[track_caller]
fn crash(end: &str) -> Field {
    let field = Field::with(Cluster::builder());
    job_with_door(&field, "alice", "hers", "", QUICK, "");
    job_with_door(&field, "mallory", "long", "", LONG, end);
    field.sql("alice", "SELECT awty.schedule('thing', i::text, 'hers', at => now()) FROM generate_series(1, 10) AS i");
    field.schedule("mallory", "long", "1");
    field.await_sign(QUICK);
    field.await_sign(LONG);
    field.sql("alice", "SELECT awty.pause('hers')");
    open_door_after_crash(&field);
    field
}

#[track_caller]
fn open_door_after_crash(field: &Field) {
    let worker: i32 =
        field.one("postgres", &format!("SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid = {LONG}"));
    let position = field.cluster.log_position();
    field.cluster.kill(Signal::KILL, worker);
    field.cluster.await_log(&["database system is ready to accept connections"], position);
    field.cluster.await_that("a connection", PATIENCE, || {
        field.cluster.try_client(DB, "alice").map(|_| ()).map_err(|error| error.to_string())
    });
    field.await_sign(LONG);
    open_door(field, "alice");
}

#[test]
fn a_long_run_of_one_role_stops_no_suspects_of_another_after_a_crash() {
    let field = crash("");
    field.sql("alice", "SELECT awty.resume('hers')");
    await_alice(&field, 10);
}

#[test]
fn a_run_that_was_abandoned_stops_no_suspects_of_another_role_after_a_crash() {
    let field = crash(DIE);
    let holding = mallory_abandons_it(&field);
    field.sql("alice", "SELECT awty.resume('hers')");
    await_alice(&field, 10);
    drop(holding);
}

#[test]
fn a_run_that_ended_its_process_and_takes_all_day_stops_no_other_role() {
    let field = mallory_has_a_suspect("");
    alices_suspect_is_done(&field);
}

#[test]
fn a_run_that_ended_its_process_and_cannot_be_counted_stops_no_other_role() {
    let field = mallory_has_a_suspect(DIE);
    let holding = mallory_abandons_it(&field);
    alices_suspect_is_done(&field);
    drop(holding);
}
