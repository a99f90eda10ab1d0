//! awty raises an alert without waiting for the rule's `call` function.

use super::{LATE, await_state, state, watch, watched};
use awty_testkit::fixture::Shop;

fn broken(more: &str) -> Shop {
    let shop = watched("");
    shop.run(
        "CREATE TABLE shop.told (key text, level integer, told bigint);
         CREATE TABLE shop.broken AS SELECT true;
         CREATE FUNCTION shop.tell(a awty.alert) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
             IF EXISTS (SELECT FROM shop.broken) THEN RAISE 'no line' USING ERRCODE = 'AW077'; END IF;
             INSERT INTO shop.told VALUES (a.entity_key, a.level, a.told); END $$",
    );
    watch(&shop, &format!("call => 'shop.tell', replace => true{more}"));
    shop.run("SELECT awty.alter('orders', retry_after => '1 ms')");
    shop
}

fn gated() -> Shop {
    let shop = watched("");
    shop.run(&format!(
        "CREATE FUNCTION shop.tell(a awty.alert) RETURNS void LANGUAGE plpgsql AS $$ BEGIN {} RAISE 'no line'; END $$",
        awty_testkit::fixture::GATE
    ));
    watch(&shop, "call => 'shop.tell', replace => true");
    shop
}

fn told(shop: &Shop) -> String {
    shop.cluster.value(
        "postgres",
        "SELECT coalesce(string_agg(concat_ws(':', key, level, told), ' ' ORDER BY key, level), '-') FROM shop.told",
    )
}

#[test]
fn a_level_is_raised_untold_and_told_later() {
    let shop = broken("");
    shop.run(&format!("INSERT INTO shop.orders SELECT n, {LATE} FROM generate_series(1, 3) AS n"));
    await_state(&shop, "late 1:1 2:1 3:1; pending 1 2 3");
    let untold = "SELECT bool_and(told = 0 AND told_at IS NULL) FROM awty.alert";
    assert!(shop.cluster.value::<bool>("postgres", untold));
    shop.run("TRUNCATE shop.broken");
    await_state(&shop, "late 1:1 2:1 3:1; pending -");
    assert_eq!(told(&shop), "1:1:1 2:1:1 3:1:1");
    let late = "SELECT bool_and(told = 1 AND told_at > raised_at AND escalated_at IS NULL) FROM awty.alert";
    assert!(shop.cluster.value::<bool>("postgres", late));
}

#[test]
fn a_broken_function_stops_no_level() {
    let shop = broken(", escalate => '{200 min, 210 min, 1 day}'");
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, {LATE})"));
    await_state(&shop, "late 1:3; pending 1");
    assert_eq!(told(&shop), "-");
    shop.run("TRUNCATE shop.broken");
    shop.await_true("the telling", "SELECT EXISTS (SELECT FROM shop.told)");
    assert_eq!(told(&shop), "1:3:1");
    let next: bool = shop.cluster.value(
        "postgres",
        "SELECT f.next_check_at = awty.next_slot(l.next_level_at) AND l.told = 1 AND l.late_for > '59 min'
         FROM awty.late AS l JOIN awty.future_job AS f USING (entity_name, entity_key)",
    );
    assert!(next, "{:?}", shop.cluster.psql("postgres", "TABLE awty.late"));
}

#[test]
fn a_telling_is_given_up_after_max_attempts() {
    let shop = broken(", escalate => '{1 day}'");
    shop.run("SELECT awty.alter('orders', max_attempts => 2)");
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, {LATE})"));
    shop.await_true(
        "the telling to be given up",
        "SELECT attempt = 0 AND next_check_at > now() + interval '19 hours' FROM awty.future_job",
    );
    assert_eq!((state(&shop), told(&shop)), ("late 1:1; pending 1".into(), "-".into()));
    shop.run("TRUNCATE shop.broken; UPDATE shop.orders SET placed_at = now() - interval '2 days'");
    await_state(&shop, "late 1:2; pending -");
    assert_eq!(told(&shop), "1:2:1");
}

#[test]
fn the_last_telling_ends_the_check() {
    let shop = broken("");
    shop.run("SELECT awty.alter('orders', max_attempts => 2)");
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, {LATE})"));
    let end = shop.end_of("1");
    assert_eq!((end.why(), end.attempts), (("failed", Some("AW077")), 2), "{end:?}");
    assert_eq!(state(&shop), "late 1:1; pending -");
    let fix = "SELECT fix FROM awty.doctor() WHERE finding LIKE '%cannot tell its alerts'";
    let fix: String = shop.client().query_one(fix, &[]).unwrap().get(0);
    shop.run(&format!("TRUNCATE shop.broken; {fix}"));
    shop.await_true("the telling", "SELECT told = 1 FROM awty.alert");
    assert_eq!(told(&shop), "1:1:1");
}

#[test]
fn a_slow_function_stops_no_alert() {
    let shop = watched("");
    shop.run(
        "CREATE FUNCTION shop.tell(a awty.alert) RETURNS void LANGUAGE sql AS 'SELECT pg_sleep(60)';
         SELECT awty.alter('orders', timeout => '300 ms')",
    );
    watch(&shop, "call => 'shop.tell', replace => true");
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, {LATE})"));
    await_state(&shop, "late 1:1; pending 1");
    let failing: String = shop.cluster.value("postgres", "SELECT sqlstate FROM awty.failing");
    assert_eq!(failing, "57014");
}

#[test]
fn a_terminated_function_stops_no_level() {
    let shop = watched("");
    shop.run(
        "CREATE TABLE shop.told (key text, level integer, told bigint);
         CREATE TABLE shop.broken AS SELECT true;
         CREATE FUNCTION shop.tell(a awty.alert) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
             WHILE EXISTS (SELECT FROM shop.broken) LOOP
                 BEGIN PERFORM pg_sleep(600); EXCEPTION WHEN query_canceled THEN NULL; END;
             END LOOP;
             INSERT INTO shop.told VALUES (a.entity_key, a.level, a.told); END $$;
         SELECT awty.alter('orders', timeout => '300 ms', max_attempts => 2, retry_after => '1 s')",
    );
    watch(&shop, "call => 'shop.tell', escalate => '{1 day}', replace => true");
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, {LATE})"));
    await_state(&shop, "late 1:1; pending 1");
    let failure = "SELECT message = 'run ignored its timeout and was terminated' FROM awty.failing";
    assert!(shop.cluster.value::<bool>("postgres", failure));
    shop.await_true("the late row to be counted", "SELECT late = 1 FROM awty.job_status WHERE job = 'orders'");
    let given_up = "SELECT attempt = 0 AND next_check_at > now() + interval '19 hours' FROM awty.future_job";
    shop.await_true("the telling to be given up", given_up);
    shop.run("TRUNCATE shop.broken; UPDATE shop.orders SET placed_at = now() - interval '2 days'");
    await_state(&shop, "late 1:2; pending -");
    assert_eq!(told(&shop), "1:2:1");
}

#[test]
fn a_clock_that_is_set_back_hides_no_telling() {
    let shop = broken(", remind => '{1 hour}', escalate => '{200 min, 1 day}', call_cleared => 'shop.tell'");
    let set_back =
        "UPDATE awty.alert SET raised_at = raised_at + interval '1 hour', told_at = told_at + interval '1 hour'";
    shop.run("INSERT INTO shop.orders VALUES (1, now() - interval '185 min')");
    await_state(&shop, "late 1:1; pending 1");
    shop.cluster.execute("postgres", &[set_back]);
    shop.run("TRUNCATE shop.broken");
    shop.await_true("the telling", "SELECT told = 1 FROM awty.alert");
    shop.run("UPDATE shop.orders SET status = 'SHIPPED'");
    shop.await_true("call_cleared", "SELECT EXISTS (SELECT FROM shop.told OFFSET 1)");
    shop.run("INSERT INTO shop.orders VALUES (2, now() - interval '119 min 58 s'), (3, now() - interval '190 min')");
    shop.await_true(
        "a reminder and level 1",
        "SELECT count(*) = 2 FROM awty.alert WHERE told = 1 AND cleared_at IS NULL",
    );
    shop.cluster.execute("postgres", &[set_back]);
    shop.run("INSERT INTO shop.broken VALUES (true)");
    shop.run("UPDATE shop.orders SET placed_at = placed_at - interval '70 min' WHERE id > 1");
    await_state(&shop, "late 2:1 3:2; pending 2 3");
    let untold = "SELECT string_agg(concat_ws(' ', l.entity_key, l.told, a.told_at >= coalesce(a.escalated_at, a.raised_at)), ', ' ORDER BY l.entity_key)
        FROM awty.late AS l JOIN awty.alert AS a ON a.entity_key = l.entity_key AND a.cleared_at IS NULL";
    assert_eq!(shop.cluster.value::<String>("postgres", untold), "2 1 f, 3 1 f");
    shop.run("UPDATE shop.orders SET status = 'SHIPPED' WHERE id > 1");
    let calls = "SELECT string_agg(a.entity_key, ' ') FROM awty.future_job AS f JOIN awty.alert AS a ON a.id::text = f.entity_key
        WHERE f.entity_name = 'awty.cleared'";
    assert_eq!(shop.cluster.value::<String>("postgres", calls), "3");
}

#[test]
fn a_row_that_is_met_meanwhile_gets_no_alert() {
    let shop = gated();
    let gate = shop.close_gate();
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, {LATE})"));
    shop.await_at_gate();
    shop.run("UPDATE shop.orders SET status = 'SHIPPED'");
    drop(gate);
    shop.await_workers_gone();
    assert_eq!(state(&shop), "late -; pending -");
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM awty.alert"), 0);
}

#[test]
fn a_failing_call_adds_no_alert_beside_a_held_one() {
    let shop = gated();
    let gate = shop.close_gate();
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, {LATE})"));
    shop.await_at_gate();
    shop.run("SELECT awty.hold('orders', 1, 'orders')");
    drop(gate);
    shop.await_true("the level of the held alert", "SELECT bool_or(level = 1) FROM awty.alert");
    let open = "SELECT string_agg(concat_ws(' ', level, held_by), ', ') FROM awty.alert WHERE cleared_at IS NULL";
    assert_eq!(shop.cluster.value::<String>("postgres", open), "1 shop");
}

#[test]
fn a_broken_function_is_reported() {
    let shop = broken("");
    // Without this, the check could be in a retry when the statement in `fix` runs it.
    shop.run("SELECT awty.alter('orders', retry_after => '1 hour')");
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, {LATE})"));
    await_state(&shop, "late 1:1; pending 1");
    let mut client = shop.client();
    let row = client.query_one("SELECT why, fix, awty.healthy() FROM awty.status", &[]).unwrap();
    let (why, fix, healthy): (String, String, bool) = (row.get(0), row.get(1), row.get(2));
    assert_eq!(why, r#"shop.tell of rule "orders" fails: AW077: no line"#);
    assert!(!healthy);
    let found: String =
        client.query_one("SELECT finding FROM awty.doctor() WHERE level = 'error'", &[]).unwrap().get(0);
    assert_eq!(found, r#"rule "orders" cannot tell its alerts"#);
    assert!(fix.ends_with("; -- once the function is mended"), "{fix}");
    shop.run("SELECT awty.pause('orders', 'repairs')");
    assert_eq!(client.query(&fix, &[]).unwrap().len(), 1, "{fix}");
    let paused = r#"SELECT why LIKE 'job "orders" is paused%: "repairs"' FROM awty.status"#;
    shop.await_true("the pause to be the reason", paused);
    shop.run("SELECT awty.resume('orders'); TRUNCATE shop.broken");
    await_state(&shop, "late 1:1; pending -");
    assert!(shop.cluster.value::<bool>("postgres", "SELECT why IS NULL AND awty.healthy() FROM awty.status"));
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM awty.doctor()"), 0);
}
