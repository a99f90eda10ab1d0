use super::migrations::{await_why, is_well};
use super::{LATE, await_state, await_walked, expect, refusal};
use awty_testkit::fixture::Shop;

#[test]
fn rows_of_partitions_are_watched() {
    let shop = Shop::open();
    shop.run(
        "CREATE TABLE shop.orders (id bigint, region text, at timestamptz, there boolean NOT NULL DEFAULT false, PRIMARY KEY (region, id)) PARTITION BY LIST (region);
         CREATE TABLE shop.north PARTITION OF shop.orders FOR VALUES IN ('n');
         CREATE TABLE shop.south (gone text, there boolean NOT NULL DEFAULT false, at timestamptz, region text NOT NULL, id bigint NOT NULL, PRIMARY KEY (region, id));
         ALTER TABLE shop.south DROP gone;
         ALTER TABLE shop.orders ATTACH PARTITION shop.south FOR VALUES IN ('s')",
    );
    let without = "SELECT awty.watch('shop.orders', until => 'there', within => '3 hours')";
    assert_eq!(refusal(&shop, "shop", without).0, "22023");
    shop.run("SELECT awty.watch('shop.orders', until => 'there', since => 'at', within => '3 hours')");
    shop.run(&format!(
        "INSERT INTO shop.orders VALUES (1, 'n', {LATE}, false), (2, 's', now(), false), (3, 's', {LATE}, true)"
    ));
    await_state(&shop, r#"late ["n", "1"]:1; pending ["s", "2"]"#);
    shop.run(&format!("INSERT INTO shop.south (id, region, at) VALUES (4, 's', {LATE})"));
    shop.run(&format!(
        "CREATE TABLE shop.east PARTITION OF shop.orders FOR VALUES IN ('e') PARTITION BY RANGE (id);
              CREATE TABLE shop.east_1 PARTITION OF shop.east DEFAULT; INSERT INTO shop.east VALUES (5, 'e', {LATE})"
    ));
    await_state(&shop, r#"late ["e", "5"]:1 ["n", "1"]:1 ["s", "4"]:1; pending ["s", "2"]"#);
    shop.run("UPDATE shop.orders SET region = 's' WHERE id = 1; UPDATE shop.orders SET region = 'n' WHERE id = 2");
    await_state(&shop, r#"late ["e", "5"]:1 ["s", "1"]:1 ["s", "4"]:1; pending ["n", "2"]"#);
    expect(
        &shop,
        "UPDATE shop.south SET there = true WHERE id = 4",
        r#"late ["e", "5"]:1 ["s", "1"]:1; pending ["n", "2"]"#,
    );
    expect(
        &shop,
        "UPDATE shop.orders SET there = true, region = 'n' WHERE id = 1",
        r#"late ["e", "5"]:1; pending ["n", "2"]"#,
    );
    expect(&shop, "DELETE FROM shop.orders WHERE id = 5", r#"late -; pending ["n", "2"]"#);
    shop.run("SELECT awty.watch('shop.orders', until => 'there', since => 'at', within => '2 hours', existing => 'all', replace => true)");
    super::await_walked(&shop);
    shop.run("SELECT awty.unwatch('orders')");
    let left: i64 = shop.cluster.value("postgres", "SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'awty%'");
    assert_eq!(left, 0);
    expect(&shop, "INSERT INTO shop.orders VALUES (9, 'n', now())", "late -; pending -");
}

#[test]
fn one_partition_can_be_watched_alone() {
    let shop = Shop::open();
    shop.run(
        "CREATE TABLE shop.orders (id bigint PRIMARY KEY, at timestamptz, there boolean NOT NULL DEFAULT false) PARTITION BY RANGE (id);
         CREATE TABLE shop.low PARTITION OF shop.orders FOR VALUES FROM (0) TO (100);
         CREATE TABLE shop.high PARTITION OF shop.orders FOR VALUES FROM (100) TO (200);
         SELECT awty.watch('shop.high', until => 'there', since => 'at', within => '3 hours')",
    );
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, {LATE}), (101, {LATE}), (102, now())"));
    await_state(&shop, "late 101:1; pending 102");
    expect(&shop, "UPDATE shop.orders SET id = id - 100 WHERE id = 102", "late 101:1; pending -");
    expect(&shop, "TRUNCATE shop.low", "late 101:1; pending -");
    expect(&shop, "TRUNCATE shop.orders", "late -; pending -");
}

#[test]
fn truncate_of_a_partition_clears_its_rows_alone() {
    let shop = Shop::open();
    shop.run(
        "CREATE TABLE shop.orders (id bigint PRIMARY KEY, at timestamptz, there boolean NOT NULL DEFAULT false) PARTITION BY RANGE (id);
         CREATE TABLE shop.low PARTITION OF shop.orders FOR VALUES FROM (0) TO (100);
         CREATE TABLE shop.high PARTITION OF shop.orders FOR VALUES FROM (100) TO (200);
         SELECT awty.watch('shop.orders', until => 'there', since => 'at', within => '3 hours')",
    );
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, {LATE}), (2, now()), (101, {LATE}), (102, now())"));
    await_state(&shop, "late 1:1 101:1; pending 102 2");
    shop.run("TRUNCATE shop.orders");
    await_state(&shop, "late -; pending -");
}

const BY_RANGE: &str = "CREATE TABLE shop.orders (id bigint PRIMARY KEY, other bigint, at timestamptz, there boolean NOT NULL DEFAULT false) PARTITION BY RANGE (id);
    CREATE TABLE shop.low PARTITION OF shop.orders FOR VALUES FROM (0) TO (100)";
const WATCH: &str =
    "SELECT awty.watch('shop.orders', until => 'there', since => 'at', within => '3 hours', existing => 'all')";

/// An INSERT into the parent fires only the row triggers of a partition.
#[test]
fn a_watched_table_that_becomes_a_partition_stops_loudly() {
    let shop = Shop::open();
    shop.run(&format!("CREATE TABLE shop.orders (id bigint PRIMARY KEY, at timestamptz, there boolean NOT NULL DEFAULT false); {WATCH}"));
    await_walked(&shop);
    shop.run(
        "CREATE TABLE shop.every (LIKE shop.orders INCLUDING ALL) PARTITION BY RANGE (id);
              ALTER TABLE shop.every ATTACH PARTITION shop.orders FOR VALUES FROM (0) TO (100)",
    );
    shop.run(&format!("INSERT INTO shop.every VALUES (1, {LATE})"));
    await_why(&shop, "table shop.orders has become a partition", "SELECT awty.watch('shop.orders'");
    shop.run(WATCH);
    is_well(&shop);
    shop.run(&format!("INSERT INTO shop.every VALUES (2, {LATE})"));
    await_state(&shop, "late 1:1 2:1; pending -");
    shop.run("ALTER TABLE shop.every DETACH PARTITION shop.orders");
    is_well(&shop);
    shop.run(&format!("INSERT INTO shop.orders VALUES (3, {LATE})"));
    await_state(&shop, "late 1:1 2:1 3:1; pending -");
}

#[test]
fn a_trigger_that_is_disabled_in_one_partition_is_named() {
    let shop = Shop::open();
    shop.run(&format!("{BY_RANGE}; {WATCH}"));
    await_walked(&shop);
    for disabled in
        ["shop.low DISABLE TRIGGER awty_orders_insert", "shop.orders ENABLE REPLICA TRIGGER awty_orders_insert"]
    {
        shop.run(&format!("ALTER TABLE {disabled}"));
        let fix = "ALTER TABLE shop.orders ENABLE TRIGGER awty_orders_insert;";
        await_why(&shop, "its triggers on table shop.orders are disabled", fix);
        shop.run(fix);
        is_well(&shop);
    }
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, 1, {LATE})"));
    await_state(&shop, "late 1:1; pending -");
}

/// PostgreSQL attaches a partition with another primary key, if the columns of the table's key are unique there. Later
/// versions refuse to.
#[test]
fn a_partition_may_have_a_primary_key_of_its_own() {
    let shop = Shop::open();
    shop.run(&format!(
        "{BY_RANGE}; CREATE TABLE shop.high (there boolean NOT NULL DEFAULT false, other bigint PRIMARY KEY, at timestamptz, id bigint NOT NULL UNIQUE)"
    ));
    let attach = "ALTER TABLE shop.orders ATTACH PARTITION shop.high FOR VALUES FROM (100) TO (200)";
    if let Err(refused) = shop.client().batch_execute(attach) {
        let code = refused.code().map_or("", |code| code.code());
        let version: i32 = shop.cluster.value("postgres", "SELECT current_setting('server_version_num')::int");
        assert!(code == "42P16" && version >= 160_000, "{refused}");
        return;
    }
    shop.run(WATCH);
    await_walked(&shop);
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, 101, {LATE}), (101, 1, {LATE})"));
    await_state(&shop, "late 1:1 101:1; pending -");
    expect(&shop, "UPDATE shop.orders SET there = true WHERE id = 101", "late 1:1; pending -");
    expect(&shop, "UPDATE shop.orders SET id = 102, there = false WHERE id = 101", "late 1:1; pending 102");
}

#[test]
fn a_write_of_one_partition_locks_no_other() {
    let shop = Shop::open();
    shop.run(&format!(
        "{BY_RANGE}; CREATE TABLE shop.high PARTITION OF shop.orders FOR VALUES FROM (100) TO (200); {WATCH}"
    ));
    await_walked(&shop);
    let (mut holder, mut writer) = (shop.client(), shop.client());
    holder.batch_execute("BEGIN; LOCK TABLE shop.high").unwrap();
    writer.batch_execute("SET lock_timeout = '10s'").unwrap();
    for write in [
        "INSERT INTO shop.low VALUES (1, 1, now())",
        "UPDATE shop.low SET at = now() - interval '1 minute'",
        "DELETE FROM shop.low",
    ] {
        writer.batch_execute(write).unwrap();
    }
}
