use awty_testkit::Cluster;
use awty_testkit::fixture::{GATE, NOTE, Shop};

fn roles(shop: &Shop, number: usize) {
    for role in (1..=number).map(|n| format!("r{n}")) {
        shop.cluster.create_user("postgres", &role);
        shop.cluster
            .client("postgres", &role)
            .batch_execute(&format!(
                "CREATE FUNCTION {role}.job(j awty.future_job) RETURNS timestamptz LANGUAGE plpgsql AS
                   $$ BEGIN PERFORM pg_sleep(0.01); RETURN NULL; END $$;
                 SELECT awty.register('{role}', '{role}.job')"
            ))
            .unwrap();
    }
}

#[test]
fn with_one_worker_for_four_roles_nobody_starves() {
    let shop = Shop::on(Cluster::builder().set("awty.max_workers", "1").start());
    roles(&shop, 4);
    // The worker starts anew for each change of role. The checks of one role need five turns of 50 ms.
    shop.cluster.execute(
        "postgres",
        &["SELECT awty.schedule('orders', n::text, r.job, at => now() + interval '1 s')
           FROM generate_series(1, 25) AS n, (SELECT job FROM awty.job) AS r"],
    );
    shop.await_all_ended();
    let fair: bool = shop.cluster.value(
        "postgres",
        "SELECT max(first) < min(last)
         FROM (SELECT min(started_at) AS first, max(started_at) AS last FROM awty.future_job_history GROUP BY job) AS j",
    );
    assert!(
        fair,
        "{}",
        shop.cluster.psql(
            "postgres",
            "SELECT job, min(started_at), max(started_at), count(*) FROM awty.future_job_history GROUP BY job"
        )
    );
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM awty.future_job_history"), 100);
}

#[test]
fn a_worker_that_waits_does_not_hold_up_another_roles_backlog() {
    let shop = Shop::on(Cluster::builder().set("awty.max_workers", "1").start());
    roles(&shop, 2);
    shop.cluster.execute(
        "postgres",
        &["SELECT awty.schedule('now and then', n::text, 'r1', at => now() + n * interval '1 s') FROM generate_series(1, 50) AS n",
          "SELECT awty.schedule('at once', n::text, 'r2', at => now() + interval '2 s') FROM generate_series(1, 300) AS n"],
    );
    shop.await_true("the backlog to be done", "SELECT count(*) = 300 FROM awty.future_job_history WHERE job = 'r2'");
    // Role `r2` must finish 3 s of work within 50 s. At only 50 ms per second, the work would take a minute.
    let in_time = "SELECT EXISTS (SELECT FROM awty.future_job WHERE job = 'r1')";
    assert!(shop.cluster.value::<bool>("postgres", in_time), "the backlog was not done when the last slot came");
}

#[test]
fn with_room_for_one_process_everything_is_done() {
    // The three processes are PostgreSQL's logical replication launcher, awty's launcher, and a worker.
    let shop = Shop::on(Cluster::builder().set("max_worker_processes", "3").start());
    roles(&shop, 9);
    shop.cluster
        .execute("postgres", &["SELECT awty.schedule('orders', '1', job, at => now() + interval '1 s') FROM awty.job"]);
    shop.await_all_ended();
    let done: i64 =
        shop.cluster.value("postgres", "SELECT count(*) FROM awty.future_job_history WHERE outcome = 'done'");
    assert_eq!(done, 9);
}

#[test]
fn a_slow_run_does_not_hold_up_its_roles_other_checks() {
    let shop = Shop::open();
    shop.job("a_slow", &format!("BEGIN {GATE} RETURN NULL; END"), "");
    shop.job("note", NOTE, "");
    let gate = shop.close_gate();
    shop.run(
        "SELECT awty.schedule('orders', 'slow', 'a_slow', at => now() + interval '1 s');
         SELECT awty.schedule('orders', n::text, 'note', at => now() + interval '1 s') FROM generate_series(1, 20) AS n",
    );
    shop.await_true("the others to be done", "SELECT count(*) = 20 FROM awty.future_job_history");
    shop.await_at_gate();
    shop.schedule("later", "note", "after => '0'");
    assert_eq!(shop.end_of("later").outcome, "done");
    assert!(shop.is_at_gate());
    drop(gate);
    assert_eq!(shop.end_of("slow").why(), ("done", None));
}

#[test]
fn a_role_with_slow_runs_does_not_hold_up_another_role() {
    let shop = Shop::on(Cluster::builder().set("awty.max_workers", "3").start());
    roles(&shop, 4);
    shop.job("slow", &format!("BEGIN {GATE} RETURN NULL; END"), "");
    let gate = shop.close_gate();
    shop.run("SELECT awty.schedule('orders', n::text, 'slow', after => '0') FROM generate_series(1, 5) AS n");
    shop.await_true("two slow runs", "SELECT count(*) = 2 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted");
    shop.cluster.execute(
        "postgres",
        &["SELECT awty.schedule('others', '1', job, after => '0') FROM awty.job WHERE job <> 'slow'"],
    );
    shop.await_true("the others to be done", "SELECT count(*) = 4 FROM awty.future_job_history");
    assert!(shop.is_at_gate());
    drop(gate);
    shop.await_all_ended();
}

#[test]
fn databases_run_beside_each_other() {
    let shop = Shop::open();
    let databases = ["postgres", "d1", "d2"];
    for database in &databases[1..] {
        shop.cluster.execute("postgres", &[&format!("CREATE DATABASE {database}")]);
        shop.cluster.create_extension(database);
        shop.cluster.execute(
            database,
            &[
                "CREATE SCHEMA shop AUTHORIZATION shop",
                "GRANT USAGE ON SCHEMA awty TO shop",
                "CREATE TABLE shop.note (n integer GENERATED ALWAYS AS IDENTITY, entity_key text, what text)",
                "ALTER TABLE shop.note OWNER TO shop",
            ],
        );
    }
    for database in databases {
        shop.cluster
            .client(database, "shop")
            .batch_execute(
                "CREATE FUNCTION shop.note(j awty.future_job) RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN
                     INSERT INTO shop.note (entity_key, what) VALUES (j.entity_key, current_database());
                     RETURN NULL; END $$;
                 SELECT awty.register('note', 'shop.note');
                 SELECT awty.schedule('orders', n::text, 'note', at => now() + interval '1 s')
                 FROM generate_series(1, 20) AS n",
            )
            .unwrap();
    }
    for database in databases {
        shop.cluster.await_sql(
            database,
            "all to be done",
            "SELECT count(*) = 20 FROM awty.future_job_history WHERE outcome = 'done'",
        );
        let here = format!("SELECT count(*) = 20 AND bool_and(what = '{database}') FROM shop.note");
        assert!(shop.cluster.value::<bool>(database, &here), "{database}");
    }
}

#[test]
fn bad_jobs_stop_nobody() {
    let shop = Shop::open();
    shop.job("a_bad", "BEGIN RAISE 'no'; END", ", max_attempts => 100, retry_after => '1 s'");
    shop.job("b_gone", NOTE, "");
    shop.run("DROP FUNCTION shop.b_gone");
    shop.job("note", NOTE, "");
    shop.run("SELECT awty.schedule('orders', n::text, 'a_bad', after => '0') FROM generate_series(1, 50) AS n");
    for key in ["a", "b", "c"] {
        shop.schedule(key, "note", "after => '1 s'");
        let end = shop.end_of(key);
        assert_eq!(end.why(), ("done", None), "{end:?}");
    }
}

#[test]
fn two_workers_divide_a_backlog() {
    let shop = Shop::open();
    shop.run("CREATE TABLE shop.done (by integer NOT NULL)");
    shop.job(
        "quick",
        "BEGIN PERFORM pg_sleep(CASE WHEN EXISTS (SELECT FROM shop.done WHERE by <> pg_backend_pid()) THEN 0.001 ELSE 0.02 END);
         INSERT INTO shop.done VALUES (pg_backend_pid()); RETURN NULL; END",
        "",
    );
    let at = shop.ready_at();
    shop.run(&format!(
        "SELECT count(awty.schedule('orders', n::text, 'quick', at => '{at}')) FROM generate_series(1, 2000) AS n"
    ));
    shop.await_all_ended();
    let by = "SELECT count(*) FROM shop.done GROUP BY by ORDER BY 1";
    let shares = shop.cluster.psql("postgres", by);
    let shares: Vec<i64> = shares.lines().map(|share| share.parse().unwrap()).collect();
    assert_eq!(shares.iter().sum::<i64>(), 2000, "{shares:?}");
    assert!(shares.len() >= 2 && shares[0] > 500, "one did nearly all of it: {shares:?}");
    let apart = "SELECT count(*) = count(DISTINCT entity_key) FROM awty.future_job_history";
    assert!(shop.cluster.value::<bool>("postgres", apart));
}
