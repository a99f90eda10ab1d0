use awty_testkit::fixture::{GATE, NOTE, Shop};
use awty_testkit::postgres::error::SqlState;
use awty_testkit::{Cluster, PATIENCE, poll};

fn with_database() -> Shop {
    let shop = Shop::open();
    shop.cluster.execute("postgres", &["CREATE DATABASE d OWNER shop"]);
    shop.cluster.create_extension("d");
    shop.cluster.execute("d", &["GRANT USAGE ON SCHEMA awty TO shop"]);
    shop.cluster
        .client("d", "shop")
        .batch_execute(
            "CREATE FUNCTION public.note(j awty.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz';
             CREATE FUNCTION public.slow(j awty.future_job) RETURNS timestamptz LANGUAGE plpgsql AS
               $$ BEGIN PERFORM pg_sleep(600); RETURN NULL; END $$;
             SELECT awty.register('note', 'public.note');
             SELECT awty.register('slow', 'public.slow', timeout => '1 s', retry_after => '1 h')",
        )
        .unwrap();
    shop
}

fn keep_busy(shop: &Shop, job: &str) {
    shop.cluster.execute(
        "d",
        &[
            "SELECT awty.schedule('orders', 'future', 'note', after => '1 h')",
            &format!("SELECT awty.schedule('orders', '1', '{job}', after => '0')"),
        ],
    );
    match job {
        "note" => shop.cluster.await_sql("d", "the check to be done", "SELECT count(*) = 1 FROM awty.future_job_history"),
        _ => shop.await_true(
            "the run",
            "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'awty worker' AND wait_event = 'PgSleep')",
        ),
    }
}

#[test]
fn a_database_can_be_dropped_whether_awty_is_idle_or_busy_in_it() {
    for job in ["note", "slow"] {
        let shop = with_database();
        keep_busy(&shop, job);
        shop.cluster.execute("postgres", &["DROP DATABASE d"]);
        shop.job("note", NOTE, "");
        shop.schedule("1", "note", "after => '0'");
        assert_eq!(shop.end_of("1").outcome, "done");
    }
}

#[test]
fn a_database_can_be_dropped_by_force_in_the_middle_of_a_run() {
    let shop = with_database();
    shop.cluster.execute("postgres", &["ALTER ROLE shop CREATEDB"]);
    shop.cluster.execute("d", &["SELECT awty.alter('slow', timeout => '1 h')"]);
    keep_busy(&shop, "slow");
    // The maintainer may be connected for a moment, and only a superuser may terminate it.
    let drop = || match shop.cluster.client("postgres", "shop").batch_execute("DROP DATABASE d WITH (FORCE)") {
        Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => Err(error.to_string()),
        ended => Ok(ended),
    };
    poll("the end of maintenance", PATIENCE, drop).unwrap().unwrap();
    shop.job("note", NOTE, "");
    shop.schedule("1", "note", "after => '0'");
    assert_eq!(shop.end_of("1").outcome, "done");
}

#[test]
fn a_database_can_be_copied_and_renamed_whether_awty_is_idle_or_busy_in_it() {
    for job in ["note", "slow"] {
        let shop = with_database();
        keep_busy(&shop, job);
        shop.cluster.execute("postgres", &["CREATE DATABASE copy TEMPLATE d", "ALTER DATABASE d RENAME TO e"]);
        shop.cluster.execute("e", &["SELECT awty.schedule('orders', '2', 'note', after => '0')"]);
        shop.cluster.await_sql(
            "e",
            "a check in the renamed database",
            "SELECT EXISTS (SELECT FROM awty.future_job_history WHERE entity_key = '2' AND outcome = 'done')",
        );
    }
}

#[test]
fn the_extension_can_be_dropped_beside_a_run_and_created_again() {
    let shop = Shop::open();
    let gated = format!("BEGIN INSERT INTO shop.note (entity_key) VALUES (j.entity_key); {GATE} RETURN NULL; END");
    shop.job("gated", &gated, "");
    let gate = shop.close_gate();
    for key in 1..=3 {
        shop.schedule(&key.to_string(), "gated", "after => '0'");
    }
    shop.await_at_gate();
    let mut client = shop.cluster.superuser("postgres");
    let dropping = std::thread::spawn(move || {
        client.batch_execute("DROP EXTENSION awty CASCADE").unwrap();
        client
    });
    let waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype <> 'advisory' AND NOT granted)";
    shop.await_true("DROP EXTENSION to wait for the run", waits);
    drop(gate);
    let mut client = dropping.join().unwrap();
    assert!(shop.notes("1") <= 1 && shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM shop.note") >= 1);

    client.batch_execute("CREATE EXTENSION awty; GRANT USAGE ON SCHEMA awty TO shop; TRUNCATE shop.note").unwrap();
    shop.job("note", NOTE, "");
    shop.schedule("1", "note", "after => '0'");
    let end = shop.end_of("1");
    assert_eq!((end.why(), shop.notes("1")), (("done", None), 1), "{end:?}");
    client.batch_execute("SELECT awty.schedule('orders', '2', 'note', after => '0')").unwrap();
    assert_eq!(shop.end_of("2").outcome, "done");
}

#[test]
fn a_function_that_has_changed_since_is_taken_as_it_is() {
    let shop = Shop::open();
    let changes = [
        (
            "replaced",
            "CREATE OR REPLACE FUNCTION shop.replaced(j awty.future_job) RETURNS timestamptz LANGUAGE sql AS
                      $$ INSERT INTO shop.note (entity_key) VALUES ('new'); SELECT NULL::timestamptz $$",
            ("done", None),
        ),
        ("dropped", "DROP FUNCTION shop.dropped", ("failed", Some("42883"))),
        ("renamed", "ALTER FUNCTION shop.renamed RENAME TO other", ("failed", Some("42883"))),
        (
            "retyped",
            "DROP FUNCTION shop.retyped; CREATE FUNCTION shop.retyped(j awty.future_job) RETURNS text LANGUAGE sql AS
                     'SELECT NULL::text'",
            ("failed", Some("42P13")),
        ),
        (
            "of_set",
            "DROP FUNCTION shop.of_set; CREATE FUNCTION shop.of_set(j awty.future_job) RETURNS SETOF timestamptz
                    LANGUAGE sql AS 'SELECT now()'",
            ("failed", Some("42P13")),
        ),
        (
            "procedure",
            "DROP FUNCTION shop.procedure; CREATE PROCEDURE shop.procedure(j awty.future_job) LANGUAGE sql AS
                       'SELECT 1'",
            ("failed", Some("42809")),
        ),
        (
            "set_based",
            "DROP FUNCTION shop.set_based; CREATE FUNCTION shop.set_based(j awty.future_job[])
                       RETURNS timestamptz[] LANGUAGE sql AS 'SELECT NULL::timestamptz[]'",
            ("failed", Some("42883")),
        ),
    ];
    for (job, _, _) in changes {
        shop.job(job, NOTE, ", max_attempts => 1");
    }
    let all: Vec<&str> = changes.iter().map(|(_, change, _)| *change).collect();
    let schedule = "SELECT awty.schedule('orders', job, job, after => '0') FROM awty.job";
    shop.run(&format!("{schedule}; {}", all.join("; ")));
    for (job, _, why) in changes {
        let end = shop.end_of(job);
        assert_eq!(end.why(), why, "{end:?}");
        assert!(end.sqlstate.is_none() || end.message.as_deref().is_some_and(|text| text.contains(job)), "{end:?}");
    }
    assert_eq!(shop.cluster.psql("postgres", "SELECT entity_key FROM shop.note").trim(), "new");
}

#[test]
fn a_role_that_has_lost_execute_fails_until_it_is_granted() {
    let shop = Shop::open();
    shop.job("note", NOTE, ", max_attempts => 100, retry_after => '1 s'");
    shop.cluster.execute(
        "postgres",
        &["ALTER FUNCTION shop.note OWNER TO postgres", "REVOKE ALL ON FUNCTION shop.note FROM PUBLIC, shop"],
    );
    shop.cluster.execute("postgres", &["SELECT set_config('x.y', 'z', false)"]);
    let refused = shop.client().query("SELECT awty.schedule('orders', '1', 'note', after => '0')", &[]);
    assert_eq!(refused.unwrap_err().code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE));
    shop.cluster.execute("postgres", &["GRANT EXECUTE ON FUNCTION shop.note TO shop"]);
    let schedule =
        "SELECT awty.schedule('orders', '1', 'note', after => '0'); REVOKE ALL ON FUNCTION shop.note FROM shop";
    shop.cluster.execute("postgres", &[schedule]);
    shop.await_true("a failure", "SELECT attempt > 0 FROM awty.future_job");
    shop.cluster.execute("postgres", &["GRANT EXECUTE ON FUNCTION shop.note TO shop"]);
    let end = shop.end_of("1");
    assert_eq!((end.why(), shop.notes("1")), (("done", None), 1), "{end:?}");
}

#[test]
fn a_role_that_cannot_connect_waits_until_it_can() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    shop.cluster.create_user("postgres", "other");
    shop.cluster.execute("postgres", &["GRANT CONNECT ON DATABASE postgres TO other"]);
    let mut other = shop.cluster.client("postgres", "other");
    other
        .batch_execute(
            "CREATE FUNCTION other.job(j awty.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz';
             SELECT awty.register('other', 'other.job')",
        )
        .unwrap();
    let ways = [
        ("login", "ALTER ROLE shop NOLOGIN", "ALTER ROLE shop LOGIN"),
        ("connect", "REVOKE CONNECT ON DATABASE postgres FROM PUBLIC", "GRANT CONNECT ON DATABASE postgres TO shop"),
    ];
    let no_login_needed: bool =
        shop.cluster.value("postgres", "SELECT current_setting('server_version_num')::integer >= 170000");
    for (key, revoke, grant) in ways {
        // Waits until the worker has disconnected, because a worker that is still connected runs the check despite the
        // revoked right.
        shop.await_workers_gone();
        let position = shop.cluster.log_position();
        shop.cluster.execute("postgres", &[revoke]);
        let schedule = format!("SELECT awty.schedule('orders', '{key}', 'note', after => '0')");
        shop.cluster.execute("postgres", &[&schedule]);
        if key == "login" && no_login_needed {
            assert_eq!(shop.end_of(key).why(), ("done", None));
            shop.cluster.execute("postgres", &[grant]);
            continue;
        }
        shop.cluster.await_log(&["WARNING", "\"shop\""], position);
        other.batch_execute(&format!("SELECT awty.schedule('orders', 'other {key}', 'other', after => '0')")).unwrap();
        assert_eq!(shop.end_of(&format!("other {key}")).outcome, "done");
        let told = "SELECT last_error LIKE 'role \"shop\" of job \"note\" has no %' FROM awty.status";
        shop.await_true("the status to say so", told);
        assert!(shop.ends(key).is_empty());
        shop.cluster.execute("postgres", &[grant]);
        let end = shop.end_of(key);
        assert_eq!((end.why(), end.attempts), (("done", None), 1), "{end:?}");
    }
}

#[test]
fn the_checks_of_a_dropped_role_fail() {
    let shop = Shop::on(Cluster::builder().start());
    shop.job("note", NOTE, "");
    let schedule =
        "SELECT awty.schedule('orders', '1', 'note', after => '0'); DROP OWNED BY shop CASCADE; DROP ROLE shop";
    shop.cluster.execute("postgres", &[schedule]);
    shop.cluster.create_user("postgres", "other");
    shop.await_time(shop.slot_of("1"), 1);
    // Registering a job makes awty inspect the database.
    shop.cluster
        .client("postgres", "other")
        .batch_execute(
            "CREATE FUNCTION other.job(j awty.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz';
             SELECT awty.register('other', 'other.job'), awty.schedule('orders', '2', 'other', after => '0')",
        )
        .unwrap();
    let end = shop.end_of("1");
    assert_eq!((end.why(), end.attempts), (("failed", Some("42704")), 0), "{end:?}");
    assert_eq!(shop.end_of("2").outcome, "done");
}

#[test]
fn a_database_that_allows_no_connections_keeps_its_checks() {
    let shop = with_database();
    let mut there = shop.cluster.superuser("d");
    there.batch_execute("BEGIN; SELECT awty.schedule('orders', '1', 'note', after => '0')").unwrap();
    shop.cluster.execute("postgres", &["ALTER DATABASE d ALLOW_CONNECTIONS false"]);
    there.batch_execute("COMMIT").unwrap();
    drop(there);
    shop.job("note", NOTE, "");
    shop.schedule("here", "note", "after => '1 s'");
    assert_eq!(shop.end_of("here").outcome, "done");
    shop.cluster.execute("postgres", &["ALTER DATABASE d ALLOW_CONNECTIONS true"]);
    await_done_in_d(&shop);
}

/// The deadline is long, because the launcher reads the list of databases only once a minute.
fn await_done_in_d(shop: &Shop) {
    let deadline = std::time::Duration::from_secs(150);
    let mut client = shop.cluster.superuser("d");
    shop.cluster.await_that("the check of d to be done", deadline, || {
        let row = client
            .query_one("SELECT count(*) FROM awty.future_job_history WHERE outcome = 'done' AND entity_key = '1'", &[]);
        match row.map(|row| row.get::<_, i64>(0)) {
            Ok(1) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
}

#[test]
fn checks_of_a_role_without_usage_still_run() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    shop.schedule("1", "note", "after => '1 s'");
    shop.cluster.execute("postgres", &["REVOKE USAGE ON SCHEMA awty FROM shop"]);
    let end = shop.end_of("1");
    assert_eq!((end.why(), shop.notes("1")), (("done", None), 1), "{end:?}");
}

/// Between two short runs, a worker keeps its locks on awty's tables.
#[test]
fn a_worker_that_is_terminated_between_runs_leaves_nothing_locked() {
    let shop = Shop::open();
    shop.run("CREATE FUNCTION shop.quick() RETURNS void LANGUAGE sql AS 'SELECT'; SELECT awty.register('quick', 'shop.quick')");
    let mut admin = shop.cluster.superuser("postgres");
    for round in 1..=8 {
        shop.run(
            "SELECT awty.schedule_many('o', (SELECT array_agg(n::text) FROM generate_series(1, 4000) AS n), 'quick', after => '0')",
        );
        let terminate = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'awty worker'";
        for _ in 0..60 {
            admin.query(terminate, &[]).unwrap();
            admin.batch_execute("SELECT pg_sleep(0.01 + random() * 0.03)").unwrap();
        }
        let mut other = shop.cluster.superuser("postgres");
        other.batch_execute("SET lock_timeout = '60 s'").unwrap();
        let locked = other.batch_execute("BEGIN; LOCK TABLE awty.future_job IN ACCESS EXCLUSIVE MODE; COMMIT");
        assert!(locked.is_ok(), "round {round}: {locked:?}");
    }
    shop.await_all_ended();
}
