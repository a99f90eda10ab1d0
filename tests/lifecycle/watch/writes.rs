use super::{LATE, ORDERS, await_state, await_walked, expect, state, watched};
use awty_testkit::fixture::Shop;
use std::io::Write;

#[test]
fn every_kind_of_insert_is_watched() {
    let shop = watched("");
    expect(
        &shop,
        "INSERT INTO shop.orders VALUES (1, now(), DEFAULT), (2, now(), 'SHIPPED'), (3, NULL, DEFAULT), (4, 'infinity', DEFAULT)",
        "late -; pending 1",
    );
    let mut client = shop.client();
    let mut copy = client.copy_in("COPY shop.orders (id) FROM STDIN").unwrap();
    copy.write_all(b"5\n6\n").unwrap();
    copy.finish().unwrap();
    assert_eq!(state(&shop), "late -; pending 1 5 6");
    expect(
        &shop,
        "MERGE INTO shop.orders AS o USING (VALUES (5), (7)) AS n (id) ON o.id = n.id
         WHEN MATCHED THEN UPDATE SET status = 'SHIPPED' WHEN NOT MATCHED THEN INSERT (id) VALUES (n.id)",
        "late -; pending 1 6 7",
    );
    expect(
        &shop,
        "INSERT INTO shop.orders (id) VALUES (7), (8) ON CONFLICT (id) DO UPDATE SET status = 'SHIPPED'",
        "late -; pending 1 6 8",
    );
    expect(&shop, "INSERT INTO shop.orders (id) VALUES (8) ON CONFLICT DO NOTHING", "late -; pending 1 6 8");
    expect(
        &shop,
        "WITH gone AS (DELETE FROM shop.orders WHERE id = 8 RETURNING *) INSERT INTO shop.orders SELECT 9, placed_at FROM gone",
        "late -; pending 1 6 9",
    );
    shop.run(&format!("INSERT INTO shop.orders VALUES (10, {LATE}), (11, '-infinity')"));
    await_state(&shop, "late 10:1 11:1; pending 1 6 9");
    let slots: bool = shop.cluster.value(
        "postgres",
        "SELECT bool_and(f.next_check_at = awty.next_slot(o.placed_at + interval '3 hours')) FROM awty.future_job AS f
         JOIN shop.orders AS o ON o.id::text = f.entity_key",
    );
    assert!(slots);
    let due: bool = shop.cluster.value(
        "postgres",
        "SELECT bool_and(CASE entity_key WHEN '11' THEN since = '-infinity' AND due_at = '-infinity'
             ELSE due_at = since + interval '3 hours' END) FROM awty.alert",
    );
    assert!(due);
}

#[test]
fn an_alert_is_cleared_in_the_transaction_of_the_write() {
    let shop = watched("escalate => '{1 day}'");
    shop.run(&format!("INSERT INTO shop.orders SELECT n, {LATE} FROM generate_series(1, 3) AS n"));
    await_state(&shop, "late 1:1 2:1 3:1; pending 1 2 3");
    for (write, left) in
        [("UPDATE shop.orders SET status = 'SHIPPED' WHERE id = 1", 2), ("DELETE FROM shop.orders WHERE id < 3", 1)]
    {
        let mut client = shop.client();
        client.batch_execute(&format!("BEGIN; {write}")).unwrap();
        let sql = "SELECT count(*) FROM awty.alert WHERE cleared_at IS NULL";
        assert_eq!(client.query_one(sql, &[]).unwrap().get::<_, i64>(0), left, "{write}");
        client.batch_execute("ROLLBACK").unwrap();
        assert_eq!(state(&shop), "late 1:1 2:1 3:1; pending 1 2 3");
    }
    expect(
        &shop,
        "BEGIN; SAVEPOINT s; DELETE FROM shop.orders; ROLLBACK TO s; UPDATE shop.orders SET note = 'x'; COMMIT",
        "late 1:1 2:1 3:1; pending 1 2 3",
    );
    expect(&shop, "UPDATE shop.orders SET status = 'SHIPPED' WHERE id = 1", "late 2:1 3:1; pending 2 3");
    expect(&shop, "DELETE FROM shop.orders WHERE id = 2", "late 3:1; pending 3");
    shop.run("UPDATE shop.orders SET status = 'UNSHIPPED' WHERE id = 1");
    await_state(&shop, "late 1:1 3:1; pending 1 3");
    let count: i64 = shop.cluster.value("postgres", "SELECT count(*) FROM awty.alert WHERE entity_key = '1'");
    assert_eq!(count, 2);
    expect(&shop, "TRUNCATE shop.orders", "late -; pending -");
    expect(&shop, "INSERT INTO shop.orders (id) VALUES (1)", "late -; pending 1");
}

#[test]
fn without_since_the_clock_starts_when_the_row_appears() {
    let shop = Shop::on(awty_testkit::Cluster::builder().with_movable_clock().start());
    shop.run(ORDERS);
    shop.run("SELECT awty.watch('shop.orders', until => $$status <> 'UNSHIPPED'$$, within => '1 hour')");
    shop.run("INSERT INTO shop.orders (id) VALUES (1), (2)");
    let slot = shop.slot_of("1");
    shop.pass(slot);
    await_state(&shop, "late 1:1 2:1; pending -");
    let early: i64 = shop.cluster.value(
        "postgres",
        "SELECT count(*) FROM awty.alert WHERE raised_at < due_at OR due_at <> since + interval '1 hour'",
    );
    assert_eq!(early, 0);
    expect(&shop, "UPDATE shop.orders SET status = 'SHIPPED' WHERE id = 1", "late 2:1; pending -");
    expect(&shop, "UPDATE shop.orders SET status = 'UNSHIPPED' WHERE id = 1", "late 2:1; pending 1");
    assert!(shop.slot_of("1") > slot);
    shop.pass(shop.slot_of("1"));
    await_state(&shop, "late 1:1 2:1; pending -");
}

#[test]
fn another_since_moves_the_check() {
    let shop = watched("escalate => '{1 day}'");
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, now()), (2, {LATE}), (3, {LATE}), (4, {LATE})"));
    await_state(&shop, "late 2:1 3:1 4:1; pending 1 2 3 4");
    let before = shop.slot_of("1");
    expect(
        &shop,
        "UPDATE shop.orders SET placed_at = placed_at + interval '1 hour' WHERE id = 1",
        "late 2:1 3:1 4:1; pending 1 2 3 4",
    );
    assert_eq!(shop.slot_of("1"), before + chrono::TimeDelta::hours(1));
    expect(&shop, "UPDATE shop.orders SET placed_at = now() WHERE id = 2", "late 3:1 4:1; pending 1 2 3 4");
    expect(&shop, "UPDATE shop.orders SET placed_at = NULL WHERE id = 3", "late 4:1; pending 1 2 4");
    expect(&shop, "UPDATE shop.orders SET placed_at = 'infinity' WHERE id = 1", "late 4:1; pending 2 4");
    expect(
        &shop,
        "UPDATE shop.orders SET placed_at = placed_at - interval '1 hour' WHERE id = 4",
        "late 4:1; pending 2 4",
    );
    let follows: bool = shop.cluster.value(
        "postgres",
        "SELECT a.since = o.placed_at AND a.due_at = o.placed_at + interval '3 hours' FROM awty.alert AS a
         JOIN shop.orders AS o ON o.id::text = a.entity_key WHERE a.cleared_at IS NULL",
    );
    assert!(follows);
    shop.run(&format!("UPDATE shop.orders SET placed_at = {LATE} WHERE id = 2"));
    await_state(&shop, "late 2:1 4:1; pending 2 4");
}

#[test]
fn a_row_is_watched_under_its_new_key() {
    let shop = Shop::open();
    shop.run(&ORDERS.replace("PRIMARY KEY", "PRIMARY KEY DEFERRABLE"));
    super::watch(&shop, "escalate => '{1 day}'");
    shop.run(&format!(
        "INSERT INTO shop.orders VALUES (1, {LATE}, DEFAULT), (2, now(), DEFAULT), (3, {LATE}, 'SHIPPED')"
    ));
    await_state(&shop, "late 1:1; pending 1 2");
    shop.run("UPDATE shop.orders SET id = 10 WHERE id = 1");
    await_state(&shop, "late 10:1; pending 10 2");
    expect(
        &shop,
        "UPDATE shop.orders SET id = CASE id WHEN 2 THEN 3 ELSE 2 END WHERE id IN (2, 3)",
        "late 10:1; pending 10 3",
    );
    shop.run("UPDATE shop.orders SET id = CASE id WHEN 3 THEN 10 ELSE 3 END WHERE id IN (10, 3)");
    await_state(&shop, "late 3:1; pending 10 3");
    shop.run("BEGIN; SET CONSTRAINTS ALL DEFERRED; UPDATE shop.orders SET id = 10 WHERE id = 3; UPDATE shop.orders SET id = 3 WHERE id = 10 AND placed_at > now() - interval '1 hour'; COMMIT");
    await_state(&shop, "late 10:1; pending 10 3");
    // Pauses the job, because the check of the new key is already due and would run.
    expect(&shop, "SELECT awty.pause('orders'); UPDATE shop.orders SET id = id + 100", "late -; pending 103 110");
    shop.run("SELECT awty.resume('orders')");
    await_state(&shop, "late 110:1; pending 103 110");
}

#[test]
fn a_cascade_clears_and_cancels() {
    let shop = Shop::open();
    shop.run(ORDERS);
    shop.run(
        "CREATE TABLE shop.customer (id bigint PRIMARY KEY); INSERT INTO shop.customer VALUES (1), (2);
         ALTER TABLE shop.orders ADD customer bigint REFERENCES shop.customer ON DELETE CASCADE ON UPDATE CASCADE",
    );
    super::watch(&shop, "");
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, {LATE}, DEFAULT, '', 1), (2, now(), DEFAULT, '', 1), (3, now(), DEFAULT, '', 2)"));
    await_state(&shop, "late 1:1; pending 2 3");
    expect(&shop, "UPDATE shop.customer SET id = 3 WHERE id = 2", "late 1:1; pending 2 3");
    expect(&shop, "DELETE FROM shop.customer WHERE id = 1", "late -; pending 3");
    expect(&shop, "TRUNCATE shop.customer CASCADE", "late -; pending -");
}

#[test]
fn an_update_that_changes_nothing_relevant_calls_nothing() {
    let shop = watched("");
    await_walked(&shop);
    shop.run("INSERT INTO shop.orders (id) VALUES (1)");
    let explain = |set: &str| {
        let mut client = shop.client();
        let sql = format!("EXPLAIN (ANALYZE, COSTS off) UPDATE shop.orders SET {set} WHERE id = 1");
        client.query(&sql, &[]).unwrap().iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>().join("\n")
    };
    for set in ["note = 'x'", "status = 'UNSHIPPED'", "id = 1", "placed_at = placed_at"] {
        assert!(!explain(set).contains("Trigger"), "{set}: {}", explain(set));
    }
    let relevant = explain("status = 'SHIPPED'");
    assert!(relevant.contains("Trigger awty_orders_update") && relevant.contains("calls=1"), "{relevant}");
    assert!(!explain("placed_at = now()").contains("Trigger"), "it is there");
}

#[test]
fn an_error_fails_the_write_and_the_horizon_does_not() {
    let shop = Shop::open();
    shop.run(ORDERS);
    shop.run("SELECT awty.watch('shop.orders', since => $$(note::json ->> 'at')::timestamp AT TIME ZONE 'UTC'$$, until => '1 / (id - 7) > 1', within => '3 hours')");
    assert_eq!(super::refusal(&shop, "shop", "INSERT INTO shop.orders (id) VALUES (7)").0, "22012");
    assert_eq!(super::refusal(&shop, "shop", "INSERT INTO shop.orders (id, note) VALUES (8, 'x')").0, "22P02");
    expect(&shop, "INSERT INTO shop.orders (id, note) VALUES (9, '{\"at\": \"9999-01-01\"}')", "late -; pending 9");
    let horizon: bool = shop.cluster.value(
        "postgres",
        "SELECT f.next_check_at BETWEEN now() + j.max_horizon - interval '1 min' AND now() + j.max_horizon
         FROM awty.future_job AS f JOIN awty.job AS j ON j.job = f.job WHERE entity_key = '9'",
    );
    assert!(horizon, "{}", shop.pending("9"));
}
