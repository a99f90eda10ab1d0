use awty_testkit::Cluster;
use awty_testkit::fixture::{NOTE, Shop};

#[track_caller]
fn beside_good_ones(shop: &Shop, body: &str, options: &str) {
    shop.job("a_bad", body, options);
    shop.job("note", NOTE, "");
    shop.run(
        "SELECT awty.schedule('orders', 'bad', 'a_bad', at => now() + interval '1 s');
         SELECT awty.schedule('orders', n::text, 'note', at => now() + interval '1 s') FROM generate_series(1, 5) AS n;
         SELECT awty.schedule('orders', 'later', 'note', at => now() + interval '3 s')",
    );
    for key in ["1", "2", "3", "4", "5", "later"] {
        let end = shop.end_of(key);
        assert_eq!((end.why(), shop.notes(key)), (("done", None), 1), "{end:?}");
    }
}

#[test]
fn a_run_that_terminates_its_own_process_stops_no_other() {
    let shop = Shop::open();
    beside_good_ones(
        &shop,
        "BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(60); RETURN NULL; END",
        "",
    );
}

#[test]
fn a_run_that_ends_its_process_by_an_error_is_held() {
    let shop = Shop::on(Cluster::builder().set("awty.max_crashes", "3").start());
    beside_good_ones(&shop, "BEGIN SET exit_on_error = on; RAISE 'no'; END", "");
    shop.await_true("the bad one to be held", "SELECT bool_and(held) FROM awty.future_job");
    shop.cluster.await_log(&["WARNING", "is held"], 0);
    shop.run(&format!(
        "CREATE OR REPLACE FUNCTION shop.a_bad(j awty.future_job) RETURNS timestamptz LANGUAGE plpgsql AS $$ {NOTE} $$;
         SELECT awty.release(entity_name, entity_key, job) FROM awty.future_job"
    ));
    let end = shop.end_of("bad");
    assert_eq!((end.why(), shop.notes("bad")), (("done", None), 1), "{end:?}");
}

#[test]
fn a_role_that_exits_on_error_has_its_failures_archived() {
    let shop = Shop::open();
    shop.cluster.execute("postgres", &["ALTER ROLE shop SET exit_on_error = on"]);
    beside_good_ones(&shop, "BEGIN RAISE 'no' USING ERRCODE = 'AW001'; END", ", max_attempts => 1");
    let end = shop.end_of("bad");
    assert_eq!(end.why(), ("failed", Some("AW001")), "{end:?}");
}

#[test]
fn a_run_without_measure_fails_with_its_sqlstate() {
    let shop = Shop::open();
    shop.run(
        "CREATE FUNCTION shop.down(n integer) RETURNS integer LANGUAGE plpgsql AS
           $$ BEGIN RETURN shop.down(n + 1); END $$",
    );
    let cases = [
        ("deep", "PERFORM shop.down(0)", "54001"),
        ("long", "RAISE '%', repeat('é', 100000)", "P0001"),
        ("huge", "PERFORM repeat('xx', 2000000000)", "54000"),
        ("null", "RAISE 'a%b%c', chr(27), E'\\n'", "P0001"),
    ];
    for (job, statement, sqlstate) in cases {
        shop.job(job, &format!("BEGIN {statement}; RETURN NULL; END"), ", max_attempts => 1");
        shop.schedule(job, job, "after => '0'");
        let end = shop.end_of(job);
        assert_eq!(end.why(), ("failed", Some(sqlstate)), "{end:?}");
        let message = end.message.unwrap();
        assert!(!message.is_empty() && message.len() <= 4096, "{} bytes", message.len());
    }
}

#[test]
fn a_deadlock_between_two_runs_is_resolved() {
    let shop = Shop::on(Cluster::builder().set("deadlock_timeout", "100ms").start());
    shop.run(
        "CREATE TABLE shop.stock (id integer PRIMARY KEY, taken integer); INSERT INTO shop.stock VALUES (1, 0), (2, 0)",
    );
    shop.cluster.create_user("postgres", "other");
    shop.run("GRANT USAGE ON SCHEMA shop TO other; GRANT ALL ON shop.stock, shop.note TO other");
    let take = |first: i32, second: i32| {
        format!(
            "BEGIN
               UPDATE shop.stock SET taken = taken + 1 WHERE id = {first};
               PERFORM pg_sleep(0.5);
               UPDATE shop.stock SET taken = taken + 1 WHERE id = {second};
               INSERT INTO shop.note (entity_key) VALUES (j.entity_key); RETURN NULL; END"
        )
    };
    shop.job("up", &take(1, 2), ", retry_after => '1 s'");
    let mut other = shop.cluster.client("postgres", "other");
    other
        .batch_execute(&format!(
            "CREATE FUNCTION other.down(j awty.future_job) RETURNS timestamptz LANGUAGE plpgsql AS $job$ {} $job$;
             SELECT awty.register('down', 'other.down', retry_after => '1 s')",
            take(2, 1)
        ))
        .unwrap();
    shop.cluster
        .execute("postgres", &["SELECT awty.schedule('orders', job, job, at => now() + interval '1 s') FROM awty.job"]);
    let ends = [shop.end_of("up"), shop.end_of("down")];
    assert!(ends.iter().all(|end| end.outcome == "done"), "{ends:?}");
    assert_eq!(shop.cluster.psql("postgres", "SELECT string_agg(taken::text, ' ') FROM shop.stock").trim(), "2 2");
}

#[test]
fn a_database_of_another_encoding_keeps_names_and_keys() {
    let shop = Shop::open();
    shop.cluster.execute("postgres", &["CREATE DATABASE l1 TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'"]);
    shop.cluster.create_extension("l1");
    shop.cluster.execute("l1", &["GRANT USAGE ON SCHEMA awty TO shop", "CREATE SCHEMA shop AUTHORIZATION shop"]);
    shop.cluster
        .client("l1", "shop")
        .batch_execute(
            "CREATE FUNCTION shop.\"größe\"(j awty.future_job) RETURNS timestamptz LANGUAGE plpgsql AS
               $$ BEGIN RAISE 'zu groß: %', j.entity_key; END $$;
             SELECT awty.register('maß', 'shop.größe', max_attempts => 1);
             SELECT awty.schedule('Straße', 'Köln', 'maß', after => '0')",
        )
        .unwrap();
    shop.cluster.await_sql(
        "l1",
        "the check to have failed",
        "SELECT count(*) = 1 FROM awty.future_job_history WHERE entity_key = 'Köln' AND entity_name = 'Straße' AND job = 'maß'
            AND message LIKE 'zu gro%' AND sqlstate = 'P0001'",
    );
}

#[test]
fn every_way_to_work_does_each_check_once() {
    let ways: [&[(&str, &str)]; 5] = [
        &[("awty.batch_size", "1")],
        &[("awty.batch_size", "1000")],
        &[("awty.synchronous_commit", "on")],
        &[("awty.max_workers", "64"), ("awty.max_workers_per_role", "64"), ("max_worker_processes", "4")],
        &[("fsync", "on"), ("awty.slot", "2s")],
    ];
    for way in ways {
        let builder = way.iter().fold(Cluster::builder(), |builder, (name, value)| builder.set(name, value));
        let shop = Shop::on(builder.start());
        shop.job("note", NOTE, "");
        shop.run("SELECT awty.schedule('orders', n::text, 'note', at => now() + n % 4 * interval '1 s') FROM generate_series(1, 200) AS n");
        shop.await_all_ended();
        let once = "SELECT count(*) = 200 AND count(DISTINCT entity_key) = 200 FROM shop.note";
        assert!(shop.cluster.value::<bool>("postgres", once), "{way:?}");
        let done: i64 = shop
            .cluster
            .value("postgres", "SELECT count(*) FROM awty.future_job_history WHERE outcome = 'done' AND attempts = 1");
        assert_eq!(done, 200, "{way:?}");
        shop.await_workers_gone();
        assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM awty_internal.in_flight"), 0, "{way:?}");
    }
}
