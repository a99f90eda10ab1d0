//! A run's effects exist if and only if the run's history row exists.

use awty_testkit::fixture::{GATE, NOTE, Shop};
use awty_testkit::postgres::fallible_iterator::FallibleIterator;
use awty_testkit::{Cluster, PATIENCE};

#[test]
fn a_violated_deferred_constraint_fails_the_run_and_undoes_it() {
    let shop = Shop::open();
    shop.run(
        "CREATE TABLE shop.parent (id integer PRIMARY KEY);
         CREATE TABLE shop.child (parent integer REFERENCES shop.parent DEFERRABLE INITIALLY DEFERRED)",
    );
    shop.job("orphan", "BEGIN INSERT INTO shop.child VALUES (1); RETURN NULL; END", ", max_attempts => 1");
    let both = "BEGIN INSERT INTO shop.child VALUES (2); INSERT INTO shop.parent VALUES (2); RETURN NULL; END";
    shop.job("family", both, ", max_attempts => 1");
    shop.schedule("1", "orphan", "after => '0'");
    shop.schedule("2", "family", "after => '0'");
    let end = shop.end_of("1");
    assert_eq!(end.why(), ("failed", Some("23503")), "{end:?}");
    assert_eq!(shop.end_of("2").why(), ("done", None));
    assert_eq!(shop.cluster.psql("postgres", "SELECT parent FROM shop.child").trim(), "2");
}

#[test]
fn a_deferred_trigger_runs_as_the_role() {
    let shop = Shop::open();
    shop.run(
        "CREATE TABLE shop.t (id integer);
         CREATE FUNCTION shop.later() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             INSERT INTO shop.note (entity_key, what)
             VALUES ('1', concat_ws(' ', current_user, session_user, current_setting('is_superuser')));
             RETURN NULL; END $$;
         CREATE CONSTRAINT TRIGGER later AFTER INSERT ON shop.t DEFERRABLE INITIALLY DEFERRED
             FOR EACH ROW EXECUTE FUNCTION shop.later()",
    );
    shop.job("job", "BEGIN INSERT INTO shop.t VALUES (1); RETURN NULL; END", "");
    shop.schedule("1", "job", "after => '0'");
    assert_eq!(shop.end_of("1").outcome, "done");
    assert_eq!(shop.cluster.psql("postgres", "SELECT what FROM shop.note").trim(), "shop shop off");
}

#[test]
fn a_notification_reaches_its_listeners() {
    let shop = Shop::open();
    shop.job("tell", "BEGIN PERFORM pg_notify('orders', j.entity_key); RETURN NULL; END", "");
    let mut listener = shop.client();
    listener.batch_execute("LISTEN orders").unwrap();
    shop.schedule("42", "tell", "after => '0'");
    let heard = listener.notifications().timeout_iter(PATIENCE).next().unwrap();
    let heard = heard.expect("no notification came");
    assert_eq!((heard.channel(), heard.payload()), ("orders", "42"));
}

#[test]
fn nothing_of_a_run_reaches_the_next() {
    // Tests runs with and without a temporary table, because the cleanup after a run needs a transaction only to drop
    // temporary tables.
    nothing_is_left_of("CREATE TEMPORARY TABLE leftover (a integer);");
    nothing_is_left_of("");
}

fn nothing_is_left_of(table: &str) {
    let shop = Shop::on(Cluster::builder().set("awty.max_workers_per_role", "1").start());
    shop.run("CREATE SEQUENCE shop.s");
    let messy = format!(
        "BEGIN
        {table}
        PERFORM pg_advisory_lock(7);
        EXECUTE 'PREPARE leftover AS SELECT 1';
        EXECUTE 'DECLARE leftover CURSOR WITH HOLD FOR SELECT 1';
        SET search_path = shop, public;
        SET default_transaction_read_only = on;
        SET CONSTRAINTS ALL DEFERRED;
        PERFORM set_config('shop.mine', 'left', false), set_config('TimeZone', 'Asia/Kolkata', false), nextval('shop.s');
        INSERT INTO shop.note (entity_key, what) VALUES (j.entity_key, pg_backend_pid());
        RETURN NULL; END"
    );
    let tidy = "DECLARE found text := ''; BEGIN
        found := concat_ws(' ', to_regclass('leftover'),
            (SELECT 'lock' FROM pg_locks WHERE locktype = 'advisory'),
            (SELECT 'prepared' FROM pg_prepared_statements WHERE name = 'leftover'),
            (SELECT 'cursor' FROM pg_cursors WHERE name = 'leftover'),
            (SELECT 'path' WHERE current_setting('search_path') LIKE '%shop%'),
            nullif(current_setting('shop.mine', true), ''), nullif(current_setting('TimeZone'), 'Etc/UTC'));
        BEGIN found := found || currval('shop.s'); EXCEPTION WHEN object_not_in_prerequisite_state THEN NULL; END;
        BEGIN CREATE TEMPORARY TABLE leftover (b text); EXCEPTION WHEN duplicate_table THEN found := found || 'table'; END;
        INSERT INTO shop.note (entity_key, what) VALUES (j.entity_key, pg_backend_pid() || ' ' || found);
        RETURN NULL; END";
    shop.cluster.execute("postgres", &["ALTER ROLE shop SET TimeZone = 'Etc/UTC'"]);
    shop.job("a_messy", &messy, "");
    shop.job("b_tidy", tidy, "");
    shop.run("SELECT awty.schedule('orders', n, n, after => '1 s') FROM unnest(ARRAY['a_messy', 'b_tidy']) AS n");
    shop.await_all_ended();
    for key in ["a_messy", "b_tidy"] {
        let end = shop.end_of(key);
        assert_eq!(end.why(), ("done", None), "{end:?}");
    }
    let notes = shop.cluster.psql("postgres", "SELECT what FROM shop.note ORDER BY n");
    let notes: Vec<&str> = notes.lines().collect();
    assert_eq!(notes[0].trim(), notes[1].trim(), "not the same process, or something was left");
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"), 0);
}

#[test]
fn what_could_not_be_dropped_reaches_no_run() {
    let shop = Shop::on(Cluster::builder().set("awty.max_workers_per_role", "1").start());
    let messy = format!(
        "BEGIN
            INSERT INTO shop.note (entity_key, what)
            VALUES (j.entity_key, concat_ws(' ', pg_backend_pid(), to_regclass('pg_temp.leftover')::text));
            IF j.entity_key = '1' THEN CREATE TEMPORARY TABLE leftover (a integer); {GATE} END IF;
            RETURN NULL; END"
    );
    shop.job("messy", &messy, "");
    let gate = shop.close_gate();
    shop.run("SELECT awty.schedule('orders', n::text, 'messy', after => '1 s') FROM generate_series(1, 2) AS n");
    shop.await_at_gate();
    let worker = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'awty worker'";
    let pid: i32 = shop.cluster.value("postgres", worker);
    let mut admin = shop.cluster.superuser("postgres");
    admin.batch_execute("BEGIN; LOCK TABLE pg_depend IN SHARE MODE").unwrap();
    drop(gate);
    let mut since = "-infinity".to_owned();
    for what in ["the drop after the run to wait", "the drop before the next run to wait"] {
        let waits = format!("FROM pg_locks WHERE pid = {pid} AND NOT granted AND waitstart > '{since}'");
        shop.await_true(what, &format!("SELECT EXISTS (SELECT {waits})"));
        since = shop.cluster.value("postgres", &format!("SELECT max(waitstart)::text {waits}"));
        assert!(shop.cluster.value::<bool>("postgres", &format!("SELECT pg_cancel_backend({pid})")));
    }
    admin.batch_execute("ROLLBACK").unwrap();
    shop.await_all_ended();
    let notes = shop.cluster.psql("postgres", "SELECT what FROM shop.note ORDER BY n");
    assert!(!notes.contains("leftover"), "{notes}");
}

#[test]
fn a_command_that_no_run_may_use_fails_with_its_sqlstate() {
    let shop = Shop::open();
    shop.cluster.execute("postgres", &["ALTER ROLE shop CREATEDB"]);
    let commands = [
        ("listen", "LISTEN orders", "0A000"),
        ("commit", "COMMIT", "2D000"),
        ("rollback", "ROLLBACK", "2D000"),
        ("vacuum", "EXECUTE 'VACUUM shop.note'", "25001"),
        ("prepare", "EXECUTE $$PREPARE TRANSACTION 'x'$$", "0A000"),
        ("create_database", "EXECUTE 'CREATE DATABASE x'", "25001"),
        ("set_role", "SET ROLE postgres", "42501"),
        ("session", "SET SESSION AUTHORIZATION postgres", "42501"),
    ];
    for (job, command, _) in commands {
        shop.job(job, &format!("BEGIN {command}; RETURN NULL; END"), ", max_attempts => 1");
        shop.schedule(job, job, "after => '0'");
    }
    for (job, command, sqlstate) in commands {
        let end = shop.end_of(job);
        assert_eq!(end.why(), ("failed", Some(sqlstate)), "{command}: {end:?}");
    }
    shop.job("note", NOTE, "");
    shop.schedule("1", "note", "after => '0'");
    assert_eq!(shop.end_of("1").outcome, "done");
}

#[test]
fn settings_of_the_role_do_not_stop_its_checks() {
    let shop = Shop::open();
    shop.job("who", "BEGIN INSERT INTO shop.note VALUES (DEFAULT, '1', current_user); RETURN NULL; END", "");
    shop.cluster.execute("postgres", &["CREATE ROLE other", "GRANT other TO shop"]);
    for setting in [
        "default_transaction_read_only = on",
        "default_transaction_isolation = serializable",
        "default_transaction_deferrable = on",
        "search_path = nowhere",
        "role = other",
        "statement_timeout = 1",
        "idle_in_transaction_session_timeout = 1",
        "synchronous_commit = off",
        "transform_null_equals = on",
        "standard_conforming_strings = off",
        "row_security = off",
        "DateStyle = 'SQL, DMY'",
        "IntervalStyle = sql_standard",
        "TimeZone = 'Pacific/Apia'",
    ] {
        shop.cluster.execute("postgres", &[&format!("ALTER ROLE shop SET {setting}")]);
    }
    // A superuser schedules the check, because settings such as `default_transaction_read_only` prevent the role itself
    // from scheduling.
    shop.cluster.execute("postgres", &["SELECT awty.schedule('orders', '1', 'who', after => '0')"]);
    let end = shop.end_of("1");
    assert_eq!(end.why(), ("done", None), "{end:?}");
    assert_eq!(shop.cluster.psql("postgres", "SELECT what FROM shop.note").trim(), "shop");
}
