use awty_testkit::fixture::{NOTE, Shop};

#[test]
fn a_run_may_replace_its_own_check() {
    let shop = Shop::open();
    let again = "BEGIN
        INSERT INTO shop.note (entity_key) VALUES (j.entity_key);
        IF j.args IS NULL THEN
            PERFORM awty.schedule(j.entity_name, j.entity_key, j.job, after => '1 s', args => '{\"again\": true}');
        END IF;
        RETURN CASE WHEN j.args IS NULL THEN clock_timestamp() + '1 h' END; END";
    shop.job("again", again, "");
    let first = shop.schedule("1", "again", "after => '0'");
    shop.await_all_ended();
    let ends = shop.ends("1");
    let outcomes: Vec<&str> = ends.iter().map(|end| end.outcome.as_str()).collect();
    assert_eq!(outcomes, ["done", "done"], "{ends:?}");
    assert_eq!((ends[0].id, ends[0].check_count, ends[1].check_count), (first, 1, 1), "{ends:?}");
    assert!(ends[0].started() >= ends[0].slot && ends[0].attempts == 1, "{ends:?}");
    assert_eq!(shop.notes("1"), 2);
}

#[test]
fn a_run_may_cancel_its_own_check() {
    let shop = Shop::open();
    let stop = "BEGIN INSERT INTO shop.note (entity_key) VALUES (j.entity_key);
                PERFORM awty.cancel(j.entity_name, j.entity_key); RETURN clock_timestamp(); END";
    shop.job("stop", stop, "");
    shop.schedule("1", "stop", "after => '0'");
    let end = shop.end_of("1");
    assert_eq!((end.why(), end.check_count, end.attempts), (("done", None), 1, 1), "{end:?}");
    assert!(end.started() >= end.slot, "{end:?}");
    assert_eq!((shop.notes("1"), shop.pending("1")), (1, String::new()));
}

#[test]
fn a_run_whose_trigger_cancels_its_check_is_done_with_all_its_times() {
    let shop = Shop::open();
    shop.run(
        "CREATE TABLE shop.orders (id text PRIMARY KEY, seen integer NOT NULL DEFAULT 0);
         CREATE FUNCTION shop.seen() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             PERFORM awty.cancel('orders', NEW.id); RETURN NULL; END $$;
         CREATE TRIGGER seen AFTER UPDATE ON shop.orders FOR EACH ROW WHEN (NEW.seen = 2) EXECUTE FUNCTION shop.seen();
         INSERT INTO shop.orders VALUES ('all'), ('ran'), ('none'), ('once')",
    );
    let body = "BEGIN PERFORM pg_sleep(0.1);
        UPDATE shop.orders SET seen = CASE j.job WHEN 'once' THEN 2 ELSE seen + 1 END WHERE id = j.entity_key;
        RETURN clock_timestamp(); END";
    for (job, keep) in [("all", "all"), ("ran", "ran"), ("none", "none"), ("once", "ran")] {
        shop.job(job, body, &format!(", keep_history => '{keep}'"));
        shop.schedule(job, job, "after => '0'");
    }
    shop.await_all_ended();
    for (job, runs) in [("all", 2), ("ran", 2), ("once", 1)] {
        let end = shop.end_of(job);
        assert_eq!((end.why(), end.check_count, end.attempts), (("done", None), runs, runs), "{end:?}");
        assert!(end.run_time >= 0.1 * f64::from(runs) && end.started() >= end.slot, "{end:?}");
    }
    assert!(shop.ends("none").is_empty());
    let left = "SELECT count(*) FROM awty_internal.check_stat";
    assert_eq!(shop.cluster.psql("postgres", left).trim(), "0");
}

#[test]
fn a_run_that_cancels_its_own_check_and_fails_is_a_failure() {
    let shop = Shop::open();
    let bad = "BEGIN PERFORM awty.cancel(j.entity_name, j.entity_key); RAISE 'no'; END";
    shop.job("bad", bad, ", max_attempts => 1");
    let caught = "BEGIN
        BEGIN PERFORM awty.cancel(j.entity_name, j.entity_key); RAISE 'no'; EXCEPTION WHEN raise_exception THEN NULL; END;
        RETURN NULL; END";
    shop.job("caught", caught, "");
    shop.schedule("1", "bad", "after => '0'");
    shop.schedule("2", "caught", "after => '0'");
    assert_eq!(shop.end_of("1").why(), ("failed", Some("P0001")));
    let end = shop.end_of("2");
    assert_eq!(end.why(), ("done", None), "the cancellation was undone by the exception block: {end:?}");
}

#[test]
fn a_run_may_schedule_and_cancel_other_checks() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    let busy = "BEGIN
        PERFORM awty.schedule('orders', 'new', 'note', after => '0');
        PERFORM awty.cancel('orders', 'old');
        PERFORM awty.schedule('orders', 'later', 'note', after => '1 s');
        RETURN NULL; END";
    shop.job("busy", busy, "");
    shop.schedule("old", "note", "after => '1 h'");
    shop.schedule("later", "note", "after => '1 h'");
    shop.schedule("1", "busy", "after => '0'");
    for (key, outcomes) in [("1", vec!["done"]), ("new", vec!["done"]), ("old", vec!["cancelled"])] {
        assert_eq!(shop.end_of(key).outcome, outcomes[0]);
    }
    shop.await_all_ended();
    let outcomes: Vec<String> = shop.ends("later").into_iter().map(|end| end.outcome).collect();
    assert_eq!(outcomes, ["replaced", "done"]);
    assert_eq!((shop.notes("new"), shop.notes("old"), shop.notes("later")), (1, 0, 1));
}

#[test]
fn what_a_failed_run_scheduled_and_cancelled_is_undone() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    let bad = "BEGIN PERFORM awty.schedule('orders', 'new', 'note', after => '0'), awty.cancel('orders', 'old'); RAISE 'no'; END";
    shop.job("bad", bad, ", max_attempts => 1");
    let old = shop.schedule("old", "note", "after => '1 h'");
    shop.schedule("1", "bad", "after => '0'");
    assert_eq!(shop.end_of("1").outcome, "failed");
    assert!(shop.pending("new").is_empty() && shop.ends("new").is_empty());
    assert!(shop.pending("old").starts_with(&format!("({old},")), "{}", shop.pending("old"));
}

#[test]
fn a_set_based_run_may_cancel_one_of_its_checks() {
    let shop = Shop::open();
    let body = "BEGIN
        PERFORM awty.cancel('orders', '2');
        INSERT INTO shop.note (entity_key) SELECT c.entity_key FROM unnest(j) AS c;
        RETURN array_fill(NULL::timestamptz, ARRAY[cardinality(j)]); END";
    shop.set_job("many", body, "");
    shop.run("SELECT awty.schedule('orders', n::text, 'many', after => '1 s') FROM generate_series(1, 3) AS n");
    for key in ["1", "2", "3"] {
        let end = shop.end_of(key);
        assert_eq!((end.why(), end.check_count, shop.notes(key)), (("done", None), 1, 1), "{end:?}");
        assert!(end.started() >= end.slot, "{end:?}");
    }
}

#[test]
fn a_run_may_unregister_its_own_job() {
    let shop = Shop::open();
    let last = "BEGIN INSERT INTO shop.note (entity_key) VALUES (j.entity_key);
                PERFORM awty.unregister(j.job); RETURN clock_timestamp(); END";
    shop.job("last", last, "");
    shop.schedule("2", "last", "after => '1 h'");
    shop.schedule("1", "last", "after => '0'");
    for (key, outcome, runs) in [("1", "done", 1), ("2", "cancelled", 0)] {
        let end = shop.end_of(key);
        assert_eq!((end.why(), i64::from(end.attempts), shop.notes(key)), ((outcome, None), runs, runs), "{end:?}");
    }
    assert_eq!(shop.cluster.psql("postgres", "SELECT count(*) FROM awty.job").trim(), "0");
}

#[test]
fn a_run_may_pause_its_own_job() {
    // While the run pauses the job, no second worker may start a run of the job.
    let shop = Shop::on(awty_testkit::Cluster::builder().set("awty.max_workers_per_role", "1").start());
    let pausing =
        "BEGIN INSERT INTO shop.note (entity_key) VALUES (j.entity_key); PERFORM awty.pause(j.job); RETURN NULL; END";
    shop.job("pausing", pausing, "");
    shop.run("SELECT awty.schedule('orders', n::text, 'pausing', after => '0') FROM generate_series(1, 5) AS n");
    shop.await_true("the first run", "SELECT count(*) = 1 FROM awty.future_job_history");
    shop.await_workers_gone();
    assert_eq!(shop.cluster.psql("postgres", "SELECT count(*) FROM awty.future_job").trim(), "4");
    shop.run("SELECT awty.resume('pausing')");
    shop.await_true("the second run", "SELECT count(*) = 2 FROM awty.future_job_history");
}
