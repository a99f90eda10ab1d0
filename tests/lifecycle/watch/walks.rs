//! When a rule is created, awty reads the existing rows of the table in several portions.

use super::{LATE, ORDERS, await_state, await_walked, refusal, state, watch};
use awty_testkit::Signal;
use awty_testkit::fixture::Shop;

fn filled() -> Shop {
    let shop = Shop::open();
    shop.run(ORDERS);
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, now(), DEFAULT), (2, {LATE}, DEFAULT), (3, {LATE}, 'SHIPPED'), (4, NULL, DEFAULT)"));
    shop
}

#[test]
fn existing_says_which_rows_are_taken_in() {
    for (existing, wanted) in
        [("upcoming", "late -; pending 1"), ("all", "late 2:1; pending 1"), ("none", "late -; pending -")]
    {
        let shop = filled();
        watch(&shop, &format!("existing => '{existing}'"));
        await_state(&shop, wanted);
        shop.run(&format!("INSERT INTO shop.orders VALUES (5, {LATE})"));
        await_state(&shop, &wanted.replace("late -", "late 5:1").replace("2:1", "2:1 5:1"));
        assert_eq!(shop.cluster.value::<String>("postgres", "SELECT walk FROM awty.rule"), "done");
    }
}

#[test]
fn watch_waits_for_writers_only() {
    let shop = filled();
    let mut reader = shop.client();
    reader.batch_execute("BEGIN; SELECT count(*) FROM shop.orders").unwrap();
    watch(&shop, "");
    reader.batch_execute("COMMIT").unwrap();
    shop.run("SELECT awty.unwatch('orders')");
    let mut writer = shop.client();
    writer.batch_execute("BEGIN; UPDATE shop.orders SET note = 'x'").unwrap();
    let watched = "SET lock_timeout = '100 ms'; SELECT awty.watch('shop.orders', since => 'placed_at', until => 'false', within => '1 hour')";
    assert_eq!(refusal(&shop, "shop", watched).0, "55P03");
    assert_eq!(state(&shop), "late -; pending -");
}

#[test]
fn a_walk_over_slow_rows_comes_to_its_end() {
    let shop = Shop::open();
    shop.run(ORDERS);
    shop.run("INSERT INTO shop.orders SELECT n FROM generate_series(1, 2500) AS n;
        CREATE FUNCTION shop.slow(id bigint) RETURNS boolean STABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.002); RETURN false; END $$;
        BEGIN; SELECT awty.watch('shop.orders', since => 'placed_at', until => 'shop.slow(id)', within => '3 hours'); SELECT awty.alter('orders', timeout => '3 s', retry_after => '1 s'); COMMIT");
    shop.cluster.await_that("the walk to end", 4 * awty_testkit::PATIENCE, || {
        let walk: String =
            shop.cluster.value("postgres", "SELECT concat_ws(' ', walk, 'at', walked_to) FROM awty.rule");
        if walk.starts_with("done") { Ok(()) } else { Err(walk) }
    });
    let taken = "SELECT count(*) FROM awty.future_job WHERE entity_name = 'orders'";
    assert_eq!(shop.cluster.value::<i64>("postgres", taken), 2500);
}

#[test]
fn a_walk_adds_no_check_for_a_row_that_is_late_already() {
    let shop = Shop::on(awty_testkit::Cluster::builder().with_movable_clock().start());
    shop.run(ORDERS);
    shop.run("INSERT INTO shop.orders (id) VALUES (3);
        CREATE FUNCTION shop.shipped(id bigint, status text) RETURNS boolean STABLE LANGUAGE plpgsql AS
            $$ BEGIN IF id = 3 THEN PERFORM pg_advisory_xact_lock_shared(3); END IF; RETURN status <> 'UNSHIPPED'; END $$");
    let mut barrier = shop.client();
    barrier.batch_execute("SELECT pg_advisory_lock(3)").unwrap();
    shop.run(
        "BEGIN; SELECT awty.watch('shop.orders', until => 'shop.shipped(id, status)', within => '1 hour');
        INSERT INTO shop.orders (id) VALUES (1), (2); COMMIT",
    );
    shop.pass(shop.slot_of("1"));
    await_state(&shop, "late 1:1 2:1; pending -");
    barrier.batch_execute("SELECT pg_advisory_unlock(3)").unwrap();
    await_walked(&shop);
    assert_eq!(state(&shop), "late 1:1 2:1; pending 3");
}

#[test]
fn a_check_that_is_locked_while_its_rule_is_replaced_moves_later() {
    let shop = Shop::open();
    shop.run(ORDERS);
    let watch = |within: &str| {
        shop.run(&format!(
            "SELECT awty.watch('shop.orders', since => 'placed_at', until => $$status <> 'UNSHIPPED'$$, within => '{within}', replace => true)"
        ));
    };
    watch("3 hours");
    await_walked(&shop);
    shop.run("INSERT INTO shop.orders (id) VALUES (1)");
    let before = shop.slot_of("1");
    let mut client = shop.cluster.superuser("postgres");
    client.batch_execute("BEGIN; SELECT FROM awty.future_job WHERE entity_key = '1' FOR UPDATE").unwrap();
    watch("2 hours");
    shop.await_true("the first walk", "SELECT walk = 'again' FROM awty.rule");
    assert_eq!(shop.slot_of("1"), before);
    client.batch_execute("COMMIT").unwrap();
    await_walked(&shop);
    assert_eq!(shop.slot_of("1"), before - chrono::TimeDelta::hours(1));
}

#[test]
fn a_walk_ends_although_the_table_is_emptied() {
    let shop = filled();
    shop.run(
        "BEGIN; SELECT awty.watch('shop.orders', since => 'placed_at', until => 'false', within => '1 hour'); TRUNCATE shop.orders; COMMIT",
    );
    shop.await_true("the end of the walk", "SELECT walk = 'done' FROM awty.rule");
}

#[test]
fn a_walk_whose_check_was_cancelled_is_found_and_goes_on() {
    let shop = filled();
    let watch = "SELECT awty.watch('shop.orders', since => 'placed_at', until => 'false', within => '1 hour')";
    shop.run(&format!("BEGIN; {watch}; SELECT awty.cancel('awty.backfill', 'orders', 'orders'); COMMIT"));
    let found = "SELECT count(*) FROM awty.doctor() WHERE finding = 'rule \"orders\" has not seen all rows that are older than the rule'";
    assert_eq!(shop.cluster.value::<i64>("postgres", found), 1);
    shop.run(watch);
    shop.await_true("the end of the walk", "SELECT walk = 'done' FROM awty.rule");
    assert_eq!(shop.cluster.value::<i64>("postgres", found), 0);
}

#[test]
fn a_walk_goes_on_after_its_worker_is_killed() {
    const ROWS: i64 = 20_000;
    let shop = Shop::on(awty_testkit::Cluster::builder().set("awty.catch_up_rate", "0").start());
    shop.run(ORDERS);
    shop.run(&format!("INSERT INTO shop.orders SELECT n, now() - n % 2 * interval '1 hour', CASE n % 10 WHEN 0 THEN 'SHIPPED' ELSE 'UNSHIPPED' END FROM generate_series(1, {ROWS}) AS n"));
    let taken = "SELECT count(*) FROM awty.future_job WHERE entity_name = 'orders'";
    // Makes the rows slow to read, so that awty needs many runs to read the whole table.
    shop.run("CREATE FUNCTION shop.slow(id bigint) RETURNS boolean STABLE LANGUAGE plpgsql AS $$ BEGIN IF id % 2 = 0 THEN PERFORM pg_sleep(0.0001); END IF; RETURN true; END $$;
        BEGIN; SELECT awty.watch('shop.orders', since => 'placed_at', until => $$status <> 'UNSHIPPED' AND shop.slow(id) OR NOT shop.slow(id)$$, within => '3 hours'); SELECT awty.alter('orders', timeout => '4 s', retry_after => '1 s'); COMMIT");
    let worker = shop.cluster.await_that("the walk to be in the middle", awty_testkit::PATIENCE, || {
        let begun = shop.cluster.value::<bool>("postgres", "SELECT walked_to IS NOT NULL FROM awty.rule");
        let workers = shop.cluster.pids("awty worker");
        workers.first().copied().filter(|_| begun).ok_or_else(|| format!("{begun}, {workers:?}"))
    });
    shop.cluster.kill(Signal::KILL, worker);
    shop.cluster.await_log(&["all server processes terminated; reinitializing"], 0);
    let connected = || shop.cluster.try_client("postgres", "shop").map(|_| ()).map_err(|error| error.to_string());
    shop.cluster.await_that("the server to be back", awty_testkit::PATIENCE, connected);
    shop.run("DELETE FROM shop.orders WHERE id % 1000 = 1; UPDATE shop.orders SET status = 'SHIPPED' WHERE id % 1000 = 2; UPDATE shop.orders SET status = 'UNSHIPPED' WHERE id % 1000 = 10");
    let walk = "SELECT concat_ws(' ', r.walk, r.walked_to, f) FROM awty.rule AS r LEFT JOIN awty.future_job AS f ON f.entity_name = 'awty.backfill'";
    shop.cluster.await_that("the walk to end", 4 * awty_testkit::PATIENCE, || {
        match shop.cluster.value::<String>("postgres", walk) {
            walk if walk.starts_with("done") => Ok(()),
            walk => Err(walk),
        }
    });
    let missing = "SELECT count(*) FROM shop.orders AS o LEFT JOIN awty.future_job AS f ON f.entity_key = o.id::text AND f.entity_name = 'orders'
        WHERE o.status = 'UNSHIPPED' AND f.next_check_at IS DISTINCT FROM awty.next_slot(o.placed_at + interval '3 hours')";
    assert_eq!(shop.cluster.value::<i64>("postgres", missing), 0);
    // awty reads the rows in portions. If a client changes a row while awty reads the portion with this row, awty may
    // add a check that the row does not need.
    let more: i64 = shop.cluster.value(
        "postgres",
        &format!("SELECT ({taken}) - (SELECT count(*) FROM shop.orders WHERE status = 'UNSHIPPED')"),
    );
    assert!((0..=100).contains(&more), "{more}");
}

#[test]
fn rows_that_change_during_the_walk_end_up_right() {
    let shop = Shop::on(awty_testkit::Cluster::builder().set("awty.catch_up_rate", "0").start());
    shop.run(ORDERS);
    shop.run(&format!("INSERT INTO shop.orders SELECT n, {LATE} FROM generate_series(1, 5000) AS n"));
    shop.run("SELECT awty.watch('shop.orders', since => 'placed_at', until => $$status <> 'UNSHIPPED'$$, within => '3 hours', existing => 'all')");
    for key in (1..5000).step_by(50) {
        shop.run(&format!("UPDATE shop.orders SET status = 'SHIPPED' WHERE id = {key}; DELETE FROM shop.orders WHERE id = {key} + 1; UPDATE shop.orders SET id = -id WHERE id = {key} + 2"));
    }
    await_walked(&shop);
    shop.await_true("all to be judged", "SELECT NOT EXISTS (SELECT FROM awty.future_job)");
    let wrong = "SELECT count(*) FROM shop.orders AS o FULL JOIN (SELECT * FROM awty.alert WHERE cleared_at IS NULL) AS a ON a.entity_key = o.id::text
        WHERE (a.id IS NOT NULL) <> (o.id IS NOT NULL AND o.status = 'UNSHIPPED')";
    assert_eq!(shop.cluster.value::<i64>("postgres", wrong), 0);
}
