//! Every scheduled check is pending or in the history. Each check took effect at most once.

use awty_testkit::fixture::{GATE, NOTE, Shop};
use awty_testkit::{Cluster, PATIENCE, Signal};

const NOTE_ID: &str = "BEGIN INSERT INTO shop.note (entity_key, what) VALUES (j.entity_key, j.id); RETURN NULL; END";

#[track_caller]
fn expect_balanced(shop: &Shop) {
    let wrong = shop.cluster.psql(
        "postgres",
        "SELECT id, h.outcomes, n.notes FROM
           (SELECT id, array_agg(outcome::text) AS outcomes FROM awty.future_job_history GROUP BY id) AS h
           FULL JOIN (SELECT what::bigint AS id, count(*) AS notes FROM shop.note GROUP BY what) AS n USING (id)
         WHERE cardinality(h.outcomes) IS DISTINCT FROM 1 OR coalesce(n.notes, 0) <> (h.outcomes = '{done}')::integer",
    );
    assert_eq!(wrong.trim(), "");
}

#[test]
fn a_storm_of_replacements_and_cancellations_loses_and_doubles_nothing() {
    let shop = Shop::open();
    let slow = NOTE_ID.replace("RETURN NULL", "PERFORM pg_sleep(0.01); RETURN NULL");
    shop.job("slow", &slow, "");
    let storm = |seed: u64| {
        let mut client = shop.client();
        let mut ids = Vec::new();
        let mut random = seed;
        let done = "SELECT count(*) > 5 FROM shop.note";
        for step in 0.. {
            if step >= 400 && step % 50 == 0 && client.query_one(done, &[]).unwrap().get(0) {
                break;
            }
            assert!(step < 20_000, "no check ran beside the clients");
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let key = (random >> 33) % 5;
            let sql = match (random >> 40) % 4 {
                0 => format!("SELECT awty.cancel('orders', '{key}')::bigint"),
                1 => format!("SELECT awty.schedule('orders', '{key}', 'slow', after => '0', on_conflict => 'keep')"),
                _ => format!("SELECT awty.schedule('orders', '{key}', 'slow', at => now() - interval '1 s')"),
            };
            let id: i64 = client.query_one(&sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error:?}")).get(0);
            if sql.contains("schedule") {
                ids.push(id);
            }
            client.batch_execute("SELECT pg_sleep(0.01)").unwrap();
        }
        ids
    };
    let ids: Vec<i64> = std::thread::scope(|scope| {
        let clients: Vec<_> = (1..=3).map(|seed| scope.spawn(move || storm(seed))).collect();
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    });
    shop.await_all_ended();
    shop.await_workers_gone();
    expect_balanced(&shop);
    let known: Vec<i64> = shop.cluster.value("postgres", "SELECT array_agg(id) FROM awty.future_job_history");
    let lost: Vec<i64> = ids.into_iter().filter(|id| !known.contains(id)).collect();
    assert!(lost.is_empty(), "scheduled, and nowhere: {lost:?}");
}

#[test]
fn many_checks_over_several_crashes_are_done_once_each() {
    let shop = Shop::on(Cluster::builder().set("awty.max_crashes", "1000").start());
    shop.job("slow", &NOTE_ID.replace("RETURN NULL", "PERFORM pg_sleep(0.005); RETURN NULL"), ", max_checks => 2");
    shop.run("SELECT awty.schedule('orders', n::text, 'slow', at => now() + n % 3 * interval '1 s') FROM generate_series(1, 600) AS n");
    for crash in 1..=4 {
        let pid = shop.cluster.await_that(&format!("a worker to kill, crash {crash}"), PATIENCE, || {
            let mut client = shop.cluster.try_client("postgres", "postgres").map_err(|error| error.to_string())?;
            let sql = format!(
                "SELECT pid FROM pg_stat_activity, (SELECT count(*) AS done FROM shop.note) AS n
                 WHERE backend_type = 'awty worker' AND wait_event = 'PgSleep' AND done > {} LIMIT 1",
                (crash - 1) * 50
            );
            let row = client.query_opt(&sql, &[]).map_err(|error| error.to_string())?;
            row.map(|row| row.get(0)).ok_or_else(|| "none".into())
        });
        let position = shop.cluster.log_position();
        shop.cluster.kill(Signal::KILL, pid);
        shop.cluster.await_log(&["database system is ready to accept connections"], position);
    }
    shop.cluster.await_that("the server to be up", PATIENCE, || {
        shop.cluster.try_client("postgres", "postgres").map(|_| ()).map_err(|error| error.to_string())
    });
    shop.await_all_ended();
    expect_balanced(&shop);
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM shop.note"), 600);
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM awty_internal.check_stat"), 0);
}

#[track_caller]
fn rewrite_meets_a_run(shop: &Shop, key: &str, command: &str) {
    let gate = shop.close_gate();
    shop.schedule(key, "gated", "after => '0'");
    shop.await_at_gate();
    let mut admin = shop.cluster.superuser("postgres");
    let pid: i32 = admin.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0);
    std::thread::scope(|scope| {
        let rewrite = scope.spawn(|| admin.batch_execute(command).unwrap());
        let waits = format!("SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = {pid}");
        shop.cluster.await_that(command, PATIENCE, || {
            let stands = rewrite.is_finished() || shop.cluster.value::<Option<bool>>("postgres", &waits) == Some(true);
            if stands { Ok(()) } else { Err("neither finished nor waiting".into()) }
        });
        assert!(shop.is_at_gate(), "{command} met no run");
        drop(gate);
        rewrite.join().unwrap();
    });
}

#[test]
fn checks_are_done_once_while_the_tables_are_rewritten() {
    let shop = Shop::open();
    shop.job("slow", &NOTE_ID.replace("RETURN NULL", "PERFORM pg_sleep(0.005); RETURN NULL"), "");
    shop.job("bad", "BEGIN RAISE 'no'; END", ", max_attempts => 2, retry_after => '1 s'");
    shop.run(
        "SELECT awty.schedule('orders', n::text, 'slow', at => now() + n % 3 * interval '1 s') FROM generate_series(1, 300) AS n;
         SELECT awty.schedule('orders', 'bad', 'bad', after => '0')",
    );
    shop.job("gated", &format!("BEGIN {GATE} RETURN NULL; END"), "");
    for round in 0..3 {
        for (number, command) in [
            "VACUUM FULL awty.future_job",
            "REINDEX TABLE awty.future_job",
            "VACUUM FULL awty_internal.in_flight",
            "VACUUM awty_internal.check_stat",
        ]
        .iter()
        .enumerate()
        {
            rewrite_meets_a_run(&shop, &format!("gated {round} {number}"), command);
        }
    }
    // Triggers an inspection, which finds checks that a worker missed.
    shop.run("SELECT awty.pause('slow'), awty.resume('slow')");
    shop.await_all_ended();
    let notes = "SELECT count(*) = 300 AND count(DISTINCT what) = 300 FROM shop.note";
    assert!(shop.cluster.value::<bool>("postgres", notes));
    assert_eq!(shop.end_of("bad").why(), ("failed", Some("P0001")));
}

#[test]
fn a_burst_of_small_transactions_is_done_completely() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let shop = &shop;
            scope.spawn(move || {
                let mut client = shop.client();
                for n in 0..300 {
                    let sql = format!(
                        "SELECT awty.schedule('orders', '{thread}.{n}', 'note', at => now() + interval '{} ms')",
                        n % 50 * 20
                    );
                    client.batch_execute(&sql).unwrap();
                }
            });
        }
    });
    shop.await_all_ended();
    let once = "SELECT count(*) = 900 AND count(DISTINCT entity_key) = 900 FROM shop.note";
    assert!(shop.cluster.value::<bool>("postgres", once));
}
