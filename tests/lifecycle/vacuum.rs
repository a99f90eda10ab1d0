//! The table of pending checks must keep its size while checks end, even without autovacuum.

use awty_testkit::fixture::{NOTE, Shop};
use awty_testkit::{Cluster, PATIENCE};
use std::time::Duration;

/// Number of ended checks after which awty vacuums the table.
const MANY: i32 = 40_000;
const VACUUMED: &str = "SELECT vacuum_count > 0 FROM pg_stat_all_tables WHERE relid = 'awty.future_job'::regclass AND autovacuum_count = 0";

fn open() -> Shop {
    let shop = Shop::on(Cluster::builder().set("autovacuum", "off").start());
    shop.job("note", NOTE, "");
    shop.set_job("many", "BEGIN RETURN array_fill(NULL::timestamptz, ARRAY[cardinality(j)]); END", "");
    shop
}

fn run_many(shop: &Shop) {
    shop.run(&format!(
        "SELECT count(awty.schedule('orders', n::text, 'many', after => '1 s')) FROM generate_series(1, {MANY}) AS n"
    ));
    shop.await_true("many checks to have ended", "SELECT NOT EXISTS (SELECT FROM awty.future_job WHERE job = 'many')");
}

#[track_caller]
fn keep_busy_until(shop: &Shop, what: &str, mut is_so: impl FnMut() -> bool) {
    let mut round = 0;
    shop.cluster.await_that(what, PATIENCE, || {
        round += 1;
        let key = format!("{what} {round}");
        shop.schedule(&key, "note", "after => '1 s'");
        shop.end_of(&key);
        if is_so() { Ok(()) } else { Err(format!("not after {round} checks")) }
    });
}

#[test]
fn what_is_finished_is_vacuumed_away_before_autovacuum_comes() {
    let shop = open();
    run_many(&shop);
    // A vacuum may start before all checks have ended. Therefore the test waits until fewer than 30,000 dead rows are
    // left.
    let clean = VACUUMED.replace("> 0", "> 0 AND n_dead_tup < 30000");
    keep_busy_until(&shop, "a vacuum", || shop.cluster.value("postgres", &clean));
    let size = "SELECT pg_relation_size('awty.future_job')";
    let before: i64 = shop.cluster.value("postgres", size);
    for turn in 1..=2 {
        run_many(&shop);
        keep_busy_until(&shop, &format!("few dead rows in turn {turn}"), || shop.cluster.value("postgres", &clean));
    }
    let after: i64 = shop.cluster.value("postgres", size);
    assert!(after < 2 * before, "{after} bytes, {before} before");
}

#[test]
fn a_vacuum_that_is_held_up_gives_up() {
    let shop = open();
    // A vacuum cleans the indexes only if there are many dead rows.
    shop.run(
        "SELECT awty.schedule('orders', 'first ' || n, 'many', after => '1 s') FROM generate_series(1, 3000) AS n",
    );
    shop.await_all_ended();
    shop.schedule("pending", "note", "after => '1 h'");
    let mut reader = shop.cluster.superuser("postgres");
    reader
        .batch_execute(
            "SET enable_seqscan = off; SET enable_bitmapscan = off; BEGIN;
             DECLARE page CURSOR FOR SELECT id FROM awty.future_job WHERE id > 0 ORDER BY id; FETCH 1 FROM page",
        )
        .unwrap();
    run_many(&shop);
    let given_up =
        |log: String| log.lines().any(|line| line.contains("vacuuming awty.future_job") && line.contains("57014"));
    keep_busy_until(&shop, "a vacuum to give up", || given_up(shop.cluster.log_since(0)));
    shop.job("next", NOTE, "");
    shop.schedule("next", "next", "after => '1 s'");
    assert_eq!(shop.end_of("next").outcome, "done");
}

#[test]
fn what_is_rolled_back_is_vacuumed_away() {
    let shop = open();
    let roll_back = || {
        let mut client = shop.client();
        client.batch_execute("BEGIN").unwrap();
        let schedule = "SELECT count(awty.schedule('orders', n::text, 'note', after => '1 h')) FROM generate_series(1, 100000) AS n";
        client.batch_execute(schedule).unwrap();
        client.batch_execute("ROLLBACK").unwrap();
    };
    roll_back();
    let mut client = shop.cluster.superuser("postgres");
    shop.cluster.await_that("a vacuum", Duration::from_secs(150), || match client.query_one(VACUUMED, &[]) {
        Ok(row) if row.get(0) => Ok(()),
        other => Err(format!("{other:?}")),
    });
    let size = "SELECT pg_relation_size('awty.future_job')";
    let before: i64 = shop.cluster.value("postgres", size);
    roll_back();
    let after: i64 = shop.cluster.value("postgres", size);
    assert!(after * 4 < before * 5, "{after} bytes, {before} before");
}
