use super::{LATE, await_state, await_walked, expect, refusal, state, watch, watched, watched_on};
use awty_testkit::Cluster;

#[test]
fn of_several_overdue_levels_only_the_highest_is_raised_and_told() {
    let shop = watched("escalate => '{200 min}'");
    shop.run(
        "CREATE TABLE shop.told (key text, level integer, told bigint, rose boolean);
         CREATE FUNCTION shop.tell(a awty.alert) RETURNS void LANGUAGE sql AS
             $$ INSERT INTO shop.told VALUES (a.entity_key, a.level, a.told, a.escalated_at IS NOT NULL) $$",
    );
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, {LATE})"));
    await_state(&shop, "late 1:2; pending -");
    watch(
        &shop,
        "escalate => '{200 min, 210 min, 230 min, 1 day}', call => 'shop.tell', existing => 'all', replace => true",
    );
    shop.run(&format!("INSERT INTO shop.orders VALUES (2, {LATE})"));
    await_state(&shop, "late 1:4 2:4; pending 1 2");
    let told = "SELECT string_agg(concat_ws(' ', key, level, told, rose), ', ' ORDER BY key, level) FROM shop.told";
    assert_eq!(shop.cluster.value::<String>("postgres", told), "1 4 2 t, 2 4 1 f");
    let due: bool = shop.cluster.value(
        "postgres",
        "SELECT bool_and(a.due_at = o.placed_at + interval '3 hours' AND f.next_check_at = awty.next_slot(o.placed_at + interval '1 day'))
         FROM awty.alert AS a JOIN shop.orders AS o ON o.id::text = a.entity_key JOIN awty.future_job AS f USING (entity_name, entity_key)",
    );
    assert!(due, "{:?}", shop.cluster.psql("postgres", "TABLE awty.future_job"));
}

#[test]
fn a_level_comes_when_it_is_due() {
    let shop = watched_on(Cluster::builder().with_movable_clock().start(), "escalate => '{5 hours}'");
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, {LATE})"));
    await_state(&shop, "late 1:1; pending 1");
    let slot: bool = shop.cluster.value(
        "postgres",
        "SELECT next_check_at = awty.next_slot(placed_at + interval '5 hours') FROM awty.future_job, shop.orders",
    );
    assert!(slot);
    shop.pass(shop.slot_of("1"));
    await_state(&shop, "late 1:2; pending -");
    let early: bool =
        shop.cluster.value("postgres", "SELECT escalated_at < since + interval '5 hours' FROM awty.alert");
    assert!(!early);
}

#[test]
fn a_check_that_is_asked_early_raises_nothing() {
    let shop = watched("");
    shop.run("INSERT INTO shop.orders (id) VALUES (1)");
    let slot = shop.slot_of("1");
    shop.run("SELECT awty.check_now('orders', 1)");
    shop.await_true("it to be asked", "SELECT check_count = 1 FROM awty.future_job WHERE entity_key = '1'");
    assert_eq!((shop.slot_of("1"), state(&shop)), (slot, "late -; pending 1".into()));
}

#[test]
fn a_row_is_silent_until_it_changes() {
    let shop = watched("escalate => '{1 day}'");
    shop.run(&format!("INSERT INTO shop.orders SELECT n, {LATE} FROM generate_series(1, 4) AS n"));
    await_state(&shop, "late 1:1 2:1 3:1 4:1; pending 1 2 3 4");
    let all = "late 1:1 2:1 3:1 4:1";
    expect(
        &shop,
        "SELECT awty.cancel('orders', 1); SELECT awty.cancel_many('orders', '{2,3}')",
        &format!("{all}; pending 1 2 3 4"),
    );
    expect(
        &shop,
        "SELECT awty.cancel('orders', 1, 'orders'); SELECT awty.cancel_many('orders', '{2,3}', 'orders')",
        &format!("{all}; pending 4"),
    );
    expect(
        &shop,
        "UPDATE shop.orders SET note = 'x', placed_at = placed_at, status = status",
        &format!("{all}; pending 4"),
    );
    expect(
        &shop,
        "UPDATE shop.orders SET placed_at = placed_at - interval '1 min' WHERE id = 1",
        &format!("{all}; pending 1 4"),
    );
    expect(&shop, "UPDATE shop.orders SET status = 'SHIPPED' WHERE id = 2", "late 1:1 3:1 4:1; pending 1 4");
    shop.run("UPDATE shop.orders SET status = 'UNSHIPPED' WHERE id = 2");
    await_state(&shop, "late 1:1 2:1 3:1 4:1; pending 1 2 4");
    shop.run("UPDATE shop.orders SET id = 30 WHERE id = 3");
    await_state(&shop, "late 1:1 2:1 30:1 4:1; pending 1 2 30 4");
}

#[test]
fn a_changed_rule_keeps_its_alerts() {
    let shop = watched("escalate => '{210 min}'");
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, {LATE}), (2, now()), (3, now() - interval '2 hours'), (4, now() - interval '2 hours')"));
    await_state(&shop, "late 1:2; pending 2 3 4");
    let before: String = shop.cluster.value("postgres", "SELECT xmin::text FROM awty.rule");
    watch(&shop, "escalate => '{210 min}'");
    assert_eq!(shop.cluster.value::<String>("postgres", "SELECT xmin::text FROM awty.rule"), before);
    let other = |within: &str, more: &str| {
        format!(
            "SELECT awty.watch('shop.orders', since => 'placed_at', until => $$status <> 'UNSHIPPED'$$, within => '{within}'{more})"
        )
    };
    assert_eq!(refusal(&shop, "shop", &other("1 hour", "")).0, "42710");
    let id: i64 = shop.cluster.value("postgres", "SELECT id FROM awty.alert");
    shop.run("SELECT awty.cancel('orders', 4, 'orders')");
    shop.run(&other("1 hour", ", escalate => '{210 min, 5 hours}', existing => 'all', replace => true"));
    await_state(&shop, "late 1:2 3:1; pending 1 2 3");
    await_walked(&shop);
    let moved: bool = shop.cluster.value(
        "postgres",
        "SELECT bool_and(f.next_check_at = awty.next_slot(o.placed_at + CASE o.id WHEN 1 THEN interval '5 hours' WHEN 2 THEN '1 hour' ELSE '210 min' END))
         FROM shop.orders AS o JOIN awty.future_job AS f ON f.entity_key = o.id::text AND NOT f.held",
    );
    assert!(moved, "{:?}", shop.cluster.psql("postgres", "TABLE awty.future_job"));
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT id FROM awty.alert WHERE entity_key = '1'"), id);
    shop.run(&other("5 hours", ", replace => true"));
    await_state(&shop, "late -; pending 1 2 3");
    shop.run("SELECT awty.watch('shop.orders', since => 'placed_at', until => $$status = 'PAID'$$, within => '3 hours', existing => 'all', replace => true)");
    await_state(&shop, "late 1:1; pending 2 3");
    expect(&shop, "UPDATE shop.orders SET status = 'SHIPPED' WHERE id < 3", "late 1:1; pending 2 3");
    expect(&shop, "UPDATE shop.orders SET status = 'PAID' WHERE id < 3", "late -; pending 3");
}

#[test]
fn two_rules_watch_one_table() {
    let shop = watched("");
    shop.run("SELECT awty.watch('shop.orders', rule => 'noted', until => 'note IS NOT NULL', since => 'placed_at', within => '1 hour')");
    await_walked(&shop);
    shop.run("INSERT INTO shop.orders VALUES (1, now() - interval '2 hours')");
    await_state(&shop, "late 1:1; pending 1");
    expect(&shop, "UPDATE shop.orders SET note = ''", "late -; pending 1");
    expect(&shop, "SELECT awty.unwatch('orders')", "late -; pending -");
    shop.run("UPDATE shop.orders SET note = NULL");
    await_state(&shop, "late 1:1; pending -");
    assert_eq!(refusal(&shop, "shop", "SELECT awty.unregister('noted')").0, "2BP01");
    assert_eq!(refusal(&shop, "shop", "SELECT awty.unwatch('orders')").0, "42704");
    expect(&shop, "SELECT awty.unwatch('noted')", "late -; pending -");
}
