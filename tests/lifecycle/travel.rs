//! `awty.travel()` does a worker's work in one transaction.

use awty_testkit::Cluster;
use awty_testkit::fixture::{NOTE, Shop};
use awty_testkit::postgres::Client;

const TRAVELLED: &str = "a transaction that has travelled cannot be committed";

fn shop() -> Shop {
    Shop::on(Cluster::builder().set("awty.time_travel", "on").set("max_prepared_transactions", "2").start())
}

fn refusal(shop: &Shop, script: &str) -> String {
    let error = shop.client().batch_execute(script).unwrap_err();
    let error = error.as_db_error().unwrap();
    format!("{}: {}", error.code().code(), error.message())
}

fn runs(client: &mut Client, ahead: &str) -> Vec<(String, Option<String>)> {
    let sql = format!("SELECT entity_key, outcome FROM awty.travel('{ahead}')");
    client.query(&sql, &[]).unwrap().iter().map(|row| (row.get(0), row.get(1))).collect()
}

#[test]
fn no_transaction_that_has_travelled_commits() {
    let shop = shop();
    shop.run("CREATE PROCEDURE shop.commits() LANGUAGE plpgsql AS $$ BEGIN PERFORM awty.travel('1 h'); COMMIT; END $$");
    for script in [
        "SELECT awty.travel('0')",
        "BEGIN; SELECT awty.travel('1 h'); COMMIT",
        "BEGIN; SELECT awty.travel('1 h'); COMMIT AND CHAIN",
        "BEGIN; SELECT awty.travel('1 h'); PREPARE TRANSACTION 'travelled'",
        "BEGIN; SAVEPOINT s; SELECT awty.travel('1 h'); ROLLBACK TO s; COMMIT",
        "BEGIN; SAVEPOINT s; SELECT awty.travel('1 h'); RELEASE s; COMMIT",
        "DO $$ BEGIN PERFORM awty.travel('1 h'); COMMIT; END $$",
        "CALL shop.commits()",
    ] {
        shop.run("DROP TABLE IF EXISTS shop.trace");
        let script = script.replacen("BEGIN;", "BEGIN; CREATE TABLE shop.trace ();", 1);
        assert_eq!(refusal(&shop, &script), format!("25000: {TRAVELLED}"), "{script}");
        let traces: i64 = shop.cluster.value("postgres", "SELECT count(*) FROM pg_class WHERE relname = 'trace'");
        assert_eq!(traces, 0, "{script}");
    }
}

#[test]
fn a_month_passes_in_one_transaction() {
    let shop = shop();
    shop.run(
        "CREATE TABLE shop.orders (id bigint PRIMARY KEY, placed_at timestamptz NOT NULL DEFAULT now(), shipped boolean);
         SELECT awty.watch('shop.orders', since => 'placed_at', until => 'shipped', within => '3 hours', escalate => '{10 days, 30 days}')",
    );
    shop.await_true("the walk is over", "SELECT walk = 'done' FROM awty.rule");
    let mut client = shop.client();
    client.batch_execute("BEGIN; INSERT INTO shop.orders (id) VALUES (1), (2)").unwrap();
    assert_eq!(runs(&mut client, "2 hours"), []);
    assert_eq!(runs(&mut client, "2 hours"), [("1".to_owned(), None), ("2".to_owned(), None)]);
    client.batch_execute("UPDATE shop.orders SET shipped = true WHERE id = 2").unwrap();
    assert_eq!(runs(&mut client, "30 days"), [("1".to_owned(), None), ("1".to_owned(), Some("done".to_owned()))]);
    let sql = "SELECT entity_key, level, cleared_at IS NULL, date_trunc('day', escalated_at - now())::text FROM awty.alert ORDER BY 1";
    let alerts: Vec<(String, i32, bool, Option<String>)> =
        client.query(sql, &[]).unwrap().iter().map(|row| (row.get(0), row.get(1), row.get(2), row.get(3))).collect();
    assert_eq!(alerts, [("1".into(), 3, true, Some("30 days".into())), ("2".into(), 1, false, None)]);
    let ahead = "SELECT awty.now() - now() >= interval '30 days 4 hours'";
    assert!(client.query_one(ahead, &[]).unwrap().get::<_, bool>(0));
    client.batch_execute("ROLLBACK").unwrap();
    assert!(client.query_one("SELECT awty.now() = now()", &[]).unwrap().get::<_, bool>(0));
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM awty.alert"), 0);
}

#[test]
fn checks_end_as_by_a_worker() {
    let shop = shop();
    shop.job(
        "fails",
        "BEGIN INSERT INTO shop.note (entity_key) VALUES (j.entity_key); RAISE 'no'; END",
        ", max_attempts => 2",
    );
    shop.job("past", "BEGIN RETURN j.next_check_at; END", "");
    shop.job("far", "BEGIN RETURN awty.now() + interval '400 days'; END", "");
    shop.job("often", "BEGIN RETURN awty.now() + interval '1 h'; END", ", max_checks => 3");
    shop.job("slow", "BEGIN PERFORM pg_sleep(60); END", ", timeout => '100 ms', max_attempts => 1");
    shop.job("note", NOTE, ", keep_history => 'none'");
    let mut client = shop.client();
    client.batch_execute("BEGIN").unwrap();
    for job in ["fails", "past", "far", "often", "slow", "note"] {
        client.batch_execute(&format!("SELECT awty.schedule('thing', '{job}', '{job}', after => '1 h')")).unwrap();
    }
    let sql = "SELECT job, outcome, sqlstate FROM awty.travel('1 day')";
    let mut ends: Vec<(String, String, Option<String>)> = client
        .query(sql, &[])
        .unwrap()
        .iter()
        .filter_map(|row| Some((row.get(0), row.get::<_, Option<String>>(1)?, row.get(2))))
        .collect();
    ends.sort();
    let end = |job: &str, outcome: &str, code: Option<&str>| (job.into(), outcome.into(), code.map(str::to_owned));
    let expected = [
        end("fails", "failed", Some("P0001")),
        end("far", "beyond_horizon", None),
        end("note", "done", None),
        end("often", "exhausted", None),
        end("past", "past", None),
        end("slow", "timed_out", Some("57014")),
    ];
    assert_eq!(ends, expected);
    let notes: Vec<String> =
        client.query("SELECT entity_key FROM shop.note", &[]).unwrap().iter().map(|row| row.get(0)).collect();
    assert_eq!(notes, ["note"], "only what did not fail is there");
}

#[test]
fn only_what_would_run_runs() {
    let shop = shop();
    shop.job("note", NOTE, "");
    shop.job("still", NOTE, "");
    let mut client = shop.client();
    client
        .batch_execute(
            "BEGIN; SELECT awty.pause('still'); SELECT awty.schedule('thing', '1', 'still', after => '1 h');
             SELECT awty.schedule('thing', '2', 'note', after => '1 h'); SELECT awty.hold('thing', '2', 'note');
             SELECT awty.schedule('thing', k::text, 'note', after => '1 h') FROM generate_series(3, 7) AS k",
        )
        .unwrap();
    let mut keys = |max: i32| -> Vec<String> {
        let sql = format!("SELECT entity_key FROM awty.travel('2 h', max => {max})");
        client.query(&sql, &[]).unwrap().iter().map(|row| row.get(0)).collect()
    };
    assert_eq!(keys(2), ["3", "4"]);
    assert_eq!(keys(100), ["5", "6", "7"]);
    client.batch_execute("ROLLBACK; BEGIN").unwrap();
    let mut admin = shop.cluster.client("postgres", "postgres");
    admin.batch_execute("BEGIN; SELECT awty.schedule('thing', '1', 'note', after => '1 h')").unwrap();
    let runs = admin.query("SELECT * FROM awty.travel('2 h')", &[]).unwrap().len();
    assert_eq!(runs, 0, "a superuser is not the job's role");
}

#[test]
fn refusals_name_what_is_wrong() {
    let shop = shop();
    assert_eq!(refusal(&shop, "SELECT awty.travel('-1 h')"), "22023: argument \"ahead\" must not be negative");
    assert_eq!(refusal(&shop, "SELECT awty.travel('1 h', 0)"), "22023: argument \"max\" must be at least 1");
    assert_eq!(refusal(&shop, "SELECT awty.travel(NULL)"), "22004: argument \"ahead\" must not be null");
    shop.cluster.configure("awty.time_travel = off");
    shop.cluster.reload();
    shop.await_true("the setting is off", "SELECT current_setting('awty.time_travel') = 'off'");
    let refused = "42501: awty.travel() is disabled on this server";
    assert_eq!(refusal(&shop, "SELECT awty.travel('1 h')"), refused);
}

#[test]
fn the_clock_stands_still_and_comes_back() {
    let shop = shop();
    let mut client = shop.client();
    let mut ahead = |script: &str| -> String {
        client.batch_execute(script).unwrap();
        client.query_one("SELECT date_trunc('hour', awty.now() - now())::text", &[]).unwrap().get(0)
    };
    assert_eq!(ahead("BEGIN; SAVEPOINT a; SELECT awty.travel('2 hours')"), "02:00:00");
    assert_eq!(ahead("SAVEPOINT b; SELECT awty.travel('3 hours')"), "05:00:00");
    assert_eq!(ahead("SAVEPOINT c; SELECT awty.travel('4 hours'); RELEASE c"), "09:00:00");
    assert_eq!(ahead("ROLLBACK TO b"), "02:00:00");
    assert_eq!(ahead("SELECT awty.travel('1 hour')"), "03:00:00");
    assert_eq!(ahead("ROLLBACK TO a"), "00:00:00");
    assert_eq!(ahead("SELECT awty.travel('1 hour')"), "01:00:00");
    let times = "SELECT count(DISTINCT awty.now()) FROM generate_series(1, 5000)";
    assert_eq!(client.query_one(times, &[]).unwrap().get::<_, i64>(0), 1);
    let refused = client.batch_execute("ROLLBACK TO a; COMMIT").unwrap_err();
    assert_eq!(refused.as_db_error().unwrap().message(), TRAVELLED);
}

#[test]
fn slots_follow_the_travelled_clock() {
    let shop = shop();
    shop.run("CREATE TABLE shop.many AS SELECT now() AS at FROM generate_series(1, 20000); ANALYZE shop.many");
    let mut client = shop.client();
    client
        .batch_execute(
            "BEGIN; SET LOCAL parallel_setup_cost = 0; SET LOCAL parallel_tuple_cost = 0; SET LOCAL min_parallel_table_scan_size = 0;
             SELECT awty.travel('365 days')",
        )
        .unwrap();
    let years = "SELECT count(DISTINCT extract(year FROM awty.next_slot(at))) FROM shop.many";
    assert_eq!(client.query_one(years, &[]).unwrap().get::<_, i64>(0), 1);
    client
        .batch_execute(
            "ROLLBACK; BEGIN; CREATE TABLE shop.orders (id integer PRIMARY KEY);
             SELECT awty.watch('shop.orders', until => 'false', within => '1 h')",
        )
        .unwrap();
    assert_eq!(runs(&mut client, "2 hours"), []);
}

/// Runs in `awty.travel()` must not lock their check's row. Each run is a subtransaction, so each such lock would add
/// an entry to the row's list of lockers.
#[test]
fn runs_of_one_check_leave_no_list_of_lockers() {
    let shop = shop();
    shop.job("again", "BEGIN RETURN j.next_check_at + interval '1 minute'; END", ", max_checks => 0");
    shop.job("repeats", "BEGIN RETURN NULL; END", "");
    shop.run(
        "SELECT awty.schedule('orders', '1', 'again', after => '1 day');
         SELECT awty.repeat('repeats', every => '1 minute', starts => now() + interval '1 day')",
    );
    let next = || {
        shop.cluster.execute("postgres", &["CHECKPOINT"]);
        shop.cluster.value::<String>("postgres", "SELECT next_multixact_id::text FROM pg_control_checkpoint()")
    };
    let before = next();
    let mut client = shop.client();
    client.batch_execute("BEGIN").unwrap();
    assert!(runs(&mut client, "1 day 10 minutes").len() >= 18);
    client.batch_execute("ROLLBACK").unwrap();
    assert_eq!(next(), before, "rows have got lists of lockers");
}
