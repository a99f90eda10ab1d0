//! Each check commits its effects exactly once, despite crashes, signals and restarts.

use awty_testkit::fixture::{DOOR, GATE, NOTE, Shop};
use awty_testkit::{Cluster, Signal, Stop};
use chrono::TimeDelta;
use std::time::Duration;

/// Maximum time until a check ends. A minute would be too long, because awty finds forgotten checks within a minute.
const AT_ONCE: TimeDelta = TimeDelta::seconds(30);

const PATIENCE: Duration = Duration::from_secs(60);

fn await_through_crashes(shop: &Shop, what: &str, sql: &str) {
    shop.cluster.await_that(what, PATIENCE, || {
        let mut client = shop.cluster.try_client("postgres", "postgres").map_err(|error| error.to_string())?;
        match client.query_one(sql, &[]).map_err(|error| error.to_string())?.get::<_, Option<bool>>(0) {
            Some(true) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
}

fn worker(shop: &Shop) -> i32 {
    shop.cluster.value("postgres", "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
}

#[test]
fn a_run_whose_worker_is_killed_is_done_once_and_at_once() {
    let shop = Shop::open();
    shop.job(
        "gated",
        &format!("BEGIN INSERT INTO shop.note (entity_key) VALUES (j.entity_key); {GATE} RETURN NULL; END"),
        "",
    );
    shop.job("note", NOTE, "");
    let gate = shop.close_gate();
    shop.schedule("1", "gated", "after => '0'");
    shop.await_at_gate();
    for key in 2..=6 {
        shop.schedule(&key.to_string(), "note", "at => now() + interval '1 h'");
    }
    let position = shop.cluster.log_position();
    shop.cluster.kill(Signal::KILL, worker(&shop));
    shop.cluster.await_log(&["database system is ready to accept connections"], position);
    drop(gate);
    await_through_crashes(&shop, "the server to be up", "SELECT true");
    let end = shop.end_of("1");
    assert_eq!((end.why(), end.attempts, shop.notes("1")), (("done", None), 1, 1), "{end:?}");
    assert!(end.started() - shop.ready_at() < AT_ONCE, "ready at {}: {end:?}", shop.ready_at());
    assert_eq!(shop.cluster.psql("postgres", "SELECT count(*), bool_or(held) FROM awty.future_job").trim(), "5|f");
}

#[test]
fn a_check_that_crashes_the_server_is_held_and_its_neighbours_are_done() {
    let shop = Shop::on(Cluster::builder().set("awty.max_crashes", "2").start());
    shop.cluster.execute(
        "postgres",
        &["CREATE FUNCTION public.poison() RETURNS void SECURITY DEFINER LANGUAGE plpgsql AS
           $$ BEGIN EXECUTE format('COPY (SELECT) TO PROGRAM %L', 'kill -9 ' || pg_backend_pid()); END $$"],
    );
    shop.job("poison", "BEGIN PERFORM public.poison(); RETURN NULL; END", "");
    shop.job("note", NOTE, "");
    shop.run(
        "SELECT awty.schedule('orders', n::text, 'note', at => now() + interval '1 s') FROM generate_series(1, 10) AS n;
         SELECT awty.schedule('orders', 'poison', 'poison', at => now() + interval '1 s')",
    );
    let held = "SELECT held FROM awty.future_job WHERE entity_key = 'poison'";
    await_through_crashes(&shop, "the poisonous check to be held", held);
    await_through_crashes(&shop, "the others to be done", "SELECT count(*) = 10 FROM awty.future_job_history");
    assert_eq!(shop.cluster.psql("postgres", "SELECT held_checks, pending FROM awty.status").trim(), "1|1");
    for key in 1..=10 {
        let end = shop.end_of(&key.to_string());
        assert_eq!((end.why(), shop.notes(&key.to_string())), (("done", None), 1), "{end:?}");
    }
    shop.cluster.await_log(&["WARNING", "is held"], 0);
    shop.cluster.await_log(&["HINT", "awty.release("], 0);

    shop.cluster
        .execute("postgres", &["CREATE OR REPLACE FUNCTION public.poison() RETURNS void LANGUAGE sql AS 'SELECT'"]);
    shop.run("SELECT awty.release(entity_name, entity_key, job) FROM awty.future_job WHERE held");
    let end = shop.end_of("poison");
    assert_eq!(end.why(), ("done", None), "{end:?}");
}

pub fn create_poison_of_mallory(shop: &Shop) {
    shop.cluster.execute(
        "postgres",
        &[
            "CREATE FUNCTION public.poison() RETURNS void SECURITY DEFINER LANGUAGE plpgsql AS
             $$ BEGIN EXECUTE format('COPY (SELECT) TO PROGRAM %L', 'kill -9 ' || pg_backend_pid()); END $$",
            "CREATE ROLE mallory LOGIN",
            "GRANT USAGE ON SCHEMA awty TO mallory",
            "CREATE SCHEMA mallory AUTHORIZATION mallory",
            "CREATE FUNCTION mallory.poison(j awty.future_job) RETURNS timestamptz LANGUAGE plpgsql AS
             $$ BEGIN PERFORM public.poison(); RETURN NULL; END $$",
            "SELECT awty.register('poison', 'mallory.poison', run_as => 'mallory')",
        ],
    );
}

/// After a crash, each check that may have caused the crash runs alone.
#[test]
fn a_check_that_crashes_the_server_gets_no_other_one_held() {
    let shop = Shop::on(Cluster::builder().set("awty.max_crashes", "3").start());
    create_poison_of_mallory(&shop);
    shop.job(
        "slow",
        "BEGIN PERFORM pg_sleep(4); INSERT INTO shop.note (entity_key) VALUES (j.entity_key); RETURN NULL; END",
        "",
    );
    shop.schedule("slow", "slow", "after => '0'");
    shop.cluster.await_sql(
        "postgres",
        "the long run to be going on",
        "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'awty worker' AND wait_event = 'PgSleep')",
    );
    shop.cluster.execute("postgres", &["SELECT awty.schedule('orders', 'poison', 'poison', after => '0')"]);
    await_through_crashes(
        &shop,
        "the poisonous check to be held",
        "SELECT held FROM awty.future_job WHERE entity_key = 'poison'",
    );
    let end = shop.end_within("slow", PATIENCE);
    assert_eq!((end.why(), shop.notes("slow")), (("done", None), 1), "{end:?}");
}

#[test]
fn a_launcher_that_is_terminated_comes_back() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    shop.schedule("1", "note", "after => '2 s'");
    let launcher = |is_new: &dyn Fn(&Vec<i32>) -> bool| {
        shop.cluster.await_that("a launcher", PATIENCE, || {
            Some(shop.cluster.pids("awty launcher")).filter(is_new).ok_or_else(|| "none".into())
        })
    };
    let old = launcher(&|pids| pids.len() == 1);
    shop.cluster.execute("postgres", &[&format!("SELECT pg_terminate_backend({})", old[0])]);
    shop.schedule("2", "note", "after => '0'");
    for key in ["1", "2"] {
        assert_eq!((shop.end_of(key).why(), shop.notes(key)), (("done", None), 1));
    }
    launcher(&|pids| pids.len() == 1 && *pids != old);
    shop.await_true("nothing to be in flight", "SELECT NOT EXISTS (SELECT FROM awty_internal.in_flight)");
}

#[test]
fn a_run_that_a_shutdown_interrupts_is_done_once_after_the_start() {
    let mut shop = Shop::open();
    shop.job(
        "slow",
        &format!("BEGIN INSERT INTO shop.note (entity_key) VALUES (j.entity_key); {DOOR} RETURN NULL; END"),
        "",
    );
    for (key, stop) in [("smart", Stop::Smart), ("fast", Stop::Fast), ("immediate", Stop::Immediate)] {
        shop.close_door();
        shop.schedule(key, "slow", "after => '0'");
        shop.await_at_door();
        shop.cluster.stop(stop);
        shop.cluster.start();
        shop.await_at_door();
        let ready = shop.ready_at();
        shop.open_door();
        let end = shop.end_of(key);
        assert_eq!((end.why(), end.attempts, shop.notes(key)), (("done", None), 1, 1), "{end:?}");
        assert!(end.started() - ready < AT_ONCE, "ready at {ready}: {end:?}");
    }
}

#[test]
fn a_run_is_done_once_after_the_death_of_the_postmaster() {
    let mut shop = Shop::open();
    shop.job(
        "slow",
        &format!("BEGIN INSERT INTO shop.note (entity_key) VALUES (j.entity_key); {DOOR} RETURN NULL; END"),
        "",
    );
    shop.close_door();
    shop.schedule("1", "slow", "after => '0'");
    shop.await_at_door();
    shop.cluster.kill_server();
    shop.cluster.start();
    let ready = shop.ready_at();
    shop.open_door();
    let end = shop.end_of("1");
    assert_eq!((end.why(), end.attempts, shop.notes("1")), (("done", None), 1, 1), "{end:?}");
    assert!(end.started() - ready < AT_ONCE, "ready at {ready}: {end:?}");
}

/// The worker must end after the postmaster's death, because a new server does not start while old processes live.
/// PostgreSQL itself does not notice the death in runs that never wait.
#[test]
fn a_worker_with_minutes_of_work_leaves_after_the_death_of_the_postmaster() {
    let mut shop = Shop::open();
    let busy = "DECLARE t timestamptz := clock_timestamp() + '50 ms'; BEGIN WHILE clock_timestamp() < t LOOP END LOOP; RETURN NULL; END";
    shop.job("busy", busy, "");
    shop.run(
        "SELECT count(awty.schedule('orders', n::text, 'busy', after => '0')) FROM generate_series(1, 20000) AS n",
    );
    shop.await_true("the first runs", "SELECT count(*) >= 3 FROM awty.future_job_history");
    shop.cluster.kill_server();
}

#[test]
fn a_terminated_run_is_due_again_and_a_cancelled_one_has_failed() {
    let shop = Shop::open();
    let slow = format!("BEGIN INSERT INTO shop.note (entity_key) VALUES (j.entity_key); {DOOR} RETURN NULL; END");
    shop.job("slow", &slow, ", max_attempts => 1");
    shop.close_door();
    shop.schedule("terminated", "slow", "after => '0'");
    shop.await_at_door();
    // A role may terminate a worker that is connected as this role.
    shop.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'awty worker'");
    shop.open_door();
    let end = shop.end_of("terminated");
    assert_eq!((end.why(), end.attempts, shop.notes("terminated")), (("done", None), 1, 1), "{end:?}");

    shop.close_door();
    shop.schedule("cancelled", "slow", "after => '0'");
    shop.await_at_door();
    shop.run("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE backend_type = 'awty worker'");
    let end = shop.end_of("cancelled");
    assert_eq!((end.why(), end.attempts, shop.notes("cancelled")), (("failed", Some("57014")), 1, 0), "{end:?}");
}
