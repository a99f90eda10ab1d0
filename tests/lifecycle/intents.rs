//! Intents: what is left of them after a crash names the suspects.

use crate::shop::{DOOR, NOTE, Shop};
use awty_testkit::Cluster;

/// P7: the intents of a database are taken up after a crash also if a worker of another database already has the seat of one.
#[test]
fn a_crash_is_counted_whatever_other_databases_do_by_then() {
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
    // As if a worker had been about to run the other database's check.
    let about_to_run = "INSERT INTO awty.intent SELECT 0, ARRAY[id] FROM awty.future_job";
    shop.cluster.execute("other", &[about_to_run]);
    shop.cluster.execute("postgres", &["ALTER DATABASE other ALLOW_CONNECTIONS false", "CHECKPOINT"]);

    shop.cluster.kill_server();
    shop.cluster.start();
    shop.await_at_door();
    shop.cluster.execute("postgres", &["ALTER DATABASE other ALLOW_CONNECTIONS true"]);
    // Any change of a job asks for a visit.
    shop.cluster.execute("other", &["SELECT awty.alter('note', max_checks => 3)"]);
    let left = "SELECT NOT EXISTS (SELECT FROM awty.intent)";
    shop.cluster.await_sql("other", "the intent to be taken up", left);
    assert_eq!(shop.cluster.psql("other", "SELECT crashes FROM awty.tally").trim(), "1");
    shop.open_door();
}

/// P7, P4: a client that has the row of a check locked whose run has ended its process holds up no other check of the role, and is
/// part of no deadlock.
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
    // What cancel() does first, and what it does next.
    let mut client = shop.cluster.superuser("postgres");
    let mut cancelling = client.transaction().unwrap();
    cancelling.execute("SELECT FROM awty.future_job WHERE id = $1 FOR UPDATE", &[&id]).unwrap();
    shop.open_door();
    shop.await_true("the end of the process", "SELECT workers = 0 FROM awty.status");
    shop.schedule("good", "note", "after => '0'");
    assert_eq!(shop.end_of("good").outcome, "done");
    cancelling.execute("DELETE FROM awty.tally WHERE check_id = $1", &[&id]).unwrap();
    cancelling.rollback().unwrap();
    shop.schedule("another", "note", "after => '0'");
    shop.await_true("the check to be held", "SELECT held FROM awty.future_job WHERE entity_key = 'bad'");
    assert_eq!(shop.end_of("another").outcome, "done");
}
