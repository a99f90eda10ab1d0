use awty_testkit::fixture::{GATE, NOTE, Shop};
use awty_testkit::postgres::Client;
use awty_testkit::{Cluster, PATIENCE, Signal};

struct Cause<'a> {
    cause: &'a [&'a str],
    restart: bool,
    /// True if awty would start a run despite the cause. The test then locks the check's row to prevent the run.
    fails: bool,
    mended: &'a [&'a str],
    reason: &'a str,
    finding: &'a str,
}

#[track_caller]
fn expect(shop: &Shop, client: &mut Client, cause: &Cause) {
    let Cause { reason, finding, .. } = cause;
    let mut admin = shop.cluster.superuser("postgres");
    let said = |what: &str, client: &mut Client, sql: &str, words: &str| {
        let what = format!("{what}: {reason}");
        shop.cluster.await_that(&what, PATIENCE, || {
            let row = client.query_one(sql, &[]).map_err(|error| error.to_string())?;
            let text: Option<String> = row.get(0);
            if text.as_deref().unwrap_or("").contains(words) { Ok(()) } else { Err(format!("{sql}: {text:?}")) }
        });
    };
    said("the status to say why", client, "SELECT concat_ws('; ', why, fix) FROM awty.status", reason);
    let waiting = "SELECT string_agg(concat_ws(' ', event, detail), '; ' ORDER BY at) FROM awty.explain('orders', 'one') WHERE event = 'waiting'";
    said("the explanation to say why", client, waiting, reason);
    said("the finding", &mut admin, "SELECT string_agg(d::text, ' ') FROM awty.doctor() AS d", finding);
    said("it not to be healthy", &mut admin, "SELECT awty.healthy('5 s')::text", "false");
}

#[track_caller]
fn provoke(shop: &mut Shop, cause: &Cause) {
    shop.await_workers_gone();
    shop.run("SELECT awty.schedule('orders', 'one', 'one', after => '1 hour')");
    let mut client = shop.client();
    shop.cluster.execute("postgres", cause.cause);
    if cause.restart {
        shop.cluster.restart();
        client = shop.client();
    }
    client.batch_execute("SELECT awty.check_now('orders', 'one')").unwrap();
    let mut locker = shop.cluster.superuser("postgres");
    if cause.fails {
        locker.batch_execute("BEGIN; SELECT FROM awty.future_job FOR UPDATE").unwrap();
    }
    expect(shop, &mut client, cause);
    shop.cluster.execute("postgres", cause.mended);
    drop(locker);
    shop.await_true("the check to end", "SELECT NOT EXISTS (SELECT FROM awty.future_job)");
    shop.await_true("no reason to be left", "SELECT why IS NULL AND last_error IS NULL FROM awty.status");
    shop.await_true("nothing to be found", "SELECT count(*) = 0 FROM awty.doctor()");
    shop.await_true("it to be healthy", "SELECT awty.healthy('5 s')");
}

#[test]
fn each_cause_alone_is_named_first_and_gone_when_it_is_mended() {
    let mut shop = Shop::open();
    shop.job("one", NOTE, ", max_attempts => 0");
    for cause in [
        Cause {
            // Restarts the server, because awty's running launcher may read a changed setting later than the test's
            // session does.
            cause: &["ALTER SYSTEM SET awty.enabled = off"],
            restart: true,
            fails: false,
            mended: &["ALTER SYSTEM RESET awty.enabled", "SELECT pg_reload_conf()"],
            reason: "awty.enabled is off; ALTER SYSTEM SET awty.enabled = on;",
            finding: "nothing runs in this database",
        },
        Cause {
            // Restarts the server, because awty then compares the stored identity with the identity of the
            // installation.
            cause: &["UPDATE awty_internal.origin SET identity = identity + 1"],
            restart: true,
            fails: false,
            mended: &["SELECT awty.adopt()"],
            reason: "SELECT awty.adopt();",
            finding: "nothing runs in this database",
        },
        Cause {
            cause: &["REVOKE CONNECT ON DATABASE postgres FROM PUBLIC"],
            restart: false,
            fails: false,
            mended: &["GRANT CONNECT ON DATABASE postgres TO PUBLIC"],
            reason: "role \"shop\" has no CONNECT on this database; GRANT CONNECT ON DATABASE postgres TO shop;",
            finding: "role \"\"shop\"\" of job \"\"one\"\" cannot run it",
        },
        Cause {
            cause: &["ALTER FUNCTION shop.one(awty.future_job) RENAME TO two"],
            restart: false,
            fails: true,
            mended: &["ALTER FUNCTION shop.two(awty.future_job) RENAME TO one"],
            reason: "job \"one\" cannot run: function shop.one",
            finding: "the function of job \"\"one\"\" cannot be called",
        },
    ] {
        provoke(&mut shop, &cause);
    }
}

#[test]
fn a_pause_says_since_when_by_whom_and_why() {
    let shop = Shop::open();
    shop.job("one", NOTE, "");
    shop.run(
        "SELECT awty.pause('one', 'mail server moves'); SELECT awty.schedule('orders', 'one', 'one', after => '0')",
    );
    shop.await_time(shop.slot_of("one"), 0);
    expect(
        &shop,
        &mut shop.client(),
        &Cause {
            cause: &[],
            restart: false,
            fails: false,
            mended: &[],
            reason: "by shop: \"mail server moves\"; SELECT awty.resume('one');",
            finding: "job \"\"one\"\" is paused while checks are due",
        },
    );
    shop.run("SELECT awty.resume('one')");
    shop.await_true("the check to end", "SELECT count(*) = 1 FROM awty.future_job_history");
    shop.await_true("no reason to be left", "SELECT why IS NULL AND awty.healthy() FROM awty.status");
}

#[test]
fn what_passes_by_itself_is_named_too() {
    let shop = Shop::on(Cluster::builder().set("awty.max_workers_per_role", "1").start());
    shop.job("one", NOTE, "");
    shop.job("gated", &format!("BEGIN {GATE} RETURN NULL; END"), "");
    let mut client = shop.client();
    shop.run("SELECT awty.pause('one'); SELECT awty.schedule('orders', 'one', 'one', after => '0')");
    client
        .batch_execute("BEGIN; SELECT awty.schedule('orders', 'one', 'one', after => '0', on_conflict => 'keep')")
        .unwrap();
    let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0);
    shop.run("SELECT awty.resume('one')");
    let locked = format!("its row is locked by process {pid}");
    shop.await_true("the lock", &format!("SELECT why LIKE '{locked}%' FROM awty.status"));
    shop.await_true(
        "the lock in the explanation",
        &format!("SELECT bool_or(detail LIKE '{locked}%') FROM awty.explain('orders', 'one')"),
    );
    client.batch_execute("COMMIT").unwrap();
    shop.await_true("the check to end", "SELECT count(*) = 1 FROM awty.future_job_history");

    let gate = shop.close_gate();
    shop.schedule("gated", "gated", "after => '0'");
    shop.await_at_gate();
    shop.schedule("one", "one", "after => '0'");
    let running = "SELECT event = 'running' AND detail LIKE 'it is running since % in process %' FROM awty.explain('orders', 'gated')
                   WHERE event NOT IN ('scheduled')";
    shop.await_true("the run", running);
    let busy = "SELECT detail LIKE 'all workers that may run it are busy: 1 of 4, 1 of them for role \"shop\"%'
                FROM awty.explain('orders', 'one') ORDER BY at DESC LIMIT 1";
    shop.await_true("the busy worker", busy);
    drop(gate);
    shop.await_all_ended();
    shop.await_true("no reason to be left", "SELECT why IS NULL FROM awty.status");
}

#[test]
fn a_role_that_is_gone_and_a_slow_backlog_are_named() {
    let shop = Shop::on(Cluster::builder().set("awty.catch_up_rate", "1").start());
    shop.job("one", NOTE, "");
    let why = |like: &str| {
        shop.cluster.await_that(like, awty_testkit::PATIENCE, || {
            let sql = format!("SELECT concat_ws('; ', why, fix) LIKE '{like}', s::text FROM awty.status AS s");
            let row = shop.cluster.superuser("postgres").query_one(&sql, &[]).unwrap();
            if row.get(0) { Ok(()) } else { Err(row.get(1)) }
        });
    };
    let switch = |enabled: &str| {
        shop.cluster.configure(&format!("awty.enabled = {enabled}"));
        shop.cluster.reload();
    };
    shop.run(
        "SELECT awty.pause('one');
         SELECT awty.schedule('orders', n::text, 'one', after => '0') FROM generate_series(1, 30) AS n",
    );
    shop.await_time(shop.slot_of("30"), 1);
    shop.run("SELECT awty.resume('one')");
    why("% checks of its job are due, and awty.catch_up_rate runs 1 missed checks per second;%");
    switch("off");
    why("awty.enabled is off;%");
    let version: i32 = shop.cluster.value("postgres", "SELECT current_setting('server_version_num')::integer");
    if version < 170_000 {
        shop.cluster.execute("postgres", &["ALTER ROLE shop NOLOGIN"]);
        switch("on");
        why("role \"shop\" has no LOGIN%; ALTER ROLE shop LOGIN;");
        switch("off");
    }
    // DROP ROLE does not search awty's tables, so a job's role may no longer exist.
    shop.cluster.execute("postgres", &["UPDATE awty.job SET role = 4000000000"]);
    let gone = "SELECT count(*) = 1 FROM awty.doctor() WHERE detail = 'the role no longer exists'";
    shop.await_true("the finding", gone);
}

#[test]
fn an_explanation_tells_past_present_and_future() {
    let shop = Shop::open();
    shop.job(
        "twice",
        "BEGIN RETURN CASE WHEN j.check_count = 0 THEN clock_timestamp() + interval '1 day' END; END",
        "",
    );
    shop.schedule("one", "twice", "after => '1 s'");
    let next =
        "SELECT array_agg(event ORDER BY at, event DESC) = '{scheduled,ran,next}' FROM awty.explain('orders', 'one')";
    shop.await_true("the first run", next);
    shop.run("SELECT awty.cancel('orders', 'one')");
    let over = "SELECT array_agg(event ORDER BY at, event DESC) = '{scheduled,ran,cancelled}' FROM awty.explain('orders', 'one')";
    shop.await_true("the end", over);
    shop.job("bad", "BEGIN RAISE 'no luck'; END", "");
    shop.schedule("two", "bad", "after => '0'");
    let failed = "SELECT bool_or(event = 'ran' AND detail LIKE 'run 1 failed: P0001: no luck; attempt 2 is at %') FROM awty.explain('orders', 'two')";
    shop.await_true("the failed run", failed);
    shop.cluster.create_user("postgres", "other");
    let mut other = shop.cluster.client("postgres", "other");
    assert_eq!(other.query("SELECT * FROM awty.explain('orders', 'one')", &[]).unwrap().len(), 0);
    assert_eq!(other.query("SELECT * FROM awty.doctor()", &[]).unwrap().len(), 0);
    assert!(other.query_one("SELECT awty.healthy()", &[]).unwrap().get::<_, bool>(0));
}

#[test]
fn names_are_told_to_those_who_may_read_the_job() {
    let shop = Shop::open();
    shop.job("secret", NOTE, "");
    shop.run("SELECT awty.pause('secret', 'hush'); SELECT awty.schedule('orders', 'one', 'secret', after => '0')");
    shop.await_time(shop.slot_of("one"), 0);
    let why = |role: &str| -> String {
        shop.cluster
            .client("postgres", role)
            .query_one("SELECT concat_ws('; ', why, fix) FROM awty.status", &[])
            .unwrap()
            .get(0)
    };
    assert!(why("shop").contains("job \"secret\" is paused") && why("shop").contains("hush"), "{}", why("shop"));
    shop.cluster.create_user("postgres", "other");
    assert_eq!(why("other"), "a job is paused; SELECT awty.resume(…);");
    shop.cluster.execute("postgres", &["GRANT pg_monitor TO other"]);
    assert!(why("other").contains("job \"secret\" is paused"), "{}", why("other"));
    shop.cluster.execute("postgres", &["REVOKE pg_monitor FROM other"]);
    shop.run("SELECT awty.allow('secret', 'other', 'read')");
    assert!(why("other").contains("hush"), "{}", why("other"));
}

#[test]
fn what_repeats_is_explained_forecast_and_looked_after() {
    let shop = Shop::open();
    shop.job("nightly", NOTE, "");
    shop.run("SELECT awty.repeat('nightly', cron => '30 3 * * *', zone => 'Europe/Berlin')");
    let next = "SELECT count(*) = 4 AND max(at) - min(at) BETWEEN '2 days 23 hours' AND '3 days 1 hour'
                FROM awty.explain('job', 'nightly') WHERE event = 'next'";
    assert!(shop.cluster.value::<bool>("postgres", next));
    let days = "SELECT sum(checks) = 7 AND count(*) = 7 FROM awty.forecast('7 days')";
    assert!(shop.cluster.value::<bool>("postgres", days));
    // An inspection would insert the check again, but it skips a repetition that is locked.
    let mut holder = shop.cluster.client("postgres", "postgres");
    holder.batch_execute("BEGIN; SELECT FROM awty_internal.repetition FOR UPDATE").unwrap();
    shop.cluster.execute("postgres", &["DELETE FROM awty.future_job"]);
    // Waits, because `awty.doctor()` may for a while also report that awty's inspection had to wait for this test's
    // lock.
    shop.await_true(
        "the one finding",
        "SELECT array_agg(finding) = ARRAY['the repetition of job \"nightly\" for \"job\" \"nightly\" has no pending check'] FROM awty.doctor()",
    );
}

#[test]
fn a_zone_that_is_gone_is_told_and_fails_no_look() {
    let shop = Shop::open();
    shop.job("nightly", NOTE, "");
    for key in ["1", "2"] {
        shop.run(&format!(
            "SELECT awty.repeat('nightly', cron => '30 3 * * *', zone => 'Europe/Berlin', entity_name => 'shops', entity_key => '{key}')"
        ));
    }
    let forecast = "SELECT sum(checks)::bigint FROM awty.forecast('7 days')";
    assert_eq!(shop.cluster.value::<i64>("postgres", forecast), 14);
    shop.run("SELECT awty.hold('shops', '2')");
    assert_eq!(shop.cluster.value::<i64>("postgres", forecast), 7);
    shop.run("SELECT awty.release('shops', '2')");
    let gone = "UPDATE awty_internal.repetition SET zone = 'Atlantis/Capital' WHERE entity_key = '1'";
    shop.cluster.execute("postgres", &[gone]);
    assert_eq!(shop.cluster.value::<i64>("postgres", forecast), 8);
    let events = |client: &mut Client| -> Vec<String> {
        let rows = client.query("SELECT event FROM awty.explain('shops', '1')", &[]).unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    };
    let findings = |client: &mut Client| -> Vec<String> {
        let rows = client.query("SELECT concat_ws('; ', finding, detail, fix) FROM awty.doctor()", &[]).unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    };
    let mut client = shop.client();
    assert_eq!(events(&mut client), ["scheduled", "waiting", "next"]);
    let unknown = "PostgreSQL no longer knows its time zone \"Atlantis/Capital\"; \
                   SELECT awty.repeat('nightly', cron => '30 3 * * *', zone => …, entity_name => 'shops', entity_key => '1');";
    let of = "the repetition of job \"nightly\" for \"shops\" \"1\"";
    let mut expect = |finding: String| {
        shop.cluster.await_that("the one finding", PATIENCE, || {
            let found = findings(&mut client);
            if found == [finding.as_str()] { Ok(()) } else { Err(format!("{found:#?}")) }
        });
    };
    expect(format!("{of} ends after its pending check; {unknown}"));
    shop.cluster.execute("postgres", &["DELETE FROM awty.future_job WHERE entity_key = '1'"]);
    expect(format!("{of} has no pending check; {unknown}"));
    assert_eq!(events(&mut client), ["waiting"]);
    shop.cluster.create_user("postgres", "other");
    let mut other = shop.cluster.client("postgres", "other");
    assert_eq!(findings(&mut other), Vec::<String>::new());
    assert_eq!(events(&mut other), Vec::<String>::new());
}

#[test]
fn the_status_looks_up_its_reason_once_and_only_if_asked() {
    let shop = Shop::open();
    for job in ["one", "two", "three"] {
        shop.job(job, NOTE, "");
        shop.run(&format!("SELECT awty.pause('{job}'), awty.schedule('orders', '1', '{job}', after => '1 s')"));
    }
    shop.await_true("all to be due", "SELECT count(*) = 3 FROM awty_internal.overdue");
    let mut client = shop.cluster.superuser("postgres");
    client.batch_execute("SET track_functions = 'all'").unwrap();
    let mut look_ups = |columns: &str| -> i64 {
        let mut transaction = client.transaction().unwrap();
        let mut number = |sql: &str| transaction.query_one(sql, &[]).unwrap().get::<_, i64>(0);
        let calls =
            "SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_xact_user_functions WHERE funcname = 'cannot_call'";
        let before = number(calls);
        number(&format!("SELECT count({columns}) FROM awty.status AS s"));
        number(calls) - before
    };
    assert_eq!(["*", "lag", "pending"].map(&mut look_ups), [0; 3]);
    assert_eq!(["why", "fix", "concat(why, fix)", "s::text"].map(&mut look_ups), [3; 4]);
}

#[test]
fn looking_costs_the_same_with_many_pending() {
    let shop = Shop::open();
    shop.job("one", NOTE, "");
    let mut admin = shop.cluster.superuser("postgres");
    let mut pages = |n: i64| -> i64 {
        let fill = "INSERT INTO awty.future_job (job, entity_name, entity_key, first_check_at, next_check_at, scheduled_by, scheduled_at)
                    SELECT 'one', 'orders', n::text, now() + interval '1 day', now() + interval '1 day', 'shop', now()
                    FROM generate_series($1::bigint / 1000 + 1, $1) AS n ON CONFLICT DO NOTHING";
        admin.execute(fill, &[&n]).unwrap();
        admin.batch_execute("VACUUM (ANALYZE) awty.future_job").unwrap();
        let explain = "EXPLAIN (ANALYZE, BUFFERS, FORMAT json) SELECT why, lag FROM awty.status";
        // Executes the query once before the measurement, because the first query after ANALYZE also reads catalogs.
        admin.query_one(explain, &[]).unwrap();
        let plan: serde_json::Value = admin.query_one(explain, &[]).unwrap().get(0);
        plan[0]["Plan"]["Shared Hit Blocks"].as_i64().unwrap() + plan[0]["Plan"]["Shared Read Blocks"].as_i64().unwrap()
    };
    let (few, many) = (pages(100), pages(100_000));
    assert!(many < few + 20, "{few} pages with few checks pending, {many} with many");
}

#[test]
fn a_launcher_that_gives_no_sign_of_life_is_named() {
    let shop = Shop::open();
    shop.job("one", NOTE, "");
    shop.await_true("a sign of life", "SELECT awty.healthy()");
    let launcher = shop.cluster.pids("awty launcher")[0];
    shop.cluster.kill(Signal::STOP, launcher);
    let silent = "SELECT coalesce(why LIKE 'awty''s launcher has sent no heartbeat since %', false) AND NOT awty.healthy() FROM awty.status";
    shop.await_true("the silence", silent);
    shop.cluster.kill(Signal::CONT, launcher);
    shop.await_true("the next sign of life", "SELECT why IS NULL AND awty.healthy() FROM awty.status");
}
