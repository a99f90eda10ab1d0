use super::{LATE, await_state, await_state_in, state, state_in, watched};
use crate::dump::{dump, restore};

const PICTURE: &str =
    "SELECT concat_ws(E'\\n', (SELECT string_agg((to_jsonb(r) - 'swept_at')::text, ' ') FROM awty.rule AS r),
    (SELECT string_agg(a::text, ' ' ORDER BY id) FROM awty.alert AS a),
    (SELECT string_agg(pg_get_triggerdef(oid), ' ' ORDER BY tgname) FROM pg_trigger WHERE tgname LIKE 'awty%'))";

#[test]
fn a_restored_rule_goes_on_once_it_is_adopted() {
    let shop = watched("escalate => '{1 day}'");
    shop.run(&format!("INSERT INTO shop.orders SELECT n, {LATE} FROM generate_series(1, 3) AS n"));
    await_state(&shop, "late 1:1 2:1 3:1; pending 1 2 3");
    shop.await_workers_gone();
    let script = dump(&shop.cluster, &[]);
    shop.cluster.execute("postgres", &["CREATE DATABASE copy"]);
    restore(&shop.cluster, "copy", &script);
    let [here, there] = ["postgres", "copy"].map(|database| shop.cluster.value::<String>(database, PICTURE));
    assert_eq!(here, there);
    let mut client = shop.cluster.client("copy", "shop");
    client
        .batch_execute(&format!(
            "INSERT INTO shop.orders VALUES (4, {LATE}); UPDATE shop.orders SET status = 'SHIPPED' WHERE id = 1"
        ))
        .unwrap();
    assert_eq!(state_in(&shop, "copy",), "late 2:1 3:1; pending 2 3 4");
    shop.cluster.execute("copy", &["SET session_replication_role = replica; DELETE FROM shop.orders WHERE id = 2"]);
    shop.cluster.execute("copy", &["SELECT awty.adopt()"]);
    await_state_in(&shop, "copy", "late 3:1 4:1; pending 2 3 4");
    // A dump omits the dependency of the rule's functions on the table. An inspection restores this dependency.
    client.batch_execute("DROP TABLE shop.orders; CREATE FUNCTION shop.wake() RETURNS void LANGUAGE sql AS ''; SELECT awty.register('wake', 'shop.wake')").unwrap();
    let over = "SELECT NOT EXISTS (SELECT FROM awty.rule) AND NOT EXISTS (SELECT FROM awty.job WHERE job = 'orders')
        AND NOT EXISTS (SELECT FROM awty.alert WHERE cleared_at IS NULL) AND NOT EXISTS (SELECT FROM pg_proc WHERE proname LIKE 'awty\\_orders%')";
    shop.cluster.await_sql("copy", "the restored rule to end with its table", over);
    assert_eq!(state(&shop), "late 1:1 2:1 3:1; pending 1 2 3");
}

#[test]
fn writes_are_watched_without_the_library() {
    let mut shop = watched("");
    shop.run(&format!("INSERT INTO shop.orders SELECT n, {LATE} FROM generate_series(1, 2) AS n"));
    await_state(&shop, "late 1:1 2:1; pending -");
    shop.cluster.configure("shared_preload_libraries = ''");
    shop.cluster.restart();
    let script = format!(
        "INSERT INTO shop.orders VALUES (3, {LATE}); INSERT INTO shop.orders VALUES (4, now());
        UPDATE shop.orders SET status = 'SHIPPED' WHERE id IN (1, 4); DELETE FROM shop.orders WHERE id = 2"
    );
    let mut psql = shop.cluster.tool("psql");
    let output =
        psql.args(["-XAtq", "-U", "shop", "-d", "postgres", "-v", "ON_ERROR_STOP=1", "-c", &script]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.matches("WARNING:").count() == 1, "{said}");
    assert_eq!(state(&shop), "late -; pending 3");
    let refused = super::refusal(
        &shop,
        "shop",
        "SELECT awty.watch('shop.orders', rule => 'x', since => 'placed_at', until => 'true', within => '1 s')",
    );
    assert_eq!(refused.0, "55000");
    shop.cluster.configure("shared_preload_libraries = 'awty'");
    shop.cluster.restart();
    await_state(&shop, "late 3:1; pending -");
}

#[test]
fn a_restored_rule_keeps_its_deadlines() {
    let shop = watched("");
    shop.run(
        "SELECT awty.create_calendar('always', '{mon-sun 00:00-24:00}', 'UTC', '{2020-01-01}');
         CREATE TABLE shop.told (key text, level integer);
         CREATE FUNCTION shop.tell(a awty.alert) RETURNS void LANGUAGE sql AS $$ INSERT INTO shop.told VALUES (a.entity_key, a.level) $$",
    );
    super::watch(
        &shop,
        "calendar => 'always', remind => '{1 hour, 30 min}', every => '1 day', stopped => 'id = 3', call => 'shop.tell',
         call_cleared => 'shop.tell', replace => true",
    );
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, {LATE}), (2, now()), (3, now())"));
    await_state(&shop, "late 1:1; pending 1 2 3");
    let end = shop.ahead(
        3,
        "SELECT awty.hold('orders', 1, 'orders', note => 'Anna', held_until => {first}); SELECT awty.hold('orders', 2, 'orders', note => 'Ben',
             held_until => now() + interval '1 h')",
    );
    let script = dump(&shop.cluster, &[]);
    shop.cluster.execute("postgres", &["CREATE DATABASE copy"]);
    restore(&shop.cluster, "copy", &script);
    let stored = "SELECT concat_ws(E'\\n', (SELECT string_agg((to_jsonb(r) - 'swept_at')::text, ' ') FROM awty.rule AS r),
        (SELECT string_agg(a::text, ' ' ORDER BY id) FROM awty.alert AS a WHERE entity_key = '2'), (SELECT string_agg(c::text, ' ') FROM awty.calendar AS c),
        (SELECT string_agg(s::text, ' ') FROM awty_internal.stop AS s))";
    let [here, there] = ["postgres", "copy"].map(|database| shop.cluster.value::<String>(database, stored));
    assert_eq!(here, there);
    assert!(there.contains("always") && there.contains("Ben") && there.contains("tell"), "{there}");
    shop.await_time(end, 1);
    let held = "SELECT string_agg(concat_ws(':', entity_key, note), ' ' ORDER BY entity_key) FROM awty.alert WHERE held_by IS NOT NULL";
    assert_eq!(shop.cluster.value::<String>("copy", held), "1:Anna 2:Ben");
    shop.cluster.execute("copy", &["SELECT awty.adopt()"]);
    shop.cluster.await_sql(
        "copy",
        "the end of the hold, and the telling",
        "SELECT count(*) = 2 AND min(key) = '1' FROM shop.told",
    );
    assert_eq!(shop.cluster.value::<String>("copy", held), "2:Ben");
}

/// A restore loads no rule if one of them names a table that the restore cannot create.
#[test]
fn checks_of_a_rule_that_a_restore_has_lost_fail_and_stay() {
    let shop = watched("");
    shop.run(&format!("SELECT awty.pause('orders'); INSERT INTO shop.orders VALUES (1, {LATE})"));
    shop.cluster.execute("postgres", &["DELETE FROM awty.rule"]);
    shop.run("SELECT awty.resume('orders')");
    shop.await_true("a failure", "SELECT EXISTS (SELECT FROM awty.failing WHERE sqlstate = '42704')");
    assert_eq!(state(&shop), "late -; pending 1");
    shop.run("SELECT awty.unregister('orders')");
    super::watch(&shop, "existing => 'all'");
    await_state(&shop, "late 1:1; pending -");
}
