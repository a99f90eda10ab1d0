//! While `awty.hold()` holds a watched row, awty does not report the row's alert.

use super::{LATE, await_state, await_walked, expect, refusal, state, watch, watched};
use awty_testkit::fixture::Shop;

fn telling(more: &str) -> Shop {
    let shop = watched("");
    shop.run(
        "CREATE TABLE shop.told (key text, level integer, told bigint, is_held boolean);
         CREATE FUNCTION shop.tell(a awty.alert) RETURNS void LANGUAGE sql AS
             $$ INSERT INTO shop.told VALUES (a.entity_key, a.level, a.told, a.held_by IS NOT NULL) $$",
    );
    watch(&shop, &format!("call => 'shop.tell', replace => true{more}"));
    shop
}

fn told(shop: &Shop) -> String {
    shop.cluster.value(
        "postgres",
        "SELECT coalesce(string_agg(concat_ws(':', key, level, told, is_held), ' ' ORDER BY key, told), '-') FROM shop.told",
    )
}

fn held(shop: &Shop) -> String {
    shop.cluster.value(
        "postgres",
        "SELECT coalesce(string_agg(concat_ws(':', entity_key, level, told, held_by, note), ' ' ORDER BY entity_key), '-')
         FROM awty.alert WHERE held_by IS NOT NULL",
    )
}

/// An alert at its last escalation level has no pending check.
#[test]
fn a_held_alert_is_told_again_after_its_release() {
    let shop = telling("");
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, {LATE})"));
    await_state(&shop, "late 1:1; pending -");
    shop.run("SELECT awty.hold('orders', 1, note => 'Anna calls')");
    assert_eq!((held(&shop), state(&shop)), ("1:1:1:shop:Anna calls".into(), "late 1:1; pending -".into()));
    let shown = "SELECT held_by = 'shop' AND held_until IS NULL AND note = 'Anna calls' AND next_level_at IS NULL FROM awty.late";
    assert!(shop.cluster.value::<bool>("postgres", shown));
    let shown =
        "SELECT detail LIKE 'alert % is held by shop: Anna calls; SELECT awty.release(''orders'', ''1'', ''orders'');'
        FROM awty.explain('orders', 1) WHERE detail LIKE '%held%'";
    assert!(
        shop.cluster.value::<bool>("postgres", shown),
        "{:?}",
        shop.cluster.psql("postgres", "SELECT * FROM awty.explain('orders', 1)")
    );
    shop.run("SELECT awty.hold('orders', 1, 'orders', note => 'Ben calls')");
    assert_eq!(held(&shop), "1:1:1:shop:Ben calls", "the last call replaces the note");
    shop.run("SELECT awty.release('orders', 1)");
    assert_eq!(held(&shop), "-");
    shop.await_true("the telling", "SELECT count(*) = 2 FROM shop.told");
    await_state(&shop, "late 1:1; pending -");
    assert_eq!(told(&shop), "1:1:1:f 1:1:2:f");
    let refused = refusal(&shop, "shop", "SELECT awty.release('orders', 1, 'orders')");
    assert!(["42704", "55000"].contains(&refused.0.as_str()), "{refused:?}");
}

#[test]
fn levels_rise_in_a_hold() {
    let shop = telling("");
    shop.run("INSERT INTO shop.orders (id) VALUES (1), (2)");
    shop.run("SELECT awty.hold('orders', n, note => 'away') FROM generate_series(1, 2) AS n");
    assert_eq!(held(&shop), "1:0:0:shop:away 2:0:0:shop:away");
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM awty.late"), 0, "level 0 is not late");
    shop.run("UPDATE shop.orders SET placed_at = now() - interval '4 hours' WHERE id = 1");
    await_state(&shop, "late 1:1 2:0; pending 2");
    assert_eq!((held(&shop), told(&shop)), ("1:1:0:shop:away 2:0:0:shop:away".into(), "-".into()));
    let late = "SELECT (met, late) = (0, 1) FROM awty.job_status WHERE job = 'orders'";
    shop.await_true("one late row", late);
    watch(&shop, "call => 'shop.tell', escalate => '{200 min}', existing => 'all', replace => true");
    await_state(&shop, "late 1:2 2:0; pending 2");
    assert_eq!(told(&shop), "-");
    expect(&shop, "UPDATE shop.orders SET status = 'SHIPPED' WHERE id = 2", "late 1:2; pending -");
    shop.run("SELECT awty.release('orders', 1)");
    shop.await_true("the telling", "SELECT EXISTS (SELECT FROM shop.told)");
    assert_eq!((told(&shop), held(&shop)), ("1:2:1:f".into(), "-".into()));
}

#[test]
fn a_hold_ends_at_its_time() {
    let shop = telling(", escalate => '{1 day}'");
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, {LATE}), (2, now()), (3, {LATE})"));
    await_state(&shop, "late 1:1 3:1; pending 1 2 3");
    shop.run("SELECT awty.hold('orders', n, held_until => now() + interval '2 s') FROM generate_series(1, 3) AS n");
    let slots = "SELECT count(*) = 3 AND bool_and(f.next_check_at = a.held_until AND a.held_until = awty.next_slot(a.held_until))
        FROM awty.future_job AS f JOIN awty.alert AS a USING (entity_name, entity_key) WHERE a.held_until > now()";
    let mut client = shop.client();
    assert!(client.query_one(slots, &[]).unwrap().get::<_, bool>(0));
    shop.run("UPDATE shop.orders SET status = 'SHIPPED' WHERE id = 3");
    shop.await_true("the holds to end", "SELECT count(*) = 0 FROM awty.alert WHERE held_by IS NOT NULL");
    await_state(&shop, "late 1:1 2:0; pending 1 2");
    assert_eq!(told(&shop), "1:1:1:f 1:1:2:f 3:1:1:f", "late rows are told once more");
    let cleared = "SELECT held_until IS NULL AND note IS NULL FROM awty.alert WHERE entity_key = '3'";
    assert!(shop.cluster.value::<bool>("postgres", cleared));
    let next = "SELECT bool_and(next_check_at > now() + interval '1 hour') FROM awty.future_job";
    assert!(shop.cluster.value::<bool>("postgres", next));
}

/// Without `since`, awty itself stores when a row's deadline clock started. The end of a hold must not change the
/// stored start.
#[test]
fn a_hold_keeps_the_start_of_the_clock() {
    let shop = watched("");
    shop.run(
        "SELECT awty.unwatch('orders'), awty.watch('shop.orders', until => $$status <> 'UNSHIPPED'$$, within => '1 s')",
    );
    await_walked(&shop);
    shop.run("INSERT INTO shop.orders (id) VALUES (1)");
    await_state(&shop, "late 1:1; pending -");
    shop.run("SELECT awty.hold('orders', 1, held_until => now() + interval '1 s')");
    shop.await_true("the hold to end", "SELECT held_by IS NULL AND told = 2 FROM awty.alert");
    await_state(&shop, "late 1:1; pending -");
}

#[test]
fn what_cannot_be_held_or_released() {
    let shop = watched("");
    shop.run("INSERT INTO shop.orders (id) VALUES (1), (2); SELECT awty.cancel('orders', 1, 'orders')");
    assert_eq!(refusal(&shop, "shop", "SELECT awty.release('orders', 1)").0, "55000");
    assert_eq!(state(&shop), "late -; pending 2", "it is still silenced");
    shop.run("SELECT awty.hold('orders', 1), awty.release('orders', 1)");
    assert_eq!(state(&shop), "late -; pending 2".replace("late -", "late 1:0"), "a hold does not end the silence");
    assert_eq!(refusal(&shop, "shop", "SELECT awty.hold('orders', 7, 'orders')").0, "42704");
    assert_eq!(
        refusal(&shop, "shop", "SELECT awty.hold('orders', 2, held_until => now() - interval '1 s')").0,
        "22023"
    );
}

#[test]
fn a_hold_undoes_a_run_that_tells() {
    let shop = watched("");
    shop.run(&format!(
        "CREATE FUNCTION shop.tell(a awty.alert) RETURNS void LANGUAGE plpgsql AS $$ BEGIN {} END $$",
        awty_testkit::fixture::GATE
    ));
    watch(&shop, "call => 'shop.tell', replace => true");
    let gate = shop.close_gate();
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, {LATE})"));
    shop.await_at_gate();
    shop.run("SET lock_timeout = '30 s'; SELECT awty.hold('orders', 1)");
    assert!(shop.is_at_gate(), "the hold waited for the run");
    drop(gate);
    await_state(&shop, "late 1:1; pending -");
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT told FROM awty.alert"), 0);
}

#[test]
fn a_hold_undoes_a_run_that_tells_a_higher_level() {
    let shop = watched("");
    shop.run(&format!(
        "CREATE FUNCTION shop.tell(a awty.alert) RETURNS void LANGUAGE plpgsql AS $$ BEGIN {} END $$",
        awty_testkit::fixture::GATE
    ));
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, {LATE})"));
    await_state(&shop, "late 1:1; pending -");
    let gate = shop.close_gate();
    shop.run(
        "SELECT awty.watch('shop.orders', since => 'placed_at', until => $$status <> 'UNSHIPPED'$$, within => '3 hours',
             escalate => '{200 min}', call => 'shop.tell', replace => true)",
    );
    shop.await_at_gate();
    shop.run("SET lock_timeout = '30 s'; SELECT awty.hold('orders', 1)");
    assert!(shop.is_at_gate(), "the hold waited for the run");
    drop(gate);
    await_state(&shop, "late 1:2; pending -");
    let held = "SELECT told = 1 AND held_by = 'shop'::regrole FROM awty.alert";
    assert!(shop.cluster.value::<bool>("postgres", held));
}

#[test]
fn a_hold_that_is_not_committed_stops_no_run() {
    let shop = telling("");
    shop.run("SELECT awty.alter('orders', timeout => '1 hour'), awty.pause('orders')");
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, {LATE}), (2, {LATE})"));
    let mut client = shop.client();
    client.batch_execute("BEGIN; SELECT awty.hold('orders', 1)").unwrap();
    shop.run("SELECT awty.resume('orders')");
    await_state(&shop, "late 2:1; pending 1");
    client.batch_execute("COMMIT").unwrap();
    await_state(&shop, "late 1:1 2:1; pending -");
    assert_eq!((held(&shop), told(&shop)), ("1:1:0:shop".into(), "2:1:1:f".into()));
}

#[test]
fn a_release_at_the_end_of_the_hold_tells_once() {
    const ROWS: i64 = 40;
    let shop = telling(", escalate => '{1 day}'");
    shop.run(&format!("INSERT INTO shop.orders SELECT n, {LATE} FROM generate_series(1, {ROWS}) AS n"));
    shop.await_true("the alerts", &format!("SELECT count(*) = {ROWS} FROM awty.alert WHERE told = 1"));
    let end = shop.ahead(
        3,
        &format!("SELECT count(awty.hold('orders', n, held_until => {{first}})) FROM generate_series(1, {ROWS}) AS n"),
    );
    let mut client = shop.client();
    client.execute("SELECT pg_sleep_until($1)", &[&end]).unwrap();
    let mut released = 0;
    for n in 1..=ROWS {
        match client.batch_execute(&format!("SELECT awty.release('orders', {n}, 'orders')")) {
            Ok(()) => released += 1,
            Err(error) => assert_eq!(error.code().unwrap().code(), "55000", "{error:?}"),
        }
    }
    shop.await_true(
        "the tellings",
        &format!("SELECT count(*) = {ROWS} FROM awty.alert WHERE told > 1 AND held_by IS NULL"),
    );
    shop.await_workers_gone();
    let counts = "SELECT concat_ws(' ', min(told), max(told), (SELECT count(*) FROM shop.told)) FROM awty.alert";
    assert_eq!(shop.cluster.value::<String>("postgres", counts), format!("2 2 {}", 2 * ROWS), "{released} released");
}
