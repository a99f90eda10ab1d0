use super::{ORDERS, await_state, await_walked, expect, refusal, state};
use awty_testkit::Cluster;
use awty_testkit::fixture::Shop;

/// Friday of next week, 12:00 UTC.
const FRIDAY: &str = "(date_trunc('week', now() AT TIME ZONE 'UTC') + interval '11 days 12 hours') AT TIME ZONE 'UTC'";
const OFFICE: &str = "SELECT awty.create_calendar('office', '{mon-fri 09:00-17:00}', 'UTC')";

fn shop(calendar: &str, rule: &str) -> Shop {
    let shop = Shop::on(Cluster::builder().set("awty.time_travel", "on").start());
    shop.run(ORDERS);
    shop.run(calendar);
    shop.run(&format!("SELECT awty.watch('shop.orders', until => $$status <> 'UNSHIPPED'$$, {rule})"));
    await_walked(&shop);
    shop
}

#[test]
fn levels_are_due_after_open_time() {
    let shop = shop(OFFICE, "since => 'placed_at', calendar => 'office', within => '8 hours', escalate => '{3 days}'");
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, {FRIDAY})"));
    let first = format!("SELECT next_check_at = {FRIDAY} + interval '3 days' FROM awty.future_job");
    assert!(shop.cluster.value::<bool>("postgres", &first), "eight hours from Friday 12:00 are Monday 12:00");
    let mut client = shop.client();
    let mut journey = client.transaction().unwrap();
    let ran = |journey: &mut awty_testkit::postgres::Transaction, ahead: &str| {
        let rows = journey.query(&format!("SELECT slot, outcome FROM awty.travel('{ahead}')"), &[]).unwrap();
        rows.iter().map(|row| row.get::<_, Option<String>>(1)).collect::<Vec<_>>()
    };
    assert_eq!(ran(&mut journey, "31 days"), [None, Some("done".into())]);
    let times = format!(
        "SELECT a.level = 2 AND a.due_at = f.at + interval '3 days' AND a.told = 2
             AND date_trunc('minute', a.raised_at) = f.at + interval '3 days'
             AND date_trunc('minute', a.escalated_at) = f.at + interval '5 days'
         FROM awty.alert AS a, (SELECT {FRIDAY}) AS f (at)"
    );
    assert!(journey.query_one(&times, &[]).unwrap().get::<_, bool>(0), "days are Monday, Tuesday, Wednesday");
}

#[test]
fn the_next_level_is_shown_in_open_time() {
    let shop = shop(
        "SELECT awty.create_calendar('always', '{mon-sun 00:00-24:00}', 'UTC')",
        "since => 'placed_at', calendar => 'always', within => '1 hour', escalate => '{1 day}'",
    );
    shop.run("INSERT INTO shop.orders VALUES (1, now() - interval '2 hours')");
    await_state(&shop, "late 1:1; pending 1");
    let shown =
        "SELECT l.next_level_at = o.placed_at + interval '1 day' AND f.next_check_at = awty.next_slot(l.next_level_at)
        FROM awty.late AS l, shop.orders AS o, awty.future_job AS f";
    assert!(shop.cluster.value::<bool>("postgres", shown), "{:?}", shop.cluster.psql("postgres", "TABLE awty.late"));
    assert_eq!(
        refusal(&shop, "shop", "SELECT awty.drop_calendar('always')").1,
        "calendar \"always\" is in use It is used by rule \"orders\"."
    );
    shop.run("SELECT awty.unwatch('orders'), awty.drop_calendar('always')");
}

#[test]
fn nothing_is_raised_while_the_calendar_is_closed() {
    let calendar = |closed: &str| {
        format!(
            "SELECT awty.create_calendar('c', '{{mon-sun 00:00-24:00}}', 'UTC', closed => {closed}, replace => true)"
        )
    };
    let days = "ARRAY(SELECT (now() AT TIME ZONE 'UTC')::date + day FROM generate_series(-1, 1) AS day)";
    let shop = shop(&calendar(days), "since => 'placed_at', calendar => 'c', within => '1 hour', existing => 'all'");
    shop.run("INSERT INTO shop.orders SELECT n, now() - interval '10 days' FROM generate_series(1, 3) AS n");
    let waits =
        "SELECT bool_and(next_check_at AT TIME ZONE 'UTC' = (now() AT TIME ZONE 'UTC')::date + 2) FROM awty.future_job";
    assert!(shop.cluster.value::<bool>("postgres", waits));
    shop.run("SELECT awty.check_now('orders', 1)");
    shop.await_true("a run", "SELECT check_count = 1 FROM awty.future_job WHERE entity_key = '1'");
    assert!(shop.cluster.value::<bool>("postgres", waits), "it waits for the opening again");
    assert_eq!(state(&shop), "late -; pending 1 2 3");
    expect(&shop, "UPDATE shop.orders SET status = 'SHIPPED' WHERE id = 2", "late -; pending 1 3");
    shop.run(&calendar("'{}'"));
    await_state(&shop, "late 1:1 3:1; pending -");
}

const PROMISED: &str = "ALTER TABLE shop.orders ADD promised interval, ADD hours text";

#[test]
fn a_row_is_due_at_its_own_time() {
    let shop = shop(
        &format!("{OFFICE}; {PROMISED}"),
        "due => 'awty.due(placed_at, promised, hours)', calendar => 'office', escalate => '{1 hour}'",
    );
    // Row 3 is late, so its check would run in opening hours.
    shop.run("SELECT awty.pause('orders')");
    shop.run(&format!(
        "INSERT INTO shop.orders (id, placed_at, promised, hours) VALUES (1, {FRIDAY}, '8 hours', 'office'), (2, {FRIDAY}, NULL, 'office'),
             (3, '2020-01-04 12:00Z', '1 hour', 'office')"
    ));
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM awty.future_job WHERE entity_key = '2'"), 0);
    let due = |days: i32| {
        format!("SELECT next_check_at = {FRIDAY} + interval '{days} days' FROM awty.future_job WHERE entity_key = '1'")
    };
    assert!(shop.cluster.value::<bool>("postgres", &due(3)));
    shop.run("UPDATE shop.orders SET promised = '2 days' WHERE id = 1; UPDATE shop.orders SET promised = '8 hours' WHERE id = 2");
    assert!(shop.cluster.value::<bool>("postgres", &due(4)), "two open days from Friday are Tuesday");
    shop.run("UPDATE shop.orders SET promised = NULL WHERE id = 1");
    let pending = "SELECT string_agg(entity_key, ' ' ORDER BY entity_key) FROM awty.future_job";
    assert_eq!(shop.cluster.value::<String>("postgres", pending), "2 3");
    // The trigger's WHEN clause calls no function of the rule except the function of `until`.
    shop.run("ALTER FUNCTION shop.awty_orders_due RENAME TO gone; UPDATE shop.orders SET note = 'x' WHERE id = 2; ALTER FUNCTION shop.gone RENAME TO awty_orders_due");
}

#[test]
fn a_due_time_needs_no_calendar() {
    let shop = shop(OFFICE, "due => 'placed_at', escalate => '{1 day}'");
    shop.run("INSERT INTO shop.orders VALUES (1, now() - interval '1 hour'), (2, now() + interval '1 hour'), (3, 'infinity'), (4, '-infinity')");
    await_state(&shop, "late 1:1 4:2; pending 1 2");
    let alert = "SELECT a.since IS NULL AND a.due_at = o.placed_at AND l.next_level_at = o.placed_at + interval '1 day'
        FROM awty.alert AS a JOIN awty.late AS l USING (rule, entity_key), shop.orders AS o WHERE o.id = 1 AND a.entity_key = '1'";
    assert!(shop.cluster.value::<bool>("postgres", alert));
    expect(
        &shop,
        "UPDATE shop.orders SET placed_at = now() + interval '2 hours' WHERE id = 1",
        "late 4:2; pending 1 2",
    );
    expect(&shop, "UPDATE shop.orders SET placed_at = NULL WHERE id < 3", "late 4:2; pending -");
}

#[test]
fn due_times_are_evaluated_as_the_owner_of_the_table() {
    let shop = shop(&format!("{OFFICE}; {PROMISED}"), "due => 'awty.due(placed_at, promised, hours)'");
    shop.cluster.create_user("postgres", "clerk");
    shop.run("GRANT USAGE ON SCHEMA shop TO clerk; GRANT ALL ON shop.orders TO clerk");
    let mut clerk = shop.cluster.client("postgres", "clerk");
    clerk
        .batch_execute(
            "INSERT INTO shop.orders (id, placed_at, promised, hours) VALUES (1, now(), '80 hours', 'office')",
        )
        .unwrap();
    clerk.batch_execute("UPDATE shop.orders SET promised = '90 hours'").unwrap();
    assert_eq!(state(&shop), "late -; pending 1");
    let refused = clerk.batch_execute("UPDATE shop.orders SET hours = 'none'").unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "42704", "{refused:?}");
}
