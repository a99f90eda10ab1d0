use awty_testkit::fixture::{GATE, NOTE, Shop};
use awty_testkit::{Cluster, PATIENCE};

#[test]
fn processes_show_no_names_keys_or_arguments() {
    let shop = Shop::open();
    shop.job("secret_job", &format!("BEGIN {GATE} RETURN NULL; END"), "");
    let gate = shop.close_gate();
    shop.schedule("secret_key", "secret_job", "after => '0', args => '{\"secret\": \"argument\"}'");
    shop.await_at_gate();
    shop.cluster.await_that("the launcher and the worker alone", PATIENCE, || {
        let shown = shop.cluster.psql(
            "postgres",
            "SELECT backend_type, application_name, query FROM pg_stat_activity WHERE backend_type LIKE 'awty%' ORDER BY 1",
        );
        assert!(!shown.contains("secret"), "{shown}");
        if shown.trim() == "awty launcher||\nawty worker||awty: running checks" { Ok(()) } else { Err(shown) }
    });
    shop.cluster.create_user("postgres", "other");
    let mut other = shop.cluster.client("postgres", "other");
    let worker = shop.cluster.pids("awty worker")[0];
    let seen = other.query_one("SELECT query FROM pg_stat_activity WHERE pid = $1", &[&worker]).unwrap();
    assert_eq!(seen.get::<_, &str>(0), "<insufficient privilege>");
    drop(gate);
    shop.end_of("secret_key");
    let log = shop.cluster.log_since(0);
    assert!(!log.contains("secret_key"), "{log}");
}

#[test]
fn an_idle_database_has_no_lasting_connection() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    shop.schedule("1", "note", "after => '0'");
    shop.schedule("2", "note", "after => '1 h'");
    assert_eq!(shop.end_of("1").outcome, "done");
    let alone = "SELECT string_agg(backend_type || coalesce(datname, ''), ',') = 'awty launcher'
                 FROM pg_stat_activity WHERE backend_type LIKE 'awty%'";
    shop.await_true("the launcher to be alone", alone);
}

#[test]
fn the_status_shows_what_is_overdue() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    shop.schedule("1", "note", "after => '0'");
    let slot = shop.end_of("1").slot;
    let idle = "SELECT enabled AND NOT database_held AND why IS NULL AND slot = '1 s' AND lag = '0' AND oldest_overdue IS NULL
                       AND pending = 0 AND held_checks = 0 AND last_error IS NULL AND database = 'postgres' FROM awty.status";
    shop.await_true("an idle status", idle);
    shop.await_true("the slot", &format!("SELECT last_slot_run = '{slot}' FROM awty.status"));

    shop.cluster.configure("awty.enabled = off");
    shop.cluster.reload();
    shop.await_true("awty to be disabled", "SELECT NOT enabled FROM awty.status");
    shop.schedule("2", "note", "after => '0'");
    let slot = shop.slot_of("2");
    shop.await_true("a lag of more than a second", "SELECT lag > '1 s' FROM awty.status");
    let shown: chrono::DateTime<chrono::Utc> = shop.cluster.value("postgres", "SELECT oldest_overdue FROM awty.status");
    assert_eq!(shown, slot);
    let row = shop.client().query_one("SELECT pending, lag > '1 s' FROM awty.status", &[]).unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, bool>(1)), (1, true));
}

/// A worker of awty must report its statistics while it works, because autovacuum needs these statistics.
#[test]
fn a_busy_worker_reports_what_it_has_written() {
    let shop = Shop::on(Cluster::builder().set("awty.max_workers_per_role", "1").start());
    let quick = "BEGIN PERFORM pg_sleep(0.002); INSERT INTO shop.note (entity_key) VALUES (j.entity_key);
                 RETURN CASE WHEN j.check_count = 0 THEN clock_timestamp() END; END";
    shop.job("quick", quick, "");
    shop.run(
        "SELECT count(awty.schedule('orders', n::text, 'quick', after => '1 s')) FROM generate_series(1, 10000) AS n",
    );
    let seen = "SELECT (SELECT n_tup_ins > 0 FROM pg_stat_all_tables WHERE relid = 'shop.note'::regclass)
                       AND (SELECT n_tup_upd > 0 FROM pg_stat_all_tables WHERE relid = 'awty.future_job'::regclass),
                       (SELECT count(*) FROM awty.future_job WHERE check_count = 0)";
    let mut client = shop.cluster.superuser("postgres");
    let left = shop.cluster.await_that("the worker's report", PATIENCE, || {
        let row = client.query_one(seen, &[]).unwrap();
        let (reported, left): (bool, i64) = (row.get(0), row.get(1));
        if reported || left == 0 { Ok(left) } else { Err(format!("{left} checks are left")) }
    });
    assert!(left > 5_000, "{left} of 10000 checks were left when the worker reported");
}
