//! A worker writes the ids of checks to `awty_internal.in_flight` before it runs the checks.

use crate::crash::create_poison_of_mallory;
use awty_testkit::fixture::{DOOR, NOTE, Shop};
use awty_testkit::{Cluster, PATIENCE, poll};

#[test]
fn a_crash_is_counted_once_whatever_other_workers_do_by_then() {
    let mut shop = Shop::open();
    shop.job("slow", &format!("BEGIN {DOOR} RETURN NULL; END"), "");
    shop.cluster.execute("postgres", &["CREATE DATABASE other"]);
    shop.cluster.execute(
        "other",
        &[
            "CREATE EXTENSION awty",
            "CREATE SCHEMA shop AUTHORIZATION shop",
            "GRANT USAGE ON SCHEMA awty TO shop",
            "CREATE TABLE shop.note (entity_key text)",
            "ALTER TABLE shop.note OWNER TO shop",
        ],
    );
    let note = format!(
        "CREATE FUNCTION shop.note(j awty.future_job) RETURNS timestamptz LANGUAGE plpgsql AS $job$ {NOTE} $job$;
         SELECT awty.register('note', 'shop.note');
         SELECT awty.schedule('orders', '1', 'note', after => '1 h')"
    );
    shop.cluster.client("other", "shop").batch_execute(&note).unwrap();
    shop.close_door();
    shop.schedule("1", "slow", "after => '0'");
    shop.await_at_door();
    let about_to_run = "INSERT INTO awty_internal.in_flight SELECT 0, ARRAY[id] FROM awty.future_job
                        UNION ALL SELECT 1, ARRAY[-1, id] FROM awty.future_job
                        UNION ALL SELECT 2, ARRAY[id] FROM awty.future_job";
    shop.cluster.execute("other", &[about_to_run]);
    shop.cluster.execute("postgres", &["ALTER DATABASE other ALLOW_CONNECTIONS false", "CHECKPOINT"]);

    shop.cluster.kill_server();
    shop.cluster.start();
    shop.await_at_door();
    shop.cluster.execute("postgres", &["ALTER DATABASE other ALLOW_CONNECTIONS true"]);
    shop.cluster.execute("other", &["SELECT awty.alter('note', max_checks => 3)"]);
    let left = "SELECT NOT EXISTS (SELECT FROM awty_internal.in_flight)";
    shop.cluster.await_sql("other", "what was in flight to be taken up", left);
    assert_eq!(shop.cluster.psql("other", "SELECT crashes FROM awty_internal.check_stat").trim(), "1");
    shop.open_door();
}

#[test]
fn a_client_does_not_wait_for_the_counting_of_crashes_nor_the_other_way_round() {
    let shop = Shop::on(Cluster::builder().set("awty.max_crashes", "1").start());
    let leave =
        format!("BEGIN {DOOR} PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(60); RETURN NULL; END");
    shop.job("leave", &leave, "");
    shop.job("note", NOTE, "");
    shop.close_door();
    let id = shop.schedule("bad", "leave", "after => '0'");
    shop.await_at_door();
    let mut client = shop.cluster.superuser("postgres");
    let mut cancelling = client.transaction().unwrap();
    cancelling.execute("SELECT FROM awty.future_job WHERE id = $1 FOR UPDATE", &[&id]).unwrap();
    shop.open_door();
    shop.await_true("the end of the process", "SELECT workers = 0 FROM awty.status");
    shop.schedule("good", "note", "after => '0'");
    shop.cluster.execute(
        "postgres",
        &[
            "CREATE FUNCTION public.nothing(j awty.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz'",
            "CREATE ROLE other LOGIN",
            "SELECT awty.register('others', 'public.nothing', run_as => 'other')",
        ],
    );
    shop.cluster.execute("postgres", &["SELECT awty.schedule('orders', 'others', 'others', after => '0')"]);
    assert_eq!(shop.end_of("others").outcome, "done");
    cancelling.execute("DELETE FROM awty_internal.check_stat WHERE check_id = $1", &[&id]).unwrap();
    cancelling.rollback().unwrap();
    shop.schedule("another", "note", "after => '0'");
    shop.await_true("the check to be held", "SELECT held FROM awty.future_job WHERE entity_key = 'bad'");
    assert_eq!((shop.end_of("good").outcome, shop.end_of("another").outcome), ("done".into(), "done".into()));
}

#[test]
fn a_suspect_that_is_terminated_is_blamed_for_no_crash_after_that() {
    let shop = Shop::on(Cluster::builder().set("awty.max_crashes", "2").start());
    create_poison_of_mallory(&shop);
    let stubborn =
        "BEGIN LOOP BEGIN PERFORM pg_sleep(600); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END";
    shop.job("stubborn", stubborn, ", timeout => '3 s', max_attempts => 1");
    let suspect = |job: &str| {
        let sql = format!(
            "WITH s AS (SELECT awty.schedule('orders', '{job}', '{job}', after => '0') AS id)
             INSERT INTO awty_internal.check_stat (check_id, crashes) SELECT id, 1 FROM s"
        );
        shop.cluster.execute("postgres", &[&sql]);
    };
    let at_work = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE usename = 'shop' AND wait_event = 'PgSleep')";
    suspect("stubborn");
    shop.await_true("the run to begin", at_work);
    shop.cluster.execute("postgres", &["ALTER ROLE shop NOLOGIN"]);
    suspect("poison");
    let mut witness = shop.cluster.superuser("postgres");
    let crash = poll("the other one's crash", PATIENCE, || witness.execute("SELECT", &[]).err().ok_or("none".into()));
    crash.unwrap();
    let login = poll("the server to be up", PATIENCE, || {
        let mut client = shop.cluster.try_client("postgres", "postgres").map_err(|error| error.to_string())?;
        client.batch_execute("ALTER ROLE shop LOGIN").map_err(|error| error.to_string())
    });
    login.unwrap();

    let held = "SELECT held FROM awty.future_job WHERE entity_key = 'poison'";
    let ended = "SELECT outcome FROM awty.future_job_history WHERE entity_key = 'stubborn'";
    let state = poll("the guilty one to be held, and the other to end", PATIENCE * 2, || {
        let mut client = shop.cluster.try_client("postgres", "postgres").map_err(|error| error.to_string())?;
        let row = client.query_one(&format!("SELECT ({held}), ({ended})"), &[]).map_err(|error| error.to_string())?;
        match (row.get::<_, Option<bool>>(0), row.get::<_, Option<String>>(1)) {
            (Some(true), Some(outcome)) => Ok(outcome),
            other => Err(format!("{other:?}")),
        }
    });
    assert_eq!(state.as_deref(), Ok("timed_out"));
}
