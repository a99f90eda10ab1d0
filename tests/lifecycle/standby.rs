//! Standbys: nothing runs there, and everything due runs once after a promotion.

use crate::shop::{GATE, NOTE, Shop, ready_at};
use awty_testkit::postgres::error::SqlState;
use awty_testkit::{Cluster, Stop};
use chrono::{DateTime, TimeDelta, Utc};

/// A primary with awty, which is disabled there, one check that is overdue, and a standby that has all of it.
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

/// P3, P9: a standby runs nothing and takes no checks.
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

/// P5, P1: after a promotion, what is due runs at once, and once.
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
    // And it is a primary like any other.
    standby.execute("postgres", &["SELECT awty.schedule('orders', '2', 'note', after => '0')"]);
    standby.await_sql("postgres", "a new check to be done", "SELECT count(*) = 2 FROM awty.future_job_history");
}

/// P5: a synchronous standby that is away keeps clients waiting, and awty waits for no standby: what was in flight in a crash runs.
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
    // A client's commit waits for the standby unless it says otherwise.
    shop.await_true("the check to be done", "SELECT count(*) = 1 FROM awty.future_job_history WHERE outcome = 'done'");
    assert_eq!(shop.notes("1"), 1);
    assert_eq!(
        shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"),
        0
    );
}
