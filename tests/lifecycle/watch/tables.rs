use super::{LATE, ORDERS, await_state, expect, refusal, state, watched};
use awty_testkit::fixture::Shop;

pub fn dump(shop: &Shop) -> String {
    let output = shop.cluster.tool("pg_dump").args(["--schema-only", "-n", "shop", "-d", "postgres"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter(|line| !line.contains("restrict")).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_watch_goes_on_after_renames() {
    let shop = watched("escalate => '{1 day}'");
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, {LATE})"));
    await_state(&shop, "late 1:1; pending 1");
    shop.run(
        "ALTER TABLE shop.orders RENAME TO \"Bestellung\"; ALTER TABLE shop.\"Bestellung\" RENAME id TO nr;
         ALTER TABLE shop.\"Bestellung\" RENAME status TO stand; ALTER TABLE shop.\"Bestellung\" RENAME placed_at TO wann",
    );
    shop.cluster.execute("postgres", &["ALTER SCHEMA shop RENAME TO laden"]);
    shop.run(&format!("INSERT INTO laden.\"Bestellung\" VALUES (2, {LATE})"));
    await_state(&shop, "late 1:1 2:1; pending 1 2");
    expect(&shop, "UPDATE laden.\"Bestellung\" SET stand = 'x' WHERE nr = 1", "late 2:1; pending 2");
    shop.cluster.execute("postgres", &["CREATE SCHEMA other AUTHORIZATION shop"]);
    expect(
        &shop,
        "ALTER TABLE laden.\"Bestellung\" SET SCHEMA other; INSERT INTO other.\"Bestellung\" VALUES (3)",
        "late 2:1; pending 2 3",
    );
    let names: i64 = shop.cluster.value("postgres", "SELECT count(*) FROM awty.alert WHERE entity_name = 'orders'");
    assert_eq!(names, 2);
    expect(&shop, "SELECT awty.unwatch('orders')", "late -; pending -");
    let left: i64 = shop.cluster.value("postgres", "SELECT count(*) FROM pg_proc WHERE proname LIKE 'awty\\_orders%'");
    assert_eq!(left, 0);
}

#[test]
fn columns_in_use_cannot_be_dropped_or_altered() {
    let shop = watched("");
    for (sql, code) in [
        ("ALTER TABLE shop.orders DROP status", "2BP01"),
        ("ALTER TABLE shop.orders DROP placed_at", "2BP01"),
        ("ALTER TABLE shop.orders ALTER status TYPE varchar(20)", "0A000"),
    ] {
        let (found, text) = refusal(&shop, "shop", sql);
        assert!(found == code && text.contains("awty_orders"), "{sql}: {found} {text}");
    }
    expect(
        &shop,
        "ALTER TABLE shop.orders DROP note, ADD extra text, ALTER extra SET DEFAULT 'x'; INSERT INTO shop.orders (id) VALUES (1)",
        "late -; pending 1",
    );
    expect(&shop, "UPDATE shop.orders SET status = 'SHIPPED'", "late -; pending -");
}

#[test]
fn a_dropped_table_ends_its_rule() {
    let shop = watched("escalate => '{1 day}'");
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, {LATE}), (2, now() - interval '3 hours' + interval '2 s')"));
    await_state(&shop, "late 1:1; pending 1 2");
    shop.run("DROP TABLE shop.orders");
    shop.job("wake", awty_testkit::fixture::NOTE, "");
    shop.await_true(
        "the rule to end",
        "SELECT NOT EXISTS (SELECT FROM awty.rule) AND NOT EXISTS (SELECT FROM awty.job WHERE job = 'orders')",
    );
    assert_eq!(state(&shop), "late -; pending -");
    shop.run(ORDERS);
    super::watch(&shop, "");
    expect(&shop, "INSERT INTO shop.orders (id) VALUES (1)", "late -; pending 1");
}

#[test]
fn nothing_is_left_of_a_watch() {
    let shop = Shop::open();
    shop.run(ORDERS);
    let before = dump(&shop);
    let until = "until => $$status <> 'UNSHIPPED'$$, within => '3 hours'";
    let long = "ä".repeat(31);
    shop.run(&format!("SELECT awty.watch('shop.orders', rule => '{long}', since => 'placed_at', {until}); SELECT awty.watch('shop.orders', rule => '{long}x', since => 'placed_at', {until});
        INSERT INTO shop.orders VALUES (1, {LATE})"));
    await_state(&shop, "late 1:1 1:1; pending -");
    expect(
        &shop,
        &format!(
            "SELECT awty.unwatch('{long}'), awty.unwatch('{long}x'); SELECT awty.watch('shop.orders', since => 'placed_at', {until}); SELECT awty.unwatch('orders')"
        ),
        "late -; pending -",
    );
    assert_eq!(dump(&shop), before);
}
