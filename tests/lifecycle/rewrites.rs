//! A statement that needs an exclusive lock on awty's table gets the lock between two job runs, because each run has
//! its own transaction.

use awty_testkit::fixture::{GATE, Shop};
use awty_testkit::{Builder, Cluster, PATIENCE};

const TURN: i64 = 8;

/// A worker keeps its locks on awty's tables for at most 20 ms between runs. After this time, the worker gives back the
/// locks before its next run.
const KEEPS_NO_LOCKS: &str =
    "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND clock_timestamp() - waitstart > '50 ms')";

fn gated() -> String {
    format!(
        "BEGIN IF j.entity_key LIKE '%.1' THEN {GATE} END IF;
         INSERT INTO shop.note (entity_key) VALUES (j.entity_key); RETURN NULL; END"
    )
}

fn open() -> Shop {
    open_on(Cluster::builder())
}

fn open_on(server: Builder) -> Shop {
    let server = server.set("shared_buffers", "16MB").set("autovacuum", "off");
    let shop = Shop::on(server.set("log_error_verbosity", "verbose").start());
    // A run may need minutes on a busy machine, because the test executes statements during the run.
    shop.job("gated", &gated(), ", timeout => '10 min'");
    shop
}

fn schedule_turn(shop: &Shop, name: &str) {
    shop.run(&format!(
        "SELECT awty.schedule('orders', '{name}.' || n, 'gated', after => '1 s') FROM generate_series(1, {TURN}) AS n"
    ));
}

#[track_caller]
fn between_two_runs(shop: &Shop, name: &str, statements: &str) {
    let gate = shop.close_gate();
    schedule_turn(shop, name);
    shop.await_true("a run that has waited at the gate", KEEPS_NO_LOCKS);
    let mut admin = shop.cluster.superuser("postgres");
    let pid: i32 = admin.query_one("SELECT pg_catalog.pg_backend_pid()", &[]).unwrap().get(0);
    let text = statements.to_owned();
    let at_work = std::thread::spawn(move || admin.batch_execute(&text));
    let waits = format!(
        "SELECT EXISTS (SELECT FROM pg_locks WHERE pid = {pid} AND locktype IN ('relation', 'virtualxid') AND NOT granted)"
    );
    shop.cluster.await_that("the statement to wait for the run, or to be done", PATIENCE, || {
        if at_work.is_finished() || shop.cluster.value("postgres", &waits) { Ok(()) } else { Err(statements.into()) }
    });
    drop(gate);
    at_work.join().unwrap().unwrap_or_else(|error| panic!("{statements}: {error:?}"));
}

#[track_caller]
fn expect_done_once(shop: &Shop, name: &str) {
    let all = format!("SELECT count(*) = {TURN} FROM awty.future_job_history WHERE entity_key LIKE '{name}.%'");
    shop.await_true(&format!("the checks of {name:?} to have ended"), &all);
    let once = format!(
        "SELECT count(DISTINCT h.id) = {TURN} AND bool_and(h.outcome = 'done' AND h.attempts = 1)
                AND count(*) = {TURN} AND count(n.n) = {TURN}
         FROM awty.future_job_history AS h LEFT JOIN shop.note AS n USING (entity_key) WHERE entity_key LIKE '{name}.%'"
    );
    let ends = || shop.cluster.psql("postgres", "SELECT h FROM awty.future_job_history AS h ORDER BY id DESC LIMIT 8");
    assert!(shop.cluster.value::<bool>("postgres", &once), "{name}: {}", ends());
}

#[track_caller]
fn expect_no_internal_error(shop: &Shop) {
    let log = shop.cluster.log_since(0);
    let internal: Vec<&str> = log.lines().filter(|line| line.contains("XX0")).collect();
    assert!(internal.is_empty(), "{internal:#?}");
}

/// After VACUUM FULL has made the table smaller, a worker must not read a row's old position past the end. PostgreSQL
/// 16 and later could put another table's page there.
#[test]
fn no_page_of_another_table_gets_into_a_table_that_shrinks_and_grows() {
    let shop = open();
    shop.job("fill", "BEGIN RETURN NULL; END", "");
    let fill = |name: &str| {
        shop.run(&format!(
            "SELECT count(awty.schedule('{name}', g::text, 'fill', after => '1 day')) FROM generate_series(1, 20000) AS g"
        ));
    };
    shop.cluster.execute(
        "postgres",
        &["CREATE TABLE public.other AS SELECT g, repeat('x', 500) AS t FROM generate_series(1, 60000) AS g"],
    );
    fill("fill");
    let gate = shop.close_gate();
    schedule_turn(&shop, "t");
    shop.await_at_gate();
    shop.run("SELECT count(awty.cancel('fill', g::text)) FROM generate_series(1, 20000) AS g");
    let mut admin = shop.cluster.superuser("postgres");
    let shrinking = std::thread::spawn(move || {
        admin.batch_execute("SELECT count(*) FROM other").unwrap();
        admin.batch_execute("VACUUM FULL awty.future_job").unwrap();
    });
    let waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND NOT granted)";
    shop.await_true("VACUUM FULL to wait for the run", waits);
    drop(gate);
    shrinking.join().unwrap();
    ["again0", "again1", "again2"].into_iter().for_each(fill);
    shop.await_true("the turn to be over", "SELECT count(*) = 60000 FROM awty.future_job");
    expect_done_once(&shop, "t");
    shop.cluster.execute("postgres", &["VACUUM awty.future_job", "REINDEX TABLE awty.future_job"]);
    shop.cluster.verify("postgres");
    expect_no_internal_error(&shop);
}

#[test]
fn a_table_that_is_rewritten_between_two_runs_loses_and_fails_nothing() {
    let shop = open();
    let elsewhere = shop.cluster.socket_directory().join("elsewhere");
    shop.cluster.execute(
        "postgres",
        &[
            &format!("COPY (SELECT) TO PROGRAM 'cat >/dev/null; mkdir -m 700 {}'", elsewhere.display()),
            &format!("CREATE TABLESPACE elsewhere LOCATION '{}'", elsewhere.display()),
        ],
    );
    for (name, statement) in [
        ("vacuum", "VACUUM FULL awty.future_job"),
        ("cluster", "CLUSTER awty.future_job USING future_job_one_per_job_and_entity"),
        ("moved", "ALTER TABLE awty.future_job SET TABLESPACE elsewhere"),
        ("indexes", "ALTER INDEX awty.future_job_pkey SET TABLESPACE elsewhere"),
        ("back", "ALTER TABLE awty.future_job SET TABLESPACE pg_default"),
        ("unlogged", "ALTER TABLE awty.future_job SET UNLOGGED"),
        ("logged", "ALTER TABLE awty.future_job SET LOGGED"),
        ("reindex", "REINDEX TABLE awty.future_job"),
        ("concurrently", "REINDEX TABLE CONCURRENTLY awty.future_job"),
        ("type", "ALTER TABLE awty.future_job ALTER args TYPE jsonb USING args::text::jsonb"),
    ] {
        // Cancelled checks leave free space at the table's start. A rewrite moves other checks into this space.
        shop.run(
            "SELECT count(awty.schedule('before', g::text, 'gated', after => '1 day')) FROM generate_series(1, 500) AS g",
        );
        shop.run("SELECT count(awty.cancel('before', g::text)) FROM generate_series(1, 500) AS g");
        between_two_runs(&shop, name, statement);
        expect_done_once(&shop, name);
    }
    schedule_turn(&shop, "after");
    expect_done_once(&shop, "after");
    expect_no_internal_error(&shop);
}

#[test]
fn a_partition_that_is_replaced_between_two_runs_loses_nothing() {
    let shop = open();
    let today = "awty_internal.future_job_history_' || to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD') || '";
    shop.await_true("the day's partition", &format!("SELECT to_regclass('{today}') IS NOT NULL"));
    let partition: String = shop.cluster.value("postgres", &format!("SELECT '{today}'"));
    let bounds: String = shop.cluster.value(
        "postgres",
        &format!("SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE oid = '{partition}'::regclass"),
    );
    let replace = format!(
        "BEGIN; ALTER TABLE awty.future_job_history DETACH PARTITION {partition};
         ALTER TABLE {partition} RENAME TO old; ALTER TABLE awty_internal.old DROP CONSTRAINT old_key;
         CREATE TABLE {partition} PARTITION OF awty.future_job_history (PRIMARY KEY (id, finished_at)) {bounds};
         INSERT INTO awty.future_job_history SELECT * FROM awty_internal.old; DROP TABLE awty_internal.old; COMMIT"
    );
    let key = format!("SELECT conname FROM pg_constraint WHERE conrelid = '{partition}'::regclass AND contype = 'p'");
    for (name, statement) in [
        ("replaced", replace.as_str()),
        ("vacuum", &format!("VACUUM FULL {partition}")),
        ("reindex", &format!("REINDEX TABLE {partition}")),
        (
            "gone",
            &format!(
                "BEGIN; LOCK TABLE awty.future_job_history IN ACCESS EXCLUSIVE MODE;
                           CREATE TEMPORARY TABLE kept AS TABLE {partition}; DROP TABLE {partition};
                           INSERT INTO awty.future_job_history TABLE kept; COMMIT"
            ),
        ),
    ] {
        let statement = match name {
            "replaced" => statement.replace("old_key", &shop.cluster.value::<String>("postgres", &key)),
            _ => statement.to_owned(),
        };
        between_two_runs(&shop, name, &statement);
        expect_done_once(&shop, name);
    }
    schedule_turn(&shop, "after");
    expect_done_once(&shop, "after");
    expect_no_internal_error(&shop);
}

#[test]
fn a_table_that_is_emptied_between_two_runs_stops_nothing() {
    // While the first check waits, no second worker may run the other checks.
    let shop = open_on(Cluster::builder().set("awty.max_workers_per_role", "1"));
    between_two_runs(&shop, "emptied", "TRUNCATE awty.future_job");
    shop.await_workers_gone();
    let ended: i64 = shop.cluster.value("postgres", "SELECT count(*) FROM awty.future_job_history");
    assert_eq!((ended, shop.notes("emptied.1"), shop.notes("emptied.2")), (1, 1, 0));
    schedule_turn(&shop, "after");
    expect_done_once(&shop, "after");
    expect_no_internal_error(&shop);
}

#[test]
fn a_column_that_comes_and_goes_between_two_runs_stops_nothing() {
    let shop = open();
    for (name, statement) in [
        ("added", "ALTER TABLE awty.future_job ADD COLUMN note text"),
        ("dropped", "ALTER TABLE awty.future_job DROP COLUMN note"),
        (
            "both",
            "BEGIN; ALTER TABLE awty.future_job ADD COLUMN note int DEFAULT 1; ALTER TABLE awty.future_job DROP COLUMN note; COMMIT",
        ),
    ] {
        between_two_runs(&shop, name, statement);
        expect_done_once(&shop, name);
    }
    schedule_turn(&shop, "after");
    expect_done_once(&shop, "after");
    expect_no_internal_error(&shop);
}

#[test]
fn a_failure_is_booked_where_its_row_has_been_moved() {
    let shop = open();
    shop.run("CREATE SEQUENCE shop.runs");
    let failing = format!("BEGIN PERFORM nextval('shop.runs'); {GATE} RAISE 'no' USING ERRCODE = 'AW001'; END");
    shop.job("failing", &failing, ", max_attempts => 1");
    // The cancelled check leaves free space. VACUUM FULL moves the running check into this space.
    shop.run(
        "SELECT awty.pause('failing');
         SELECT awty.schedule('orders', 'before', 'failing', after => '0');
         SELECT awty.schedule('orders', '1', 'failing', after => '0');
         SELECT awty.cancel('orders', 'before')",
    );
    let gate = shop.close_gate();
    shop.run("SELECT awty.resume('failing')");
    shop.await_at_gate();
    let mut admin = shop.cluster.superuser("postgres");
    let moving = std::thread::spawn(move || admin.batch_execute("VACUUM FULL awty.future_job").unwrap());
    let waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND NOT granted)";
    shop.await_true("VACUUM FULL to wait for the run", waits);
    drop(gate);
    moving.join().unwrap();
    let end = shop.end_of("1");
    let runs: i64 = shop.cluster.value("postgres", "SELECT last_value FROM shop.runs");
    assert_eq!((end.why(), end.attempts, runs), (("failed", Some("AW001")), 1, 1), "{end:?}");
    expect_no_internal_error(&shop);
}
