//! When awty clears an alert that it has reported at level 1 or above, awty calls the function `call_cleared` once
//! (promise P15).

use super::{LATE, ORDERS, await_state, await_walked, state, watch, watched};
use awty_testkit::Cluster;
use awty_testkit::fixture::Shop;

const SOLVED: &str = "CREATE TABLE shop.solved (alert bigint, key text, level integer, cleared boolean, who name);
    CREATE TABLE shop.broken AS SELECT true;
    CREATE FUNCTION shop.solved(a awty.alert) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
        IF EXISTS (SELECT FROM shop.broken) THEN RAISE 'no line' USING ERRCODE = 'AW077'; END IF;
        INSERT INTO shop.solved VALUES (a.id, a.entity_key, a.level, a.cleared_at IS NOT NULL, current_user); END $$";
const RULE: &str = "escalate => '{1 day}', call_cleared => 'shop.solved', replace => true";

fn solving() -> Shop {
    let shop = watched("");
    shop.run(SOLVED);
    watch(&shop, RULE);
    shop.run("SELECT awty.alter('orders', retry_after => '1 ms')");
    shop
}

/// Lists the rows whose call of `call_cleared` is pending, then the rows whose call has run, for example `pending 1;
/// solved 2`.
fn calls(shop: &Shop) -> String {
    shop.cluster.value(
        "postgres",
        "SELECT concat('pending ', (SELECT string_agg(a.entity_key, ' ' ORDER BY a.entity_key) FROM awty.future_job AS f
                    JOIN awty.alert AS a ON a.id::text = f.entity_key WHERE f.entity_name = 'awty.cleared'),
             '; solved ', (SELECT string_agg(s.key, ' ' ORDER BY s.key) FROM shop.solved AS s
                    JOIN awty.alert AS a ON a.id = s.alert AND a.entity_key = s.key WHERE s.cleared AND s.level = 1 AND s.who = 'shop'))",
    )
}

#[track_caller]
fn await_calls(shop: &Shop, wanted: &str) {
    shop.cluster.await_that(wanted, awty_testkit::PATIENCE, || match calls(shop) {
        calls if calls == wanted => Ok(()),
        calls => Err(calls),
    });
}

#[test]
fn each_way_to_clear_an_alert_calls_the_function_once() {
    let shop = solving();
    shop.run(&format!("INSERT INTO shop.orders SELECT n, {LATE} FROM generate_series(1, 8) AS n"));
    await_state(&shop, "late 1:1 2:1 3:1 4:1 5:1 6:1 7:1 8:1; pending 1 2 3 4 5 6 7 8");
    shop.run("BEGIN; DELETE FROM shop.orders; ROLLBACK");
    shop.run("UPDATE shop.orders SET status = 'SHIPPED' WHERE id = 1");
    shop.run("DELETE FROM shop.orders WHERE id = 2");
    shop.run("UPDATE shop.orders SET placed_at = now() WHERE id = 3");
    shop.run("UPDATE shop.orders SET id = 40 WHERE id = 4");
    await_calls(&shop, "pending 1 2 3 4; solved ");
    let bypassed = |id| {
        format!("SET session_replication_role = replica; UPDATE shop.orders SET status = 'SHIPPED' WHERE id = {id}")
    };
    shop.cluster.superuser("postgres").batch_execute(&bypassed(5)).unwrap();
    shop.run("SELECT awty.check_now('orders', 5, 'orders')");
    await_calls(&shop, "pending 1 2 3 4 5; solved ");
    // No trigger notices the change of row 6. Only a sweep clears the alert, because a sweep compares all open alerts
    // with their rows.
    shop.cluster.superuser("postgres").batch_execute(&bypassed(6)).unwrap();
    shop.cluster.execute("postgres", &["UPDATE awty.rule SET swept_at = '-infinity'"]);
    shop.job("wake", awty_testkit::fixture::NOTE, "");
    await_calls(&shop, "pending 1 2 3 4 5 6; solved ");
    shop.run("UPDATE shop.orders SET note = 'lost' WHERE id = 7");
    shop.run(&format!(
        "SELECT awty.watch('shop.orders', since => 'placed_at', until => $$status <> 'UNSHIPPED' OR note = 'lost'$$, within => '3 hours', {RULE})"
    ));
    await_calls(&shop, "pending 1 2 3 4 5 6 7; solved ");
    shop.await_true("row 40", "SELECT EXISTS (SELECT FROM awty.alert WHERE entity_key = '40' AND told = 1)");
    shop.run("TRUNCATE shop.orders");
    await_calls(&shop, "pending 1 2 3 4 40 5 6 7 8; solved ");
    shop.await_true(
        "the errors",
        "SELECT count(*) = 9 FROM awty.failing WHERE entity_name = 'awty.cleared' AND sqlstate = 'AW077'",
    );
    shop.run("TRUNCATE shop.broken");
    await_calls(&shop, "pending ; solved 1 2 3 4 40 5 6 7 8");
    let ends = "SELECT count(*) FILTER (WHERE outcome = 'done') = 9 AND count(*) = 9
        FROM awty.future_job_history WHERE entity_name = 'awty.cleared'";
    assert!(shop.cluster.value::<bool>("postgres", ends));
}

/// awty must not call `call_cleared` for an alert that was never reported. A reminder does not count as a report.
#[test]
fn only_an_alert_that_was_told_at_level_1_calls_the_function() {
    let shop = Shop::on(Cluster::builder().set("awty.time_travel", "on").start());
    shop.run(ORDERS);
    shop.run(SOLVED);
    shop.run("TRUNCATE shop.broken");
    shop.run(
        "SELECT awty.watch('shop.orders', since => 'placed_at', until => $$status <> 'UNSHIPPED'$$, within => '3 hours', remind => '{1 hour}',
             call_cleared => 'shop.solved')",
    );
    await_walked(&shop);
    shop.run("INSERT INTO shop.orders SELECT n, now() FROM generate_series(1, 4) AS n");
    let mut client = shop.client();
    let mut journey = client.transaction().unwrap();
    let mut run = |script: &str| journey.batch_execute(script).unwrap();
    run("SELECT awty.travel('2 hours 30 minutes')");
    run("UPDATE shop.orders SET status = 'SHIPPED' WHERE id = 1");
    run("SELECT awty.hold('orders', 2, 'orders'), awty.hold('orders', 3, 'orders')");
    run("SELECT awty.travel('1 hour')");
    run("SELECT awty.release('orders', 2, 'orders')");
    run("UPDATE shop.orders SET status = 'SHIPPED' WHERE id IN (2, 3)");
    run("SELECT awty.hold('orders', 4, 'orders'), awty.release('orders', 4, 'orders')");
    run("UPDATE shop.orders SET status = 'SHIPPED' WHERE id = 4");
    run("SELECT awty.travel('1 minute')");
    let seen = "SELECT string_agg(concat_ws(' ', a.entity_key, a.level, a.told, s.level), ', ' ORDER BY a.entity_key)
        FROM awty.alert AS a LEFT JOIN shop.solved AS s ON s.alert = a.id WHERE a.cleared_at IS NOT NULL";
    let seen: String = journey.query_one(seen, &[]).unwrap().get(0);
    assert_eq!(seen, "1 0 1, 2 1 1, 3 1 1, 4 1 2 1");
}

#[test]
fn a_pending_call_is_a_check_of_the_rules_job() {
    let shop = solving();
    shop.run(&format!("INSERT INTO shop.orders SELECT n, {LATE} FROM generate_series(1, 4) AS n"));
    await_state(&shop, "late 1:1 2:1 3:1 4:1; pending 1 2 3 4");
    shop.run("SELECT awty.pause('orders'); UPDATE shop.orders SET status = 'SHIPPED' WHERE id < 4");
    let cancelled = "SELECT awty.cancel('awty.cleared', id::text, 'orders') FROM awty.alert WHERE entity_key = '1'";
    assert_eq!(shop.cluster.value::<i64>("postgres", cancelled), 1);
    assert_eq!(calls(&shop), "pending 2 3; solved ");
    // awty keeps the row of an alert while the alert's call is pending.
    shop.cluster.execute(
        "postgres",
        &["UPDATE awty.alert SET cleared_at = now() - interval '400 days' WHERE cleared_at IS NOT NULL"],
    );
    shop.job("wake", awty_testkit::fixture::NOTE, "");
    shop.await_true(
        "the first alert to go",
        "SELECT array_agg(entity_key ORDER BY entity_key) = '{2,3,4}' FROM awty.alert",
    );
    shop.run("SELECT awty.resume('orders')");
    shop.await_true("an attempt", "SELECT count(*) = 2 FROM awty.failing WHERE entity_name = 'awty.cleared'");
    watch(&shop, "escalate => '{1 day}', replace => true");
    shop.await_true(
        "the end",
        "SELECT count(*) = 2 FROM awty.future_job_history WHERE entity_name = 'awty.cleared' AND outcome = 'done'",
    );
    assert_eq!(calls(&shop), "pending ; solved ");
    watch(&shop, RULE);
    shop.run("UPDATE shop.orders SET status = 'SHIPPED'");
    await_calls(&shop, "pending 4; solved ");
    shop.run(&format!("INSERT INTO shop.orders VALUES (5, {LATE})"));
    shop.await_true("row 5", "SELECT EXISTS (SELECT FROM awty.alert WHERE entity_key = '5' AND told = 1)");
    shop.run("SELECT awty.unwatch('orders')");
    assert_eq!((state(&shop), calls(&shop)), ("late -; pending -".into(), "pending ; solved ".into()));
    let ends =
        "SELECT string_agg(DISTINCT outcome, ' ') FROM awty.future_job_history WHERE entity_name = 'awty.cleared'";
    assert_eq!(shop.cluster.value::<String>("postgres", ends), "cancelled done");
}
