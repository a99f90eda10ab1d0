//! awty can miss writes because of a disabled trigger, a policy or a restore.

use super::{LATE, await_state, await_walked, state, watch, watched};

const BYPASS: &str = "SET session_replication_role = replica;
    UPDATE shop.orders SET status = 'SHIPPED' WHERE id = 1; DELETE FROM shop.orders WHERE id = 2;
    UPDATE shop.orders SET placed_at = now() WHERE id = 3; UPDATE shop.orders SET placed_at = NULL WHERE id = 4";

/// A sweep compares all rows with all alerts. awty sweeps once a day, after `awty.adopt()`, and after a change of the
/// rule.
#[test]
fn a_sweep_clears_what_triggers_have_missed() {
    let shop = watched("");
    shop.run(&format!("INSERT INTO shop.orders SELECT n, {LATE} FROM generate_series(1, 5) AS n"));
    await_state(&shop, "late 1:1 2:1 3:1 4:1 5:1; pending -");
    shop.job("wake", awty_testkit::fixture::NOTE, "");
    shop.await_true("the first sweep", "SELECT swept_at IS NOT NULL FROM awty.rule");
    await_walked(&shop);
    shop.cluster.execute("postgres", &[&format!("{BYPASS}; RESET session_replication_role")]);
    assert_eq!(state(&shop), "late 1:1 2:1 3:1 4:1 5:1; pending -");
    shop.cluster.execute("postgres", &["UPDATE awty.rule SET swept_at = swept_at - interval '1 day'"]);
    shop.job("wake_again", awty_testkit::fixture::NOTE, "");
    await_state(&shop, "late 5:1; pending 3");
    let history: i64 = shop.cluster.value(
        "postgres",
        "SELECT count(*) FROM awty.future_job_history WHERE entity_name = 'awty.sweep' AND outcome <> 'done'",
    );
    assert_eq!(history, 0);
}

#[test]
fn a_changed_rule_is_followed_by_a_sweep() {
    let shop = watched("");
    shop.run(&format!("INSERT INTO shop.orders SELECT n, {LATE} FROM generate_series(1, 2) AS n"));
    await_state(&shop, "late 1:1 2:1; pending -");
    shop.run("ALTER TABLE shop.orders DISABLE TRIGGER awty_orders_update; UPDATE shop.orders SET status = 'SHIPPED' WHERE id = 1; ALTER TABLE shop.orders ENABLE TRIGGER awty_orders_update");
    watch(&shop, "escalate => '{1 day}', replace => true");
    await_state(&shop, "late 2:1; pending 2");
}

/// A change of a rule schedules a re-check of open alerts in the same transaction, so that no crash can lose the
/// re-check.
#[test]
fn a_change_of_a_rule_brings_its_sweep_itself() {
    let shop = watched("");
    let sweeps = "SELECT count(*) FROM awty.future_job WHERE entity_name = 'awty.sweep'";
    let change = |within: &str| {
        let mut client = shop.cluster.superuser("postgres");
        let mut transaction = client.transaction().unwrap();
        let change = "SELECT awty.watch('shop.orders', since => 'placed_at', until => $$status <> 'UNSHIPPED'$$, replace => true, within => ";
        transaction.batch_execute(&format!("{change}'{within}')")).unwrap();
        let scheduled: i64 = transaction.query_one(sweeps, &[]).unwrap().get(0);
        transaction.commit().unwrap();
        scheduled
    };
    assert_eq!(change("2 hours"), 0, "no alert is open");
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, {LATE})"));
    await_state(&shop, "late 1:1; pending -");
    await_walked(&shop);
    assert_eq!(change("1 hour"), 1);
    await_walked(&shop);
    assert_eq!(state(&shop), "late 1:1; pending -");
}

#[test]
fn a_sweep_comes_back_for_an_alert_that_is_locked() {
    let shop = watched("");
    shop.run(&format!("INSERT INTO shop.orders SELECT n, {LATE} FROM generate_series(1, 2) AS n"));
    await_state(&shop, "late 1:1 2:1; pending -");
    shop.cluster.execute("postgres", &[BYPASS]);
    let mut other = shop.cluster.superuser("postgres");
    other.batch_execute("BEGIN; SELECT FROM awty.alert WHERE entity_key = '1' FOR UPDATE").unwrap();
    shop.run(
        "SELECT awty.watch('shop.orders', since => 'placed_at', until => $$status <> 'UNSHIPPED'$$, within => '3 hours', escalate => '{1 day}', replace => true)",
    );
    let came = "SELECT check_count > 0 FROM awty.future_job WHERE entity_name = 'awty.sweep'";
    shop.await_true("the sweep to come by", came);
    let open = "SELECT string_agg(entity_key, ' ') FROM awty.alert WHERE cleared_at IS NULL";
    assert_eq!(shop.cluster.value::<String>("postgres", open), "1");
    other.batch_execute("ROLLBACK").unwrap();
    await_state(&shop, "late -; pending -");
}

/// The sweep takes longer than its job's timeout, so it needs several transactions.
#[test]
fn a_sweep_over_slow_rows_comes_to_its_end() {
    const ROWS: i64 = 1000;
    let shop = watched("");
    let there = |how: &str| {
        format!(
            "CREATE OR REPLACE FUNCTION shop.there(status text) RETURNS boolean STABLE LANGUAGE plpgsql AS $$ BEGIN {how} RETURN status <> 'UNSHIPPED'; END $$"
        )
    };
    shop.run(&there(""));
    shop.run("SELECT awty.watch('shop.orders', since => 'placed_at', until => 'shop.there(status)', within => '3 hours', replace => true),
        awty.alter('orders', timeout => '2 s', retry_after => '1 s')");
    await_walked(&shop);
    shop.run(&format!("INSERT INTO shop.orders SELECT n, {LATE} FROM generate_series(1, {ROWS}) AS n"));
    let open = "SELECT count(*) FROM awty.alert WHERE cleared_at IS NULL";
    shop.await_true("the alerts", &format!("SELECT ({open}) = {ROWS}"));
    shop.run(&there("PERFORM pg_sleep(0.003);"));
    let mut other = shop.cluster.superuser("postgres");
    other.batch_execute("BEGIN; SELECT FROM awty.alert WHERE entity_key = '1' FOR UPDATE").unwrap();
    shop.cluster.execute(
        "postgres",
        &["SET session_replication_role = replica; DELETE FROM shop.orders WHERE id = 2; UPDATE shop.orders SET status = 'SHIPPED';
            UPDATE awty.rule SET swept_at = NULL"],
    );
    shop.job("wake", awty_testkit::fixture::NOTE, "");
    let left = |wanted: i64| {
        shop.cluster.await_that("the sweep", awty_testkit::PATIENCE, || {
            match shop.cluster.value::<i64>("postgres", open) {
                left if left == wanted => Ok(()),
                left => Err(left.to_string()),
            }
        });
    };
    left(1);
    other.batch_execute("ROLLBACK").unwrap();
    left(0);
    await_walked(&shop);
    let over = "SELECT swept_at IS NOT NULL AND swept_to IS NULL FROM awty.rule";
    assert!(shop.cluster.value::<bool>("postgres", over));
}

#[test]
fn a_change_begins_the_sweep_anew() {
    let shop = watched("");
    shop.run("SELECT awty.create_calendar('always', '{mon-sun 00:00-24:00}', 'UTC')");
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, {LATE}), (2, {LATE})"));
    await_state(&shop, "late 1:1 2:1; pending -");
    let change = |change: &str| {
        shop.cluster.execute("postgres", &["UPDATE awty.rule SET swept_to = '1'"]);
        shop.run(change);
        await_walked(&shop);
    };
    let watch = "SELECT awty.watch('shop.orders', since => 'placed_at', until => $$status <> 'UNSHIPPED'$$, calendar => 'always', replace => true, within => ";
    change(&format!("{watch}'5 hours')"));
    assert_eq!(state(&shop), "late -; pending 1 2");
    change(&format!("{watch}'3 hours')"));
    await_state(&shop, "late 1:1 2:1; pending -");
    let mut older = shop.client();
    older.batch_execute("BEGIN; SELECT pg_current_xact_id()").unwrap();
    shop.run("SELECT awty.create_calendar('always', '{mon-sun 00:00-24:00}', 'UTC', '{2020-01-01}', replace => true)");
    let swept = "SELECT walk = 'again' AND NOT EXISTS (SELECT FROM awty.future_job WHERE entity_name = 'awty.sweep') FROM awty.rule";
    shop.await_true("the first sweep", swept);
    shop.cluster.execute(
        "postgres",
        &["SET session_replication_role = replica; UPDATE shop.orders SET status = 'SHIPPED' WHERE id = 1; UPDATE awty.rule SET swept_to = '1'"],
    );
    older.batch_execute("COMMIT").unwrap();
    await_walked(&shop);
    assert_eq!(state(&shop), "late 2:1; pending -");
}

/// A sweep first reads rows and then clears their alerts. Clients change rows between these two steps.
#[test]
fn a_sweep_leaves_an_alert_whose_row_has_changed_meanwhile() {
    let shop = watched("");
    shop.run(
        "CREATE FUNCTION shop.waits(id bigint) RETURNS boolean STABLE LANGUAGE plpgsql AS
        $$ BEGIN IF id = 3 THEN PERFORM pg_advisory_xact_lock_shared(3); END IF; RETURN false; END $$",
    );
    shop.run(&format!("INSERT INTO shop.orders SELECT n, {LATE} FROM generate_series(1, 3) AS n"));
    await_state(&shop, "late 1:1 2:1 3:1; pending -");
    shop.cluster.execute(
        "postgres",
        &["SET session_replication_role = replica;
            UPDATE shop.orders SET status = 'SHIPPED' WHERE id = 1; DELETE FROM shop.orders WHERE id = 2"],
    );
    let mut barrier = shop.client();
    barrier.batch_execute("SELECT pg_advisory_lock(3)").unwrap();
    shop.run(
        "SELECT awty.watch('shop.orders', since => 'placed_at', until => $$shop.waits(id) OR status <> 'UNSHIPPED'$$, within => '3 hours',
            existing => 'none', replace => true)",
    );
    shop.await_true(
        "the sweep to read the rows",
        "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'advisory' AND backend_type = 'awty worker')",
    );
    shop.run(&format!(
        "UPDATE shop.orders SET status = 'UNSHIPPED' WHERE id = 1; INSERT INTO shop.orders VALUES (2, {LATE})"
    ));
    shop.await_true(
        "the check of row 2 to end",
        "SELECT NOT EXISTS (SELECT FROM awty.future_job WHERE entity_key = '2')",
    );
    barrier.batch_execute("SELECT pg_advisory_unlock(3)").unwrap();
    shop.await_true(
        "the sweep to end",
        "SELECT NOT EXISTS (SELECT FROM awty.future_job WHERE entity_name = 'awty.sweep')",
    );
    await_state(&shop, "late 1:1 2:1 3:1; pending -");
}

#[test]
fn a_sweep_gives_an_alert_the_start_and_the_due_time_of_its_row() {
    let shop = watched("");
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, {LATE})"));
    await_state(&shop, "late 1:1; pending -");
    shop.cluster.execute(
        "postgres",
        &["SET session_replication_role = replica; UPDATE shop.orders SET placed_at = placed_at - interval '1 hour'"],
    );
    shop.run(
        "SELECT awty.watch('shop.orders', since => 'placed_at', until => $$status <> 'UNSHIPPED'$$, within => '2 hours', replace => true)",
    );
    shop.await_true(
        "the new times",
        "SELECT (a.since, a.due_at) = (o.placed_at, o.placed_at + interval '2 hours') FROM awty.alert AS a, shop.orders AS o",
    );
}

#[test]
fn an_inspection_records_nothing_twice() {
    let shop = watched("");
    let recorded = "SELECT count(*) FROM pg_depend WHERE refobjid = 'shop.orders'::regclass AND classid = 'pg_proc'::regclass AND deptype = 'a'";
    assert_eq!(shop.cluster.value::<i64>("postgres", recorded), 2);
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, {LATE})"));
    await_state(&shop, "late 1:1; pending -");
    shop.job("wake", awty_testkit::fixture::NOTE, "");
    shop.await_true("the first sweep", "SELECT swept_at IS NOT NULL FROM awty.rule");
    assert_eq!(shop.cluster.value::<i64>("postgres", recorded), 2);
}

#[test]
fn old_alerts_leave() {
    let shop = watched("");
    shop.run(&format!("INSERT INTO shop.orders SELECT n, {LATE} FROM generate_series(1, 3) AS n"));
    await_state(&shop, "late 1:1 2:1 3:1; pending -");
    shop.run("DELETE FROM shop.orders WHERE id < 3");
    shop.cluster.execute(
        "postgres",
        &[
            "UPDATE awty.alert SET cleared_at = now() - interval '400 days' WHERE entity_key = '1'",
            "UPDATE awty.alert SET raised_at = now() - interval '400 days' WHERE entity_key = '3'",
        ],
    );
    shop.job("wake", awty_testkit::fixture::NOTE, "");
    shop.await_true("the old one to go", "SELECT array_agg(entity_key ORDER BY entity_key) = '{2,3}' FROM awty.alert");
}
