use awty_testkit::{Cluster, PATIENCE};

use crate::field::{DB, Field};

fn deaf_function(file: &str) -> String {
    format!(
        "CREATE EXTENSION plpython3u;
         CREATE SCHEMA tools; GRANT USAGE ON SCHEMA tools TO PUBLIC;
         CREATE FUNCTION tools.deaf() RETURNS void LANGUAGE plpython3u AS $$
import os, time
while not os.path.exists('{file}'):
    time.sleep(0.02)
$$"
    )
}

#[test]
fn a_run_that_nothing_stops_takes_no_place_from_others() {
    let field = Field::with(Cluster::builder().set("awty.max_workers", "1").set("awty.max_workers_per_role", "1"));
    let end = field.cluster.socket_directory().join("end_of_the_run");
    field.sql("postgres", &deaf_function(&end.display().to_string()));
    field.alice_goes_on();
    let status = "SELECT concat_ws(' ', why, last_error) FROM awty.status";
    let await_status = |what: &str, good: &dyn Fn(&str) -> bool| {
        field.cluster.await_that(what, PATIENCE, || {
            let told: String = field.one("alice", status);
            if good(&told) { Ok(()) } else { Err(told) }
        });
    };
    await_status("a status without a word of it", &|told| told.is_empty());

    let body = "BEGIN PERFORM pg_advisory_xact_lock(97); PERFORM tools.deaf(); RETURN NULL; END";
    field.job_with("mallory", "deaf", body, "timeout => '1 second', max_attempts => 1");
    let position = field.cluster.log_position();
    let id = field.schedule("mallory", "deaf", "1");
    field.await_sign(97);
    let pid: i32 = field.one("postgres", "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid = 97");
    let hers = field.schedule("alice", "innocent", "2");
    field.end_of(hers).is_done();
    let goes_on = format!("SELECT count(*) = 1 FROM pg_stat_activity WHERE pid = {pid}");
    assert!(field.one::<bool>("postgres", &goes_on), "alice's check waited for the end of mallory's run");
    await_status("the status to tell of it", &|told| told.contains("run"));
    field.cluster.await_that("the log to name the process", PATIENCE, || {
        let log = field.cluster.log_since(position);
        let messages =
            log.lines().filter(|line| !line.contains("postmaster")).filter_map(|line| line.split_once(":  "));
        let named = messages.map(|(_, message)| message).any(|message| message.contains(&pid.to_string()));
        if named { Ok(()) } else { Err(log.clone()) }
    });

    std::fs::write(&end, "").unwrap();
    let ended = field.end_of(id);
    assert_eq!(ended.why(), ("timed_out", Some("57014")), "{ended:?}");
    field.cluster.await_sql(DB, "no worker to be left of it", &format!("SELECT NOT ({goes_on})"));
}
