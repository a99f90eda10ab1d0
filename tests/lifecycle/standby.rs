use awty_testkit::fixture::{GATE, NOTE, Shop, ready_at};
use awty_testkit::postgres::NoTls;
use awty_testkit::postgres::error::SqlState;
use awty_testkit::{Cluster, Stop};
use chrono::{DateTime, TimeDelta, Utc};
use std::sync::atomic::{AtomicBool, Ordering};

fn pair() -> (Shop, Cluster) {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    let standby = shop.cluster.standby();
    shop.cluster.configure("awty.enabled = off");
    shop.cluster.reload();
    shop.await_true("awty to be disabled", "SELECT NOT enabled FROM awty.status");
    shop.schedule("1", "note", "after => '0'");
    shop.await_time(shop.slot_of("1"), 2);
    let lsn: String = shop.cluster.value("postgres", "SELECT pg_current_wal_flush_lsn()::text");
    standby.await_sql("postgres", "the standby to follow", &format!("SELECT pg_last_wal_replay_lsn() >= '{lsn}'"));
    (shop, standby)
}

#[test]
fn a_standby_runs_nothing_and_schedules_nothing() {
    let (shop, standby) = pair();
    assert!(standby.pids("awty").is_empty());
    let seen = "SELECT enabled AND concat_ws('; ', why, fix) LIKE 'this server is a standby;%' AND NOT awty.healthy() FROM awty.status";
    assert!(standby.value::<bool>("postgres", seen), "it would have run");
    let waits = "SELECT bool_or(detail LIKE 'this server is a standby;%') FROM awty.explain('orders', '1')";
    assert!(standby.value::<bool>("postgres", waits));
    assert_eq!(standby.value::<i64>("postgres", "SELECT count(*) FROM awty.doctor() WHERE level = 'error'"), 1);
    for call in [
        "SELECT awty.schedule('orders', '2', 'note', after => '0')",
        "SELECT awty.cancel('orders', '1')",
        "SELECT awty.pause('note')",
    ] {
        let refused = standby.client("postgres", "shop").batch_execute(call).unwrap_err();
        assert_eq!(refused.code(), Some(&SqlState::READ_ONLY_SQL_TRANSACTION), "{call}: {refused:?}");
    }
    assert_eq!(standby.value::<i64>("postgres", "SELECT count(*) FROM shop.note"), 0);
    assert_eq!(shop.notes("1"), 0);
}

#[test]
fn what_is_due_runs_at_once_after_a_promotion() {
    let (mut shop, mut standby) = pair();
    shop.cluster.stop(Stop::Immediate);
    standby.promote();
    standby.await_sql("postgres", "the check to be done", "SELECT count(*) = 1 FROM awty.future_job_history");
    let started: DateTime<Utc> = standby
        .value("postgres", "SELECT started_at FROM awty.future_job_history WHERE outcome = 'done' AND attempts = 1");
    let ready = ready_at(&standby);
    assert!(started - ready < TimeDelta::seconds(2), "ready at {ready}, started at {started}");
    assert_eq!(standby.value::<i64>("postgres", "SELECT count(*) FROM shop.note"), 1);
    standby.execute("postgres", &["SELECT awty.schedule('orders', '2', 'note', after => '0')"]);
    standby.await_sql("postgres", "a new check to be done", "SELECT count(*) = 2 FROM awty.future_job_history");
}

#[test]
fn a_missing_synchronous_standby_stops_nothing_after_a_crash() {
    let mut shop = Shop::open();
    shop.job(
        "gated",
        &format!("BEGIN {GATE} INSERT INTO shop.note (entity_key) VALUES (j.entity_key); RETURN NULL; END"),
        "",
    );
    let gate = shop.close_gate();
    shop.schedule("1", "gated", "after => '0'");
    shop.await_at_gate();
    shop.cluster.configure("synchronous_standby_names = 'away'");
    shop.cluster.kill_server();
    drop(gate);
    shop.cluster.start();
    shop.await_true("the check to be done", "SELECT count(*) = 1 FROM awty.future_job_history WHERE outcome = 'done'");
    assert_eq!(shop.notes("1"), 1);
    assert_eq!(
        shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"),
        0
    );
}

fn counting() -> Shop {
    let shop = Shop::open();
    shop.run("CREATE SEQUENCE shop.begun");
    shop.cluster.configure("awty.synchronous_commit = on");
    shop.cluster.reload();
    shop
}

/// Makes all commits wait for a standby `name`, which does not exist. With an empty name, commits do not wait.
fn set_standby(shop: &Shop, name: &str) {
    shop.cluster.configure(&format!("synchronous_standby_names = '{name}'"));
    shop.cluster.reload();
    let is_set = format!("SELECT current_setting('synchronous_standby_names') = '{name}'");
    shop.await_true("the setting", &is_set);
    if name.is_empty() {
        return;
    }
    // Commits in a second session until a commit waits for the standby, because PostgreSQL applies the new setting some
    // time after the reload.
    let mut probe = shop.cluster.superuser("postgres");
    let cancel = probe.cancel_token();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                probe.batch_execute("SET application_name = 'probe'; CREATE TABLE probe (); DROP TABLE probe").unwrap();
            }
        });
        let waits =
            "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'probe' AND wait_event = 'SyncRep')";
        shop.await_true("a commit to wait for the standby", waits);
        is_over.store(true, Ordering::Relaxed);
        cancel.cancel_query(NoTls).unwrap();
    });
}

const BEGUN: &str = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM shop.begun";
const COUNTED: &str =
    "BEGIN PERFORM nextval('shop.begun'); INSERT INTO shop.note (entity_key) VALUES (j.entity_key); RETURN NULL; END";

#[test]
fn a_primary_that_was_cut_off_begins_no_run() {
    let shop = counting();
    shop.job("counted", COUNTED, ", timeout => '1 s'");
    set_standby(&shop, "away");
    shop.run("SET synchronous_commit = local; SELECT awty.schedule('orders', '1', 'counted', after => '0')");
    let why = "SELECT why LIKE 'worker process % waits for a synchronous standby' AND fix LIKE '%pg_stat_replication%' FROM awty.status";
    shop.await_true("the reason", why);
    let explained =
        "SELECT EXISTS (SELECT FROM awty.explain('orders', '1') WHERE detail LIKE '%waits for a synchronous standby%')";
    shop.await_true("the reason of the check", explained);
    assert_eq!(shop.cluster.value::<i64>("postgres", BEGUN), 0, "it has begun");
    // If a client drops or renames the database while a worker waits for a standby, the worker must disconnect (promise
    // P10).
    let mut client = shop.cluster.superuser("template1");
    client.batch_execute("SET synchronous_commit = local").unwrap();
    client.batch_execute("ALTER DATABASE postgres RENAME TO renamed").unwrap();
    client.batch_execute("ALTER DATABASE renamed RENAME TO postgres").unwrap();
    set_standby(&shop, "");
    assert_eq!(shop.end_of("1").why(), ("done", None));
    assert_eq!(shop.cluster.value::<i64>("postgres", BEGUN), 1);
}

#[test]
fn a_timeout_ends_no_wait_for_a_standby() {
    let shop = counting();
    let body = format!("BEGIN {GATE} {}", COUNTED.trim_start_matches("BEGIN"));
    shop.job("counted", &body, ", timeout => '4 s'");
    shop.cluster.configure("awty.max_workers_per_role = 1");
    shop.cluster.reload();
    let gate = shop.close_gate();
    shop.run("SELECT awty.schedule('orders', n::text, 'counted', at => now()) FROM generate_series(1, 3) AS n");
    shop.await_at_gate();
    let began: DateTime<Utc> = shop.cluster.value("postgres", "SELECT min(started_at) FROM awty.running");
    set_standby(&shop, "away");
    drop(gate);
    let waits =
        "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'awty worker' AND wait_event = 'SyncRep'";
    shop.await_true("the commit of the run to wait", waits);
    // Within nine seconds, the worker's timer and the launcher each try twice to end the run.
    shop.await_time(began, 9);
    assert!(shop.cluster.value::<bool>("postgres", waits), "something ended the wait");
    assert_eq!(shop.cluster.value::<i64>("postgres", BEGUN), 1, "another run has begun");
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM shop.note"), 0, "the commit is visible");
    set_standby(&shop, "");
    for key in ["1", "2", "3"] {
        assert_eq!(shop.end_of(key).why(), ("done", None), "{key}");
    }
    assert_eq!(shop.cluster.value::<i64>("postgres", BEGUN), 3);
}

#[test]
fn a_check_that_a_waiting_client_has_locked_says_so() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    let slot = shop.schedule_for("1", "note", "after => '2 s'");
    set_standby(&shop, "away");
    let cluster = &shop.cluster;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            cluster.client("postgres", "shop").batch_execute("SELECT awty.schedule('orders', '1', 'note', at => now())")
        });
        shop.await_time(slot, 0);
        let why =
            "SELECT why LIKE 'its row is locked by process %, which waits for a synchronous standby' FROM awty.status";
        shop.await_true("the reason", why);
        let found = "SELECT EXISTS (SELECT FROM awty.doctor() WHERE finding = 'a failover may repeat runs')";
        assert!(cluster.value::<bool>("postgres", found));
        set_standby(&shop, "");
    });
    shop.await_all_ended();
    let outcomes: Vec<String> = shop.ends("1").into_iter().map(|end| end.outcome).collect();
    assert_eq!(outcomes, ["replaced", "done"]);
}
