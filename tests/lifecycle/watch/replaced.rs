use super::{ORDERS, await_walked};
use awty_testkit::fixture::{GATE, Shop};
use awty_testkit::{Cluster, PATIENCE};

const CLOSED: &str = "ARRAY(SELECT (now() AT TIME ZONE 'UTC')::date + d FROM unnest('{-10,-9,-1,0,1}'::int[]) AS d)";

fn shop() -> Shop {
    let shop = Shop::on(Cluster::builder().start());
    shop.run(ORDERS);
    replace(&shop, "'{}'");
    shop
}

fn replace(shop: &Shop, closed: &str) {
    shop.run(&format!(
        "SELECT awty.create_calendar('always', '{{mon-sun 00:00-24:00}}', 'UTC', closed => {closed}, replace => true)"
    ));
}

#[track_caller]
fn watch(shop: &Shop, rule: &str, how: &str) {
    shop.run(&format!(
        "SELECT awty.watch('shop.orders', rule => '{rule}', until => $$status <> 'UNSHIPPED'$$, existing => 'all', {how})"
    ));
    await_walked(shop);
}

#[track_caller]
fn await_moved(shop: &Shop, rule: &str, keys: &str) {
    let wrong = format!(
        "SELECT coalesce(string_agg(concat_ws(' ', k, f.next_check_at), ', '), '') FROM unnest('{{{keys}}}'::text[]) AS k
         LEFT JOIN awty.future_job AS f ON f.job = '{rule}' AND f.entity_key = k
         LEFT JOIN shop.orders AS o ON o.id::text = k
         WHERE f.next_check_at IS DISTINCT FROM awty.next_slot(awty.due(coalesce(o.placed_at, f.scheduled_at), '8 hours', 'always'))"
    );
    shop.cluster.await_that(rule, PATIENCE, || match shop.cluster.client("postgres", "shop").query_one(&wrong, &[]) {
        Ok(row) if row.get::<_, String>(0).is_empty() => Ok(()),
        Ok(row) => Err(row.get(0)),
        Err(error) => Err(error.to_string()),
    });
}

#[test]
fn a_replaced_calendar_moves_pending_checks_in_both_directions() {
    let shop = shop();
    watch(&shop, "plain", "since => 'placed_at', calendar => 'always', within => '8 hours'");
    watch(&shop, "own", "due => $$awty.due(placed_at, '8 hours', 'always')$$");
    shop.run("INSERT INTO shop.orders VALUES (1, now()), (2, now() - interval '9 hours'), (3, now() - interval '10 days'), (4, now())");
    shop.await_true("the alerts", "SELECT count(*) = 4 FROM awty.alert WHERE told = 1");
    shop.run("SELECT awty.cancel('orders', 4, 'plain')");
    let silenced = shop.cluster.value::<String>("postgres", "SELECT f::text FROM awty.future_job AS f WHERE held");
    replace(&shop, CLOSED);
    for rule in ["plain", "own"] {
        await_moved(&shop, rule, "1,2");
    }
    await_walked(&shop);
    let open = "SELECT string_agg(concat_ws(' ', a.rule, a.entity_key, a.level), ', ' ORDER BY a.rule) FROM awty.alert AS a WHERE cleared_at IS NULL";
    assert_eq!(shop.cluster.value::<String>("postgres", open), "own 3 1, plain 3 1");
    let due = "SELECT bool_and(a.due_at = awty.due(o.placed_at, '8 hours', 'always')) FROM awty.alert AS a
        JOIN shop.orders AS o ON o.id = 3 WHERE a.cleared_at IS NULL";
    assert!(shop.client().query_one(due, &[]).unwrap().get::<_, bool>(0));
    assert_eq!(
        shop.cluster.value::<String>("postgres", "SELECT f::text FROM awty.future_job AS f WHERE held"),
        silenced
    );
    replace(&shop, "'{}'");
    await_moved(&shop, "plain", "1");
    await_moved(&shop, "own", "1,4");
    shop.await_true("order 2 to be late again", "SELECT count(*) = 2 FROM awty.late WHERE entity_key = '2'");
    await_walked(&shop);
    assert_eq!(
        shop.cluster.value::<String>("postgres", "SELECT f::text FROM awty.future_job AS f WHERE held"),
        silenced
    );
}

/// Without `since`, a row's deadline counts from the insertion of the row.
#[test]
fn a_row_keeps_the_start_of_its_clock() {
    let shop = shop();
    watch(&shop, "plain", "calendar => 'always', within => '1 second'");
    shop.run("INSERT INTO shop.orders (id, placed_at) VALUES (1, NULL)");
    shop.await_true("the alert", "SELECT count(*) = 1 FROM awty.late");
    let start = "SELECT since::text FROM awty.alert";
    let before = shop.cluster.value::<String>("postgres", start);
    replace(&shop, CLOSED);
    shop.await_true("the alert to be cleared", "SELECT count(*) = 0 FROM awty.late");
    let same = format!(
        "SELECT scheduled_at::text = '{before}' AND next_check_at > now() + interval '1 day' FROM awty.future_job WHERE entity_key = '1'"
    );
    shop.await_true("a check at the new level 1", &same);
}

#[test]
fn the_check_of_a_row_that_commits_later_moves_too() {
    let shop = shop();
    watch(&shop, "plain", "since => 'placed_at', calendar => 'always', within => '8 hours'");
    shop.run("INSERT INTO shop.orders VALUES (1, now())");
    let mut late = shop.client();
    let mut transaction = late.transaction().unwrap();
    transaction.batch_execute("INSERT INTO shop.orders VALUES (2, now())").unwrap();
    replace(&shop, CLOSED);
    await_moved(&shop, "plain", "1");
    shop.await_true("the second walk", "SELECT walk = 'again' FROM awty.rule");
    transaction.commit().unwrap();
    await_moved(&shop, "plain", "1,2");
    await_walked(&shop);
    assert!(shop.cluster.value::<bool>("postgres", "SELECT walk = 'done' AND walk_after IS NULL FROM awty.rule"));
}

/// After a change of the calendar, awty reads all rows twice. Between the two readings, awty waits until older
/// transactions have ended.
#[test]
fn a_walk_keeps_the_newer_time_of_a_client() {
    let shop = shop();
    watch(&shop, "plain", "since => 'placed_at', calendar => 'always', within => '8 hours'");
    shop.run("INSERT INTO shop.orders VALUES (1, now())");
    let (mut older, mut client) = (shop.client(), shop.client());
    older.batch_execute("BEGIN; CREATE TEMP TABLE t ()").unwrap();
    replace(&shop, "'{2020-01-01}'");
    shop.await_true("the second walk to wait", "SELECT walk = 'again' FROM awty.rule");
    client.batch_execute("BEGIN; UPDATE shop.orders SET placed_at = placed_at - interval '1 hour'").unwrap();
    older.batch_execute("COMMIT").unwrap();
    shop.await_true(
        "the end of the walk, or its wait for the client",
        "SELECT walk = 'done' FROM awty.rule UNION ALL SELECT true FROM pg_stat_activity WHERE wait_event = 'transactionid' AND backend_type = 'awty worker' ORDER BY 1 DESC LIMIT 1",
    );
    client.batch_execute("COMMIT").unwrap();
    await_walked(&shop);
    await_moved(&shop, "plain", "1");
}

/// awty adds checks for rows 1 to 100, and then waits for a lock that the test holds.
#[test]
fn a_calendar_that_is_replaced_during_the_first_walk_moves_all_rows() {
    let shop = shop();
    shop.run(&format!(
        "INSERT INTO shop.orders SELECT n, now() FROM generate_series(1, 150) AS n;
         CREATE FUNCTION shop.shipped(id bigint, status text) RETURNS boolean STABLE LANGUAGE plpgsql AS
             $$ BEGIN IF id > 100 THEN {GATE} ELSIF NOT pg_try_advisory_xact_lock_shared(42) THEN PERFORM pg_sleep(0.01); END IF; RETURN status <> 'UNSHIPPED'; END $$"
    ));
    let gate = shop.close_gate();
    shop.run(
        "BEGIN; SELECT awty.watch('shop.orders', rule => 'plain', until => 'shop.shipped(id, status)', since => 'placed_at', calendar => 'always', within => '8 hours');
         SELECT awty.alter('plain', timeout => '2 s', retry_after => '1 s'); COMMIT",
    );
    shop.await_true("the walk to be in the middle", "SELECT walk = 'new' AND walked_to = '100' FROM awty.rule");
    replace(&shop, CLOSED);
    assert!(shop.cluster.value::<bool>("postgres", "SELECT walk = 'changed' AND walked_to IS NULL FROM awty.rule"));
    drop(gate);
    await_walked(&shop);
    await_moved(&shop, "plain", &(1..=150).map(|id| id.to_string()).collect::<Vec<_>>().join(","));
}

/// The calendar belongs to the owner of the database, but the checks belong to another role (promise P6).
#[test]
fn a_calendar_of_all_moves_the_checks_of_a_role() {
    let shop = Shop::on(Cluster::builder().start());
    shop.run(ORDERS);
    let replace = |closed: &str| {
        shop.cluster.execute(
            "postgres",
            &[&format!(
                "SELECT awty.create_calendar('always', '{{mon-sun 00:00-24:00}}', 'UTC', closed => {closed}, replace => true)"
            )],
        );
    };
    replace("'{}'");
    watch(&shop, "plain", "since => 'placed_at', calendar => 'always', within => '8 hours'");
    watch(&shop, "own", "due => $$awty.due(placed_at, '8 hours', 'always')$$");
    shop.run("INSERT INTO shop.orders VALUES (1, now())");
    replace(CLOSED);
    await_moved(&shop, "plain", "1");
    await_moved(&shop, "own", "1");
}
