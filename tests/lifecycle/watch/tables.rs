//! What is done to a watched table, and what is left when the watch is over.

use super::{LATE, ORDERS, await_state, expect, refusal, state, watched};
use crate::shop::Shop;

fn dump(shop: &Shop) -> String {
    let output = shop.cluster.tool("pg_dump").args(["--schema-only", "-n", "shop", "-d", "postgres"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter(|line| !line.contains("restrict")).collect::<Vec<_>>().join("\n")
}

/// Table, column and schema may be renamed; `entity_name` stays as it was.
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

/// PostgreSQL refuses what would break the rule, and names its function.
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

/// DROP TABLE needs no CASCADE; checks end as `done`, and an inspection ends the rule.
#[test]
fn a_dropped_table_ends_its_rule() {
    let shop = watched("escalate => '{1 day}'");
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, {LATE}), (2, now() - interval '3 hours' + interval '2 s')"));
    await_state(&shop, "late 1:1; pending 1 2");
    shop.run("DROP TABLE shop.orders");
    shop.job("wake", crate::shop::NOTE, "");
    shop.await_true(
        "the rule to end",
        "SELECT NOT EXISTS (SELECT FROM awty.rule) AND NOT EXISTS (SELECT FROM awty.job WHERE name = 'orders')",
    );
    assert_eq!(state(&shop), "late -; pending -");
    shop.run(ORDERS);
    super::watch(&shop, "");
    expect(&shop, "INSERT INTO shop.orders (id) VALUES (1)", "late -; pending 1");
}

/// What `unwatch` leaves is what was there before `watch`, and a refused `watch` leaves nothing.
#[test]
fn nothing_is_left_of_a_watch() {
    let shop = Shop::open();
    shop.run(ORDERS);
    shop.run("CREATE VIEW shop.v AS TABLE shop.orders; CREATE TABLE shop.keyless (a integer); CREATE FUNCTION shop.tell(a integer) RETURNS void LANGUAGE sql AS ''");
    let before = dump(&shop);
    let objects = "SELECT concat_ws(' ', (SELECT count(*) FROM pg_proc), (SELECT count(*) FROM pg_trigger), (SELECT count(*) FROM pg_depend WHERE deptype = 'a'),
         (SELECT count(*) FROM awty.rule), (SELECT count(*) FROM awty.job), (SELECT count(*) FROM awty.future_job))";
    let count: String = shop.cluster.value("postgres", objects);
    let until = "until => $$status <> 'UNSHIPPED'$$, within => '3 hours'";
    for (arguments, code) in [
        (format!("'shop.v', {until}"), "42809"),
        ("'pg_class', until => 'true', within => '1 s'".into(), "42501"),
        ("'shop.keyless', until => 'true', within => '1 s'".into(), "42704"),
        ("'shop.orders', until => 'status', within => '1 s'".into(), "42804"),
        (format!("'shop.orders', since => 'id', {until}"), "42804"),
        ("'shop.orders', until => '(SELECT true)', within => '1 s'".into(), "0A000"),
        ("'shop.orders', until => 'count(*) > 1', within => '1 s'".into(), "0A000"),
        ("'shop.orders', until => 'row_number() OVER () > 1', within => '1 s'".into(), "0A000"),
        ("'shop.orders', until => 'generate_series(1, 2) > 1', within => '1 s'".into(), "0A000"),
        ("'shop.orders', until => '$1', within => '1 s'".into(), "0A000"),
        ("'shop.orders', until => 'xmin IS NULL', within => '1 s'".into(), "0A000"),
        ("'shop.orders', until => 'random() > 0.5', within => '1 s'".into(), "0A000"),
        ("'shop.orders', until => 'placed_at < now()', within => '1 s'".into(), "0A000"),
        ("'shop.orders', until => 'placed_at < CURRENT_DATE', within => '1 s'".into(), "0A000"),
        ("'shop.orders', until => $$age(placed_at) > '1 day'$$, within => '1 s'".into(), "0A000"),
        ("'shop.orders', until => 'true; DROP TABLE shop.orders', within => '1 s'".into(), "42601"),
        ("'shop.orders', until => 'true FROM shop.orders', within => '1 s'".into(), "0A000"),
        ("'shop.orders', until => 'status <', within => '1 s'".into(), "42601"),
        ("'shop.orders', until => 'statos IS NULL', within => '1 s'".into(), "42703"),
        ("'shop.orders', until => 'true', within => '0'".into(), "22023"),
        (format!("'shop.orders', escalate => '{{3 hours}}', {until}"), "22023"),
        (format!("'shop.orders', rule => repeat('x', 64), {until}"), "22023"),
        (format!("'shop.orders', call => 'shop.tell', {until}"), "42883"),
        (format!("'shop.orders', existing => 'some', {until}"), "22023"),
        (format!("'shop.orders', run_as => 'postgres', {until}"), "42501"),
    ] {
        let (found, text) = refusal(&shop, "shop", &format!("SELECT awty.watch({arguments})"));
        assert_eq!(found, code, "{arguments}: {text}");
        assert_eq!(shop.cluster.value::<String>("postgres", objects), count, "after {arguments}");
    }
    shop.job("taken", crate::shop::NOTE, "");
    assert_eq!(
        refusal(&shop, "shop", &format!("SELECT awty.watch('shop.orders', rule => 'taken', {until})")).0,
        "42710"
    );
    shop.run("SELECT awty.unregister('taken'); DROP FUNCTION shop.taken");
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
