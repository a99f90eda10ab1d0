//! Intents: what is left of them after a crash names the suspects.

use crate::shop::{DOOR, NOTE, Shop};

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
