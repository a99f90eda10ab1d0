//! After a change of a rule, a session that has written to the watched table must use the new rule.

use super::{ORDERS, await_walked, state, watch, watched};
use awty_testkit::fixture::Shop;
use awty_testkit::postgres::Client;

fn due(shop: &Shop, key: &str) -> String {
    shop.cluster.value(
        "postgres",
        &format!(
            "SELECT coalesce((SELECT round(extract(epoch FROM next_check_at - now()) / 3600) || ' ' || job FROM awty.future_job
             WHERE entity_key = '{key}'), '-')"
        ),
    )
}

fn client(shop: &Shop) -> Client {
    let mut client = shop.cluster.client("postgres", "shop");
    client.batch_execute("INSERT INTO shop.orders (id) VALUES (1)").unwrap();
    assert_eq!(due(shop, "1"), "3 orders");
    client
}

#[track_caller]
fn insert(client: &mut Client, script: &str) {
    client.batch_execute(script).unwrap_or_else(|error| panic!("{script}: {error}"));
}

#[test]
fn what_another_session_changes() {
    let shop = watched("");
    let mut client = client(&shop);
    let again = "SELECT awty.watch('shop.orders', since => 'placed_at', until => $$status <> 'UNSHIPPED'$$, within => '5 hours', replace => true)";
    shop.run(again);
    await_walked(&shop);
    insert(&mut client, "INSERT INTO shop.orders (id) VALUES (2)");
    assert_eq!(due(&shop, "2"), "5 orders", "after replace");
    shop.cluster.execute("postgres", &["UPDATE awty.rule SET within = '7 hours'"]);
    insert(&mut client, "INSERT INTO shop.orders (id) VALUES (3)");
    assert_eq!(due(&shop, "3"), "7 orders", "after an administrator's UPDATE");
    shop.run("ALTER TABLE shop.orders RENAME id TO nr; ALTER TABLE shop.orders RENAME TO bought");
    insert(&mut client, "INSERT INTO shop.bought (nr) VALUES (4); UPDATE shop.bought SET status = 'x' WHERE nr = 3");
    assert_eq!(state(&shop), "late -; pending 1 2 4", "after renames");
    shop.cluster.execute("postgres", &["ALTER SCHEMA shop RENAME TO laden"]);
    insert(&mut client, "INSERT INTO laden.bought (nr) VALUES (5); UPDATE laden.bought SET status = 'x' WHERE nr = 4");
    assert_eq!(state(&shop), "late -; pending 1 2 5", "after the schema's rename");
    shop.run("ALTER TABLE laden.bought DROP CONSTRAINT orders_pkey, ADD PRIMARY KEY (nr, status)");
    insert(&mut client, "INSERT INTO laden.bought (nr) VALUES (6)");
    assert_eq!(state(&shop), "late -; pending 1 2 5", "after another key, which stops the rule");
    shop.run("SELECT awty.unwatch('orders')");
    insert(&mut client, "INSERT INTO laden.bought (nr) VALUES (7)");
    assert_eq!(state(&shop), "late -; pending -", "after unwatch");
}

#[test]
fn what_is_undone() {
    let shop = watched("");
    let mut client = client(&shop);
    let again = "SELECT awty.watch('shop.orders', since => 'placed_at', until => $$status <> 'UNSHIPPED'$$, within => '5 hours', replace => true)";
    insert(
        &mut client,
        &format!(
            "BEGIN; SAVEPOINT s; {again}; INSERT INTO shop.orders (id) VALUES (2); ROLLBACK TO s; INSERT INTO shop.orders (id) VALUES (3)"
        ),
    );
    insert(&mut client, "COMMIT");
    assert_eq!(due(&shop, "3"), "3 orders", "after a savepoint");
    insert(&mut client, &format!("BEGIN; {again}; INSERT INTO shop.orders (id) VALUES (4)"));
    insert(&mut client, "ROLLBACK; INSERT INTO shop.orders (id) VALUES (5)");
    assert_eq!(due(&shop, "5"), "3 orders", "after a transaction");
    insert(&mut client, &format!("BEGIN; {again}; INSERT INTO shop.orders (id) VALUES (6); COMMIT"));
    assert_eq!(due(&shop, "6"), "5 orders", "of the transaction's own");
}

#[test]
fn what_was_dropped_and_made_again() {
    let shop = watched("");
    let mut client = client(&shop);
    shop.cluster.execute("postgres", &["DROP EXTENSION awty CASCADE", "DROP TABLE shop.orders"]);
    shop.cluster.create_extension("postgres");
    shop.cluster.execute(
        "postgres",
        &["GRANT USAGE ON SCHEMA awty TO shop", "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA awty TO shop"],
    );
    shop.run(ORDERS);
    watch(&shop, "");
    insert(&mut client, "INSERT INTO shop.orders (id) VALUES (2)");
    assert_eq!(state(&shop), "late -; pending 2");
}

#[test]
fn a_transaction_that_is_older_than_the_rule() {
    let shop = Shop::open();
    shop.run(ORDERS);
    let mut client = shop.cluster.client("postgres", "shop");
    insert(&mut client, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM shop.orders");
    watch(&shop, "");
    insert(&mut client, "INSERT INTO shop.orders (id) VALUES (1); COMMIT");
    assert_eq!(state(&shop), "late -; pending 1");
}

#[test]
fn settings_that_a_condition_goes_by() {
    let shop = Shop::open();
    shop.run("CREATE TABLE shop.paid (id bigint PRIMARY KEY, day date, sum float8)");
    for until in
        ["day::text = '2026-01-31' AND sum::text = '0.1'", "pg_catalog.textin(pg_catalog.float8out(sum)) = '0.1'"]
    {
        shop.run(&format!("SELECT awty.watch('shop.paid', until => $${until}$$, within => '3 hours')"));
        await_walked(&shop);
        let mut client = shop.cluster.client("postgres", "shop");
        insert(
            &mut client,
            "SET DateStyle = 'German'; SET extra_float_digits = -8; INSERT INTO shop.paid VALUES (1, '2026-01-31', 0.1)",
        );
        insert(&mut client, "INSERT INTO shop.paid VALUES (2, '2026-01-31', 0.1000000001)");
        assert_eq!(state(&shop), "late -; pending 2", "{until}");
        shop.run("SELECT awty.unwatch('paid'); DELETE FROM shop.paid");
    }
}
