//! awty's processes disconnect, because a database can be dropped, copied or renamed only if no session is connected to
//! it.

use crate::clients;
use awty_testkit::fixture::Shop;

fn occupy(shop: &Shop, database: &str) {
    shop.cluster.execute(
        database,
        &[
            "CREATE OR REPLACE FUNCTION shop.slow(j awty.future_job) RETURNS timestamptz LANGUAGE plpgsql AS $$
             BEGIN
                 PERFORM pg_sleep(0.02) FROM shop.slowly;
                 INSERT INTO shop.note (entity_key, what) VALUES (j.entity_key, j.id::text);
                 RETURN NULL;
             END $$",
            "CREATE TABLE IF NOT EXISTS shop.slowly ()",
            "GRANT SELECT ON shop.slowly TO shop",
            "TRUNCATE shop.slowly",
            "INSERT INTO shop.slowly DEFAULT VALUES",
            "SELECT awty.register('slow', 'shop.slow', run_as => 'shop') WHERE NOT EXISTS (SELECT FROM awty.job WHERE job = 'slow')",
            "SELECT awty.schedule('slow', i::text, 'slow', after => '0') FROM generate_series(1, 1000) AS i",
        ],
    );
    let runs = "SELECT EXISTS (SELECT FROM pg_stat_activity
                               WHERE backend_type = 'awty worker' AND wait_event = 'PgSleep' AND datname = current_database())";
    shop.cluster.await_sql(database, "a slow run", runs);
}

fn hurry(shop: &Shop, database: &str) {
    shop.cluster.execute(database, &["DELETE FROM shop.slowly"]);
}

fn dba(shop: &Shop, statement: &str) {
    let mut dba = shop.cluster.superuser("postgres");
    dba.batch_execute("SET statement_timeout = '90s'").unwrap();
    dba.batch_execute(statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
}

#[test]
fn a_busy_database_can_be_renamed_copied_and_dropped() {
    let shop = Shop::open();
    shop.job("note", clients::NOTE_ID, "");
    let others = clients::place(&shop, &[]);
    dba(&shop, "CREATE DATABASE d");
    clients::furnish(&shop.cluster, "d");
    let placing = clients::place_in(&shop.cluster, "d", &[]);
    clients::await_more_runs(&shop.cluster, "d");
    occupy(&shop, "d");
    let log = placing.stop();
    dba(&shop, "ALTER DATABASE d RENAME TO e");
    clients::await_more_runs(&shop.cluster, "e");
    hurry(&shop, "e");

    occupy(&shop, "e");
    let position = shop.cluster.log_position();
    dba(&shop, "CREATE DATABASE copy TEMPLATE e");
    hurry(&shop, "e");
    log.judge(&shop.cluster, "e");
    let left = "SELECT count(*) FROM awty.future_job WHERE entity_name = 'slow'";
    let (left, noted) = (shop.cluster.value::<i64>("copy", left), "SELECT count(*) FROM shop.note");
    let before: i64 = shop.cluster.value("copy", noted);
    shop.cluster.execute("copy", &["SELECT awty.pause('note'), awty.resume('note')"]);
    shop.cluster.await_log(&["awty maintainer", "WARNING", "\"copy\""], position);
    assert_eq!(shop.cluster.value::<i64>("copy", noted), before, "a copy that nobody has adopted runs something");
    shop.cluster.execute("copy", &["SELECT awty.adopt()"]);
    hurry(&shop, "copy");
    clients::await_all_done(&shop.cluster, "copy");
    assert!(left > 0 && shop.cluster.value::<i64>("copy", noted) >= before + left);
    clients::judge_effects(&shop.cluster, "copy");

    occupy(&shop, "copy");
    dba(&shop, "DROP DATABASE copy");
    let placing = clients::place_in(&shop.cluster, "e", &["57P01"]);
    occupy(&shop, "e");
    dba(&shop, "DROP DATABASE e WITH (FORCE)");
    drop::<clients::Log>(placing.stop());

    dba(&shop, "CREATE DATABASE d");
    clients::furnish(&shop.cluster, "d");
    let placing = clients::place_in(&shop.cluster, "d", &[]);
    clients::await_more_runs(&shop.cluster, "d");
    placing.stop().judge(&shop.cluster, "d");
    clients::await_more_runs(&shop.cluster, "postgres");
    others.judge(&shop);
    let log = shop.cluster.log_since(0);
    assert!(!log.contains("deadlock detected") && !log.contains("PANIC"), "{log}");
}
