use super::{ORDERS, await_state, await_walked, refusal, state};
use awty_testkit::Cluster;
use awty_testkit::fixture::{GATE, Shop};
use awty_testkit::postgres::Transaction;

const SET_UP: &str = "CREATE TABLE shop.told (key text, level integer, at timestamptz DEFAULT awty.now());
    CREATE FUNCTION shop.tell(a awty.alert) RETURNS void LANGUAGE sql AS $$ INSERT INTO shop.told VALUES (a.entity_key, a.level) $$";
const UNTIL: &str = "until => $$status IN ('SHIPPED', 'LOST')$$";
pub const STOPPED: &str = "stopped => $$status = 'WAITING'$$";

pub fn shop() -> Shop {
    let shop = Shop::on(Cluster::builder().set("awty.time_travel", "on").start());
    shop.run(ORDERS);
    shop.run(SET_UP);
    shop.cluster.execute("postgres", &["GRANT USAGE ON SCHEMA awty_internal TO shop"]);
    shop
}

#[track_caller]
pub fn watch(shop: &Shop, more: &str) {
    shop.run(&format!("SELECT awty.watch('shop.orders', {UNTIL}, {more})"));
    await_walked(shop);
}

fn travel(journey: &mut Transaction, ahead: &str) {
    journey.execute(&format!("SELECT awty.travel('{ahead}')"), &[]).unwrap();
}

#[track_caller]
fn is_true(journey: &mut Transaction, what: &str, sql: &str) {
    let found: Option<bool> = journey.query_one(sql, &[]).unwrap().get(0);
    assert_eq!(found, Some(true), "{what}");
}

/// Lists the periods in which the row's clock was stopped, in minutes since `placed_at`. The period `0-90` has ended,
/// and the period `since 30` still lasts.
pub fn stops(shop: &Shop, id: i64) -> String {
    shop.cluster.value(
        "postgres",
        &format!(
            "SELECT coalesce((SELECT concat_ws(' ', (SELECT string_agg(format('%s-%s', awty_minutes(o.placed_at, lower(p)), awty_minutes(o.placed_at, upper(p))), ' ')
                 FROM unnest(s.stops) AS p), 'since ' || awty_minutes(o.placed_at, s.stopped_since))
             FROM awty_internal.stop AS s JOIN shop.orders AS o ON o.id::text = s.key WHERE s.key = '{id}'), '-')"
        ),
    )
}

pub const MINUTES: &str =
    "CREATE FUNCTION awty_minutes(a timestamptz, b timestamptz) RETURNS numeric LANGUAGE sql IMMUTABLE
    AS 'SELECT round(extract(epoch FROM b - a) / 60)'";

#[test]
fn a_stop_moves_levels_and_tells_nothing() {
    let shop = shop();
    watch(
        &shop,
        &format!(
            "since => 'placed_at', within => '3 hours', escalate => '{{6 hours}}', call => 'shop.tell', {STOPPED}"
        ),
    );
    let mut client = shop.client();
    let mut journey = client.transaction().unwrap();
    journey.batch_execute("INSERT INTO shop.orders VALUES (1, awty.now())").unwrap();
    travel(&mut journey, "1 hour");
    let before: String = journey.query_one("SELECT f::text FROM awty.future_job AS f", &[]).unwrap().get(0);
    journey.batch_execute("UPDATE shop.orders SET status = 'WAITING'").unwrap();
    let after: String = journey.query_one("SELECT f::text FROM awty.future_job AS f", &[]).unwrap().get(0);
    assert_eq!(before, after, "the begin of a stop moves nothing");
    travel(&mut journey, "5 hours");
    is_true(&mut journey, "nothing is raised", "SELECT count(*) = 0 FROM awty.alert");
    let daily = "SELECT next_check_at - awty.now() BETWEEN '20 hours' AND '23 hours' FROM awty.future_job";
    is_true(&mut journey, "the check looks again once a day", daily);
    let explained: String = journey
        .query_one("SELECT string_agg(detail, ';') FROM awty.explain('orders', 1) WHERE detail LIKE '%stopped%'", &[])
        .unwrap()
        .get(0);
    assert!(explained.starts_with("stopped since ") && explained.contains(" in all"), "{explained}");
    assert!(!explained.contains('.'), "a time has fractions of a second: {explained}");
    journey.batch_execute("UPDATE shop.orders SET status = 'UNSHIPPED'").unwrap();
    let moved =
        "SELECT f.next_check_at = awty.next_slot(o.placed_at + interval '3 hours' + (upper(s.stops) - lower(s.stops)))
            AND upper(s.stops) - lower(s.stops) BETWEEN '5 hours' AND '301 minutes' AND s.stopped_since IS NULL
        FROM awty.future_job AS f, shop.orders AS o, awty_internal.stop AS s";
    is_true(&mut journey, "the end of a stop moves the check", moved);
    travel(&mut journey, "118 minutes");
    is_true(&mut journey, "nothing is early", "SELECT count(*) = 0 FROM awty.alert");
    travel(&mut journey, "4 minutes");
    let late = "SELECT l.due_at = o.placed_at + interval '3 hours' + (upper(s.stops) - lower(s.stops))
            AND l.next_level_at = l.due_at + interval '3 hours' AND l.level = 1
        FROM awty.late AS l, shop.orders AS o, awty_internal.stop AS s";
    is_true(&mut journey, "the row is late", late);
    journey.batch_execute("UPDATE shop.orders SET status = 'WAITING'").unwrap();
    is_true(&mut journey, "a stop clears no alert", "SELECT next_level_at IS NULL FROM awty.late");
    travel(&mut journey, "2 days");
    is_true(&mut journey, "one telling", "SELECT count(*) = 1 FROM shop.told");
    journey.batch_execute("UPDATE shop.orders SET status = 'UNSHIPPED'").unwrap();
    travel(&mut journey, "4 hours");
    is_true(&mut journey, "both levels", "SELECT array_agg(level ORDER BY at) = '{1,2}' FROM shop.told");
    journey.batch_execute("UPDATE shop.orders SET status = 'SHIPPED'").unwrap();
    is_true(&mut journey, "it is there", "SELECT there_at IS NOT NULL FROM awty_internal.stop");
}

#[test]
fn a_missed_level_is_raised_after_the_stop() {
    let shop = shop();
    watch(&shop, &format!("since => 'placed_at', within => '3 hours', {STOPPED}"));
    shop.run("SELECT awty.pause('orders')");
    shop.run("INSERT INTO shop.orders SELECT n, now() - interval '4 hours' FROM generate_series(1, 2) AS n");
    shop.run("UPDATE shop.orders SET status = 'WAITING'");
    shop.run("SELECT awty.resume('orders')");
    let looked = "SELECT count(*) = 2 FROM awty.future_job WHERE check_count > 0 AND next_check_at > now() + interval '23 hours'";
    shop.await_true("both to be looked at", looked);
    assert_eq!(state(&shop), "late -; pending 1 2");
    shop.run("UPDATE shop.orders SET status = 'SHIPPED' WHERE id = 2");
    let outcome = "SELECT outcome FROM awty.future_job_history WHERE entity_key = '2'";
    assert_eq!(shop.cluster.value::<String>("postgres", outcome), "met");
    shop.run("UPDATE shop.orders SET status = 'UNSHIPPED' WHERE id = 1");
    await_state(&shop, "late 1:1; pending -");
}

#[test]
fn each_row_has_the_stop_of_the_contract() {
    let shop = shop();
    shop.cluster.execute("postgres", &[MINUTES]);
    shop.run("INSERT INTO shop.orders VALUES (1, now() - interval '90 min', 'WAITING'), (2, now() - interval '2 days', 'WAITING')");
    watch(&shop, &format!("since => 'placed_at', within => '3 hours', {STOPPED}"));
    assert_eq!((stops(&shop, 1), stops(&shop, 2)), ("since 0".into(), "since 0".into()), "existing at watch");
    shop.run("INSERT INTO shop.orders VALUES (3, now() - interval '1 hour', 'WAITING'), (4, now() + interval '1 hour', 'WAITING')");
    assert_eq!((stops(&shop, 3), stops(&shop, 4)), ("since 0".into(), "since 0".into()), "inserted");
    shop.run("UPDATE shop.orders SET status = 'UNSHIPPED' WHERE id = 4");
    assert_eq!(stops(&shop, 4), "-", "it ended before it began");
    shop.run("UPDATE shop.orders SET status = 'UNSHIPPED' WHERE id = 3");
    shop.run("UPDATE shop.orders SET status = 'WAITING' WHERE id = 3");
    assert_eq!(stops(&shop, 3), "0-60 since 60");
    shop.run("UPDATE shop.orders SET placed_at = placed_at - interval '10 min' WHERE id = 3");
    assert_eq!(stops(&shop, 3), "since 70", "another start forgets the stops");
    shop.run("UPDATE shop.orders SET id = 5 WHERE id = 3");
    assert_eq!((stops(&shop, 3), stops(&shop, 5)), ("-".into(), "since 0".into()), "a new row");
    shop.run("SELECT awty.cancel('orders', 5, 'orders')");
    let slot = shop.slot_of("5");
    shop.run("UPDATE shop.orders SET status = 'UNSHIPPED' WHERE id = 5");
    assert_eq!((stops(&shop, 5), shop.slot_of("5")), ("since 0".into(), slot), "silenced");
    shop.run("DELETE FROM shop.orders WHERE id = 5");
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM awty_internal.stop WHERE key = '5'"), 0);
    shop.run("INSERT INTO shop.orders VALUES (6, now() - interval '30 min', 'UNSHIPPED', 'asked')");
    watch(&shop, "since => 'placed_at', within => '3 hours', stopped => $$note = 'asked'$$, replace => true");
    assert_eq!(stops(&shop, 6), "since 30", "watched before");
    assert_eq!(stops(&shop, 1), "0-90", "past stops stay");
    watch(&shop, "since => 'placed_at', within => '3 hours', replace => true");
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM awty_internal.stop"), 0);
    watch(&shop, &format!("since => 'placed_at', within => '3 hours', {STOPPED}, replace => true"));
    shop.run("UPDATE shop.orders SET status = 'WAITING' WHERE id = 6");
    shop.run("TRUNCATE shop.orders");
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM awty_internal.stop"), 0);
    shop.run("INSERT INTO shop.orders VALUES (7, now(), 'WAITING')");
    shop.run("SELECT awty.unwatch('orders')");
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM awty_internal.stop"), 0);
}

#[test]
fn a_rule_without_since_keeps_the_start_of_the_clock() {
    let shop = shop();
    watch(&shop, &format!("within => '3 hours', {STOPPED}"));
    let mut client = shop.client();
    let mut journey = client.transaction().unwrap();
    journey.batch_execute("INSERT INTO shop.orders VALUES (1)").unwrap();
    let start = journey.query_one("SELECT scheduled_at FROM awty.future_job", &[]).unwrap();
    let start: std::time::SystemTime = start.get(0);
    travel(&mut journey, "1 hour");
    journey.batch_execute("UPDATE shop.orders SET status = 'WAITING'").unwrap();
    travel(&mut journey, "10 hours");
    journey.batch_execute("UPDATE shop.orders SET status = 'UNSHIPPED'").unwrap();
    travel(&mut journey, "119 minutes");
    is_true(&mut journey, "nothing is early", "SELECT count(*) = 0 FROM awty.alert");
    travel(&mut journey, "2 minutes");
    let since: std::time::SystemTime = journey.query_one("SELECT since FROM awty.alert", &[]).unwrap().get(0);
    assert_eq!(since, start);
}

/// An update that bypasses the triggers stops the row's deadline clock only at the next check of the row.
#[test]
fn a_check_sees_what_triggers_have_missed() {
    let shop = shop();
    shop.cluster.execute("postgres", &[MINUTES]);
    watch(&shop, &format!("since => 'placed_at', within => '3 hours', {STOPPED}"));
    shop.run("INSERT INTO shop.orders VALUES (1, now() - interval '1 hour')");
    let bypass = |status: &str| {
        let update = format!("SET session_replication_role = replica; UPDATE shop.orders SET status = '{status}'");
        shop.cluster.superuser("postgres").batch_execute(&update).unwrap();
        shop.run("SELECT awty.check_now('orders', 1, 'orders')");
    };
    bypass("WAITING");
    shop.await_true("the begin", "SELECT stopped_since > now() - interval '1 minute' FROM awty_internal.stop");
    assert_eq!(stops(&shop, 1), "since 60");
    bypass("UNSHIPPED");
    shop.await_true("the end", "SELECT count(*) = 1 FROM awty_internal.stop WHERE stopped_since IS NULL");
    assert_eq!(stops(&shop, 1), "60-60");
    assert_eq!(state(&shop), "late -; pending 1");
}

#[test]
fn a_stop_undoes_a_run_under_way() {
    let shop = shop();
    shop.run(&format!(
        "CREATE FUNCTION shop.slow(a awty.alert) RETURNS void LANGUAGE plpgsql AS $$ BEGIN {GATE}
             INSERT INTO shop.told VALUES (a.entity_key, a.level); END $$"
    ));
    watch(&shop, &format!("since => 'placed_at', within => '3 hours', call => 'shop.slow', {STOPPED}"));
    let gate = shop.close_gate();
    shop.run("INSERT INTO shop.orders VALUES (1, now() - interval '4 hours')");
    shop.await_at_gate();
    shop.run("UPDATE shop.orders SET status = 'WAITING'");
    drop(gate);
    let looked = "SELECT check_count > 0 AND attempt = 0 FROM awty.future_job";
    shop.await_true("the next run", looked);
    assert_eq!(state(&shop), "late -; pending 1");
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM shop.told"), 0);
    let failures: i64 = shop.cluster.value("postgres", "SELECT count(*) FROM awty.failing");
    assert_eq!(failures, 0, "an undone run is no failure");
}

#[test]
fn a_stop_of_an_old_transaction_begins_after_the_last_level() {
    let shop = shop();
    watch(&shop, &format!("since => 'placed_at', within => '3 hours', escalate => '{{1 day}}', {STOPPED}"));
    let mut client = shop.client();
    let mut old = client.transaction().unwrap();
    old.batch_execute("SELECT now()").unwrap();
    shop.run("INSERT INTO shop.orders VALUES (1, now() - interval '4 hours')");
    await_state(&shop, "late 1:1; pending 1");
    old.batch_execute("UPDATE shop.orders SET status = 'WAITING'").unwrap();
    old.commit().unwrap();
    let begin = "SELECT s.stopped_since = a.raised_at FROM awty_internal.stop AS s, awty.alert AS a";
    assert!(shop.cluster.value::<bool>("postgres", begin));
    shop.run("UPDATE shop.orders SET status = 'UNSHIPPED'");
    let due = "SELECT a.due_at = o.placed_at + interval '3 hours' AND a.cleared_at IS NULL FROM awty.alert AS a, shop.orders AS o";
    assert!(shop.cluster.value::<bool>("postgres", due));
}

#[test]
fn what_cannot_stop_a_clock() {
    let shop = shop();
    let refused = |stopped: &str| {
        let call = format!("SELECT awty.watch('shop.orders', {UNTIL}, within => '3 hours', stopped => $${stopped}$$)");
        refusal(&shop, "shop", &call).0
    };
    assert_eq!(refused("placed_at"), "42804");
    assert_eq!(refused("placed_at < now()"), "0A000");
    assert_eq!(refused("awty.due(placed_at, '1 day', 'office') IS NULL"), "0A000");
    assert_eq!(refused("(SELECT true)"), "0A000");
    assert_eq!(refused("nothing"), "42703");
    let left = "SELECT count(*) FROM pg_proc WHERE proname LIKE 'awty_orders%'";
    assert_eq!(shop.cluster.value::<i64>("postgres", left), 0);
}

#[test]
fn only_a_rule_that_stops_has_a_trigger_for_stops() {
    let shop = shop();
    let triggers = "SELECT string_agg(pg_get_triggerdef(oid), E'\\n' ORDER BY tgname) FROM pg_trigger
        WHERE tgrelid = 'shop.orders'::regclass AND NOT tgisinternal";
    let count = "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'shop.orders'::regclass";
    watch(&shop, "since => 'placed_at', within => '3 hours'");
    let plain: String = shop.cluster.value("postgres", triggers);
    assert!(!plain.contains("stopped"), "{plain}");
    assert_eq!(shop.cluster.value::<i64>("postgres", count), 4);
    watch(&shop, &format!("since => 'placed_at', within => '3 hours', {STOPPED}, replace => true"));
    let stopping: String = shop.cluster.value("postgres", triggers);
    // The DELETE trigger of a rule whose clock can stop has no WHEN condition, because awty must delete the stored
    // stops of each deleted row.
    let others = |triggers: &str| -> Vec<String> {
        let added = |line: &&str| line.contains("awty_orders_stopped ") || line.contains("awty_orders_delete ");
        triggers.lines().filter(|line| !added(line)).map(str::to_owned).collect()
    };
    assert_eq!(others(&stopping), others(&plain));
    let deletes = |triggers: &str, part: &str| triggers.lines().any(|l| l.contains("AFTER DELETE") && l.contains(part));
    assert!(deletes(&plain, " WHEN ") && !deletes(&stopping, " WHEN "), "{plain} {stopping}");
    let explained = |sql: &str| -> String {
        let mut client = shop.client();
        let rows = client.query(&format!("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {sql}"), &[]).unwrap();
        rows.iter().map(|row| row.get::<_, String>(0)).filter(|line| line.contains("calls=")).collect()
    };
    shop.run("INSERT INTO shop.orders VALUES (1, now())");
    assert_eq!(explained("UPDATE shop.orders SET note = 'x', status = 'NEW'"), "");
    let called = explained("UPDATE shop.orders SET status = 'WAITING'");
    assert!(called.contains("awty_orders_stopped: calls=1"), "{called}");
    let twice = explained("UPDATE shop.orders SET status = 'UNSHIPPED', placed_at = placed_at - interval '1 min'");
    assert!(twice.contains("awty_orders_update: calls=1") && !twice.contains("stopped"), "{twice}");
    shop.run("SELECT awty.unwatch('orders')");
    assert_eq!(shop.cluster.value::<i64>("postgres", count), 0);
}

#[test]
fn a_deleted_row_keeps_no_stops() {
    let shop = shop();
    shop.cluster.execute("postgres", &[MINUTES]);
    watch(&shop, &format!("since => 'placed_at', within => '3 hours', {STOPPED}"));
    shop.run("INSERT INTO shop.orders VALUES (1, now() - interval '1 hour', 'WAITING')");
    shop.run("UPDATE shop.orders SET status = 'SHIPPED'");
    assert_eq!(stops(&shop, 1), "0-60");
    shop.run("DELETE FROM shop.orders");
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM awty_internal.stop"), 0);
    shop.run("INSERT INTO shop.orders VALUES (1, now() - interval '2 hours', 'WAITING')");
    assert_eq!(stops(&shop, 1), "since 0");
}

/// A client may stop a row's clock while the row's check runs. If the run then fails, awty must not raise an alert for
/// the row.
#[test]
fn a_failing_call_raises_no_stopped_row() {
    let shop = shop();
    shop.run(&format!(
        "CREATE FUNCTION shop.slow(a awty.alert) RETURNS void LANGUAGE plpgsql AS $$ BEGIN {GATE} RAISE 'no line'; END $$"
    ));
    watch(&shop, &format!("since => 'placed_at', within => '3 hours', call => 'shop.slow', {STOPPED}"));
    shop.run("SELECT awty.alter('orders', retry_after => '1 s')");
    let gate = shop.close_gate();
    shop.run("INSERT INTO shop.orders VALUES (1, now() - interval '4 hours')");
    shop.await_at_gate();
    shop.run("UPDATE shop.orders SET status = 'WAITING'");
    drop(gate);
    shop.await_true("the next run", "SELECT check_count > 0 FROM awty.future_job");
    assert_eq!(state(&shop), "late -; pending 1");
}

/// The replacement of a calendar does not clear the alert of a stopped row.
#[test]
fn the_end_of_a_stop_clears_an_alert_that_is_no_longer_late() {
    let shop = shop();
    shop.run("SELECT awty.create_calendar('always', '{mon-sun 00:00-24:00}', 'UTC')");
    watch(&shop, &format!("since => 'placed_at', within => '3 hours', calendar => 'always', {STOPPED}"));
    shop.run("INSERT INTO shop.orders VALUES (1, now() - interval '4 hours')");
    await_state(&shop, "late 1:1; pending -");
    shop.run("UPDATE shop.orders SET status = 'WAITING'");
    shop.run(
        "SELECT awty.create_calendar('always', '{mon-sun 00:00-24:00}', 'UTC', replace => true,
             closed => ARRAY(SELECT (now() AT TIME ZONE 'UTC')::date + d FROM generate_series(-2, 1) AS d))",
    );
    await_walked(&shop);
    assert_eq!(state(&shop), "late 1:1; pending -");
    shop.run("UPDATE shop.orders SET status = 'UNSHIPPED'");
    assert_eq!(state(&shop), "late -; pending 1");
}

#[test]
fn a_stop_writes_few_rows() {
    let shop = shop();
    shop.run("SELECT awty.create_calendar('always', '{mon-sun 00:00-24:00}', 'UTC')");
    watch(&shop, &format!("due => $$awty.due(placed_at, '3 hours', 'always')$$, {STOPPED}"));
    shop.run("INSERT INTO shop.orders VALUES (1, now())");
    let counted = |update: &str| -> String {
        let mut client = shop.cluster.superuser("postgres");
        client.batch_execute(&format!("SET track_functions = 'all'; BEGIN; UPDATE shop.orders SET {update}")).unwrap();
        let counts = "SELECT concat((SELECT string_agg(concat_ws(' ', relname, n_tup_ins, n_tup_upd, n_tup_del), ', ' ORDER BY relname)
                FROM pg_stat_xact_all_tables WHERE schemaname LIKE 'awty%' AND n_tup_ins + n_tup_upd + n_tup_del > 0),
            '; functions: ', (SELECT count(*) FROM pg_stat_xact_user_functions) > 0)";
        let counts = client.query_one(counts, &[]).unwrap().get(0);
        client.batch_execute("COMMIT").unwrap();
        counts
    };
    assert_eq!(counted("note = 'x'"), "; functions: f");
    assert_eq!(counted("status = 'WAITING'"), "stop 1 0 0; functions: t");
    // The stop must last longer than a slot, because a shorter stop does not move the check.
    shop.cluster
        .execute("postgres", &["UPDATE awty_internal.stop SET stopped_since = stopped_since - interval '1 hour'"]);
    assert_eq!(counted("status = 'UNSHIPPED'"), "future_job 0 1 0, stop 0 1 0; functions: t");
}

#[test]
fn stops_are_deleted_after_the_retention() {
    let shop = shop();
    watch(&shop, &format!("since => 'placed_at', within => '3 hours', {STOPPED}"));
    shop.run("INSERT INTO shop.orders SELECT n, now(), 'WAITING' FROM generate_series(1, 3) AS n");
    shop.run("UPDATE shop.orders SET status = 'SHIPPED' WHERE id < 3");
    let old = "UPDATE awty_internal.stop SET there_at = there_at - interval '400 days' WHERE key = '1'";
    shop.cluster.execute("postgres", &[old]);
    shop.job("wake", awty_testkit::fixture::NOTE, "");
    let left = "SELECT string_agg(key, ' ' ORDER BY key) = '2 3' FROM awty_internal.stop";
    shop.await_true("the row of order 1 to go", left);
}
