use awty_testkit::fixture::{NOTE, Shop};
use awty_testkit::{Cluster, PATIENCE, Stop};

/// Pauses a job to trigger an inspection, because awty stores the statistics of jobs during inspections.
fn await_stored(shop: &Shop, condition: &str) {
    let mut client = shop.cluster.superuser("postgres");
    client.batch_execute("SELECT awty.pause('spare')").unwrap();
    shop.await_true("the figures to be stored", &format!("SELECT {condition} FROM awty_internal.job_stat"));
    client.batch_execute("SELECT awty.resume('spare')").unwrap();
}

fn figures(shop: &Shop) -> String {
    let sql = "SELECT job, runs, done, failed, timed_out, retries, other, last_outcome FROM awty.job_status WHERE runs > 0 ORDER BY job";
    shop.cluster.psql("postgres", sql)
}

#[test]
fn each_run_is_counted_once_over_crashes() {
    let mut shop = Shop::open();
    shop.job("spare", NOTE, "");
    shop.job("note", NOTE, "");
    shop.job("bad", "BEGIN RAISE 'no'; END", ", max_attempts => 2, retry_after => '1 s'");
    shop.job("slow", "BEGIN PERFORM pg_sleep(60); RETURN NULL; END", ", timeout => '200 ms', max_attempts => 1");
    shop.job("past", "BEGIN RETURN j.next_check_at; END", "");
    shop.job("far", "BEGIN RETURN 'infinity'; END", "");
    shop.job("nosy", "BEGIN RETURN clock_timestamp(); END", ", max_checks => 3");
    shop.job("again", "BEGIN IF j.check_count = 0 THEN RETURN clock_timestamp(); END IF; RETURN NULL; END", "");
    shop.set_job("set", "BEGIN RETURN array_fill(NULL::timestamptz, ARRAY[cardinality(j)]); END", "");
    for (job, checks) in
        [("note", 20), ("bad", 2), ("slow", 1), ("past", 3), ("far", 1), ("nosy", 1), ("again", 2), ("set", 50)]
    {
        shop.run(&format!(
            "SELECT awty.schedule('{job}', i::text, '{job}', after => '1 s') FROM generate_series(1, {checks}) AS i"
        ));
    }
    shop.run("SELECT awty.schedule('x', 'y', 'note', after => '1 h'); SELECT awty.cancel('x', 'y')");
    shop.await_all_ended();
    shop.await_workers_gone();
    let expected = "again|4|2|0|0|0|0|done\nbad|4|0|2|0|2|0|failed\nfar|1|0|0|0|0|1|beyond_horizon\nnosy|3|0|0|0|0|1|exhausted\n\
                    note|20|20|0|0|0|0|done\npast|3|0|0|0|0|3|past\nset|50|50|0|0|0|0|done\nslow|1|0|0|1|0|0|timed_out\n";
    assert_eq!(figures(&shop), expected);
    let sums = "SELECT bool_and(late_10ms + late_100ms + late_1s + late_10s + late_1min + later = runs AND pending = 0 AND overdue = 0
                    AND failing = 0 AND held = 0 AND stats_since <= last_run_at AND max_run_time <= run_time
                    AND (last_success_at IS NOT NULL) = (job IN ('note', 'nosy', 'again', 'set'))
                    AND (last_failure_at IS NOT NULL) = (job IN ('bad', 'slow', 'past', 'far', 'nosy')))
                FROM awty.job_status WHERE runs > 0";
    assert!(shop.cluster.value::<bool>("postgres", sums));
    let slow = "SELECT run_time >= '200 ms' AND run_time = max_run_time FROM awty.job_status WHERE job = 'slow'";
    assert!(shop.cluster.value::<bool>("postgres", slow));

    await_stored(&shop, "sum(runs) = 86");
    shop.cluster.kill_server();
    shop.cluster.start();
    shop.cluster.await_that("the same figures after a crash", PATIENCE, || {
        Some(figures(&shop)).filter(|found| found == expected).map(drop).ok_or_else(|| figures(&shop))
    });
    shop.schedule("after", "note", "after => '0'");
    shop.await_all_ended();
    shop.await_true("the new run", "SELECT runs = 21 AND done = 21 FROM awty.job_status WHERE job = 'note'");
    await_stored(&shop, "sum(runs) = 87");
    shop.cluster.stop(Stop::Fast);
    shop.cluster.start();
    shop.await_true("the figures", "SELECT sum(runs) = 87 AND sum(done) = 73 FROM awty.job_status");
}

#[test]
fn a_job_that_is_registered_again_begins_at_nothing() {
    let mut shop = Shop::open();
    shop.job("spare", NOTE, "");
    shop.job("note", NOTE, "");
    shop.schedule("1", "note", "after => '0'");
    shop.await_true("the run", "SELECT runs = 1 FROM awty.job_status WHERE job = 'note'");
    await_stored(&shop, "count(*) = 1");
    shop.run("SELECT awty.unregister('note'); SELECT awty.register('note', 'shop.note')");
    let nothing =
        "SELECT runs = 0 AND last_run_at IS NULL AND stats_since IS NULL FROM awty.job_status WHERE job = 'note'";
    assert!(shop.cluster.value::<bool>("postgres", nothing));
    shop.cluster.kill_server();
    shop.cluster.start();
    shop.await_true("nothing again", nothing);
    await_stored(&shop, "count(*) = 0");
}

#[test]
fn one_job_too_many_is_counted_with_the_other_jobs() {
    let mut shop = Shop::open();
    shop.job("spare", NOTE, "");
    shop.job("note", NOTE, "");
    shop.run(
        "SELECT awty.unregister('note');
         SELECT awty.register('job ' || i, 'shop.note') FROM generate_series(1, 2049) AS i;
         SELECT awty.schedule('o', '1', 'job 1', after => '0')",
    );
    shop.await_true("the first job", "SELECT runs = 1 FROM awty.job_status WHERE job = 'job 1'");
    shop.run("SELECT awty.schedule('o', i::text, 'job ' || i, after => '0') FROM generate_series(2, 2049) AS i");
    shop.await_all_ended();
    shop.await_workers_gone();
    let seen = "SELECT count(*) = 2051 AND sum(runs) = 2049 AND count(*) FILTER (WHERE runs = 1) = 2049
                AND max(runs) FILTER (WHERE job = 'other jobs') = 1 AND max(runs) FILTER (WHERE job = 'job 1') = 0 FROM awty.job_status";
    assert!(shop.cluster.value::<bool>("postgres", seen), "{}", figures(&shop));
    let own: i64 = shop.client().query_one("SELECT count(*) FROM awty.job_status", &[]).unwrap().get(0);
    assert_eq!(own, 2050);
    await_stored(&shop, "count(*) = 2049 AND sum(runs) = 2049");
    shop.cluster.kill_server();
    shop.cluster.start();
    shop.await_true("the same after a crash", seen);
}

#[test]
fn what_is_pending_is_counted_by_job() {
    let mut shop = Shop::open();
    shop.job("bad", "BEGIN RAISE 'no'; END", ", retry_after => '1 h'");
    shop.job("note", NOTE, "");
    shop.run("SELECT awty.schedule('o', i::text, 'bad', after => '0') FROM generate_series(1, 3) AS i");
    shop.await_true(
        "the failures",
        "SELECT failing = 3 AND pending = 3 AND overdue = 0 FROM awty.job_status WHERE job = 'bad'",
    );
    shop.run("SELECT awty.pause('note', 'a note'); SELECT awty.schedule('o', i::text, 'note', after => '0') FROM generate_series(1, 5) AS i");
    shop.cluster
        .execute("postgres", &["UPDATE awty.future_job SET held = true WHERE job = 'note' AND entity_key = '5'"]);
    shop.await_time(shop.slot_of("4"), 1);
    let paused = "SELECT paused AND paused_note = 'a note' AND pending = 5 AND held = 1 AND overdue = 0 AND oldest_overdue IS NULL
                  FROM awty.job_status WHERE job = 'note'";
    assert!(shop.cluster.value::<bool>("postgres", paused));
    shop.cluster.configure("awty.enabled = off");
    shop.cluster.restart();
    shop.run("SELECT awty.resume('note')");
    let overdue = "SELECT NOT paused AND overdue = 4 AND oldest_overdue < now() AND next_slot IS NULL FROM awty.job_status WHERE job = 'note'";
    assert!(shop.cluster.value::<bool>("postgres", overdue));
}

#[test]
fn the_forecast_is_what_then_runs() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    shop.job("other", NOTE, "");
    shop.job("paused", NOTE, "");
    shop.run(
        "SELECT awty.pause('paused');
         SELECT awty.schedule('a', i::text, 'note', at => date_trunc('second', now()) + '3 s' + i % 2 * interval '1 s') FROM generate_series(1, 10) AS i;
         SELECT awty.schedule('b', i::text, 'other', at => date_trunc('second', now()) + '3 s') FROM generate_series(1, 4) AS i;
         SELECT awty.schedule('c', '1', 'paused', after => '3 s');
         SELECT awty.schedule('d', '1', 'note', after => '2 days')",
    );
    let forecast = shop.cluster.psql("postgres", "SELECT slot, job, checks FROM awty.forecast()");
    assert_eq!(forecast.lines().count(), 3, "{forecast}");
    shop.await_true("all that is near", "SELECT count(*) = 14 FROM awty.future_job_history");
    let ran = "SELECT next_check_at, job, count(*) FROM awty.future_job_history GROUP BY 1, 2 ORDER BY 1, 2";
    assert_eq!(shop.cluster.psql("postgres", ran), forecast);
    let by_step = "SELECT sum(checks) FROM awty.forecast('3 days', '1 day')";
    assert_eq!(shop.cluster.psql("postgres", by_step).trim(), "1");
    shop.cluster.create_user("postgres", "eve");
    let mut eve = shop.cluster.client("postgres", "eve");
    assert!(eve.query("SELECT * FROM awty.forecast('3 days')", &[]).unwrap().is_empty());
    for (arguments, message) in [
        ("'0'", "argument \"ahead\" must be positive"),
        ("'-1 day'", "argument \"ahead\" must be positive"),
        ("'1 day', '0'", "argument \"step\" must be positive"),
        ("'1 year', '1 month'", "argument \"step\" must not have months or years"),
        ("'1 day', '1 ms'", "a forecast cannot have more than 100000 steps"),
    ] {
        let error = eve.query(&format!("SELECT * FROM awty.forecast({arguments})"), &[]).unwrap_err();
        let error = error.as_db_error().unwrap();
        assert_eq!((error.code().code(), error.message()), ("22023", message), "{arguments}");
    }
}

const READS: [&str; 5] = [
    "TABLE awty.failing",
    "TABLE awty.running",
    "TABLE awty.job_status",
    "SELECT * FROM awty.forecast()",
    "SELECT * FROM awty.forecast('1 hour', '1 min')",
];

fn read_all(cluster: &Cluster, role: &str) {
    let mut client = cluster.client("postgres", role);
    for read in READS {
        client.batch_execute(&format!("BEGIN READ ONLY; {read}")).unwrap_or_else(|error| panic!("{read}: {error:?}"));
        let strong = "SELECT string_agg(relation::regclass || ' ' || mode, ', ') FROM pg_locks
                      WHERE pid = pg_backend_pid() AND locktype = 'relation' AND mode <> 'AccessShareLock'";
        let strong: Option<String> = client.query_one(strong, &[]).unwrap().get(0);
        assert_eq!(strong, None, "{read}");
        client.batch_execute("COMMIT").unwrap();
    }
}

#[test]
fn figures_are_read_on_a_standby_and_without_the_library() {
    let mut shop = Shop::open();
    shop.cluster.create_user("postgres", "eve");
    shop.job("spare", NOTE, "");
    shop.job("note", NOTE, "");
    shop.job("bad", "BEGIN RAISE 'no'; END", ", retry_after => '1 h'");
    shop.schedule("1", "note", "after => '0'");
    shop.schedule("2", "bad", "after => '0'");
    shop.await_true("the runs", "SELECT sum(runs) = 2 FROM awty.job_status");
    await_stored(&shop, "sum(runs) = 2");
    let seen =
        "SELECT sum(runs) = 2 AND sum(retries) = 1 AND sum(failing) = 1 AND sum(pending) = 1 FROM awty.job_status";
    ["shop", "eve", "postgres"].iter().for_each(|role| read_all(&shop.cluster, role));
    assert!(shop.cluster.value::<bool>("postgres", seen));
    let standby = shop.cluster.standby();
    ["shop", "eve", "postgres"].iter().for_each(|role| read_all(&standby, role));
    assert!(standby.value::<bool>("postgres", seen));
    assert_eq!(standby.value::<i64>("postgres", "SELECT count(*) FROM awty.failing WHERE message = 'no'"), 1);
    shop.cluster.configure("shared_preload_libraries = ''");
    shop.cluster.restart();
    ["shop", "eve", "postgres"].iter().for_each(|role| read_all(&shop.cluster, role));
    assert!(shop.cluster.value::<bool>("postgres", seen));
}
