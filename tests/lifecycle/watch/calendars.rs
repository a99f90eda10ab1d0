use super::{ORDERS, await_state, await_walked, expect, refusal, state};
use awty_testkit::Cluster;
use awty_testkit::fixture::Shop;

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
    // Pauses the job, because row 3 is already late. If the test runs in opening hours, awty would run the check of row
    // 3 at once.
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
    shop.run("ALTER FUNCTION shop.awty_orders_due RENAME TO gone; UPDATE shop.orders SET note = 'x' WHERE id = 2; ALTER FUNCTION shop.gone RENAME TO awty_orders_due");
    shop.run("SELECT awty.cancel('orders', 2, 'orders')");
    let held = "SELECT held FROM awty.future_job WHERE entity_key = '2'";
    assert!(shop.cluster.value::<bool>("postgres", held));
    shop.run("UPDATE shop.orders SET promised = '7 hours' WHERE id = 2");
    assert!(!shop.cluster.value::<bool>("postgres", held), "another due time ends the silence");
    assert_eq!(refusal(&shop, "shop", "UPDATE shop.orders SET hours = 'nowhere' WHERE id = 2").0, "42704");
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
    let since_ever = "SELECT late_for IS NULL AND due_at = '-infinity' FROM awty.late WHERE entity_key = '4'";
    assert!(shop.cluster.value::<bool>("postgres", since_ever));
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

/// If awty finds no due time within ten years, awty checks the row after the job's longest delay (`max_horizon`). A
/// calendar with an unknown time zone counts as always open.
#[test]
fn a_calendar_fails_no_write() {
    let shop = shop(OFFICE, "since => 'placed_at', calendar => 'office', within => '8 hours', escalate => '{3 days}'");
    shop.run(
        "INSERT INTO shop.orders VALUES (1, '9999-12-31'), (2, '294276-12-31'); UPDATE shop.orders SET note = 'x'",
    );
    let horizon = "SELECT count(*) = 2 AND bool_and(next_check_at > now() + interval '1 year') FROM awty.future_job";
    assert!(shop.cluster.value::<bool>("postgres", horizon));
    shop.cluster.execute("postgres", &["UPDATE awty.calendar SET zone = 'Mars/Base'"]);
    shop.run(&format!("DELETE FROM shop.orders; INSERT INTO shop.orders VALUES (3, {FRIDAY})"));
    let open = format!("SELECT next_check_at = {FRIDAY} + interval '8 hours' FROM awty.future_job");
    assert!(shop.cluster.value::<bool>("postgres", &open));
    let named =
        "SELECT count(*) = 1 FROM awty.doctor() WHERE level = 'error' AND concat(finding, detail) LIKE '%office%'";
    assert!(
        shop.cluster.value::<bool>("postgres", named),
        "{}",
        shop.cluster.psql("postgres", "SELECT * FROM awty.doctor()")
    );
    shop.cluster.execute("postgres", &["UPDATE awty.calendar SET zone = 'UTC'"]);
    shop.run("UPDATE shop.orders SET placed_at = placed_at + interval '1 minute'");
    let closed = format!("SELECT next_check_at = {FRIDAY} + interval '3 days 1 minute' FROM awty.future_job");
    assert!(shop.cluster.value::<bool>("postgres", &closed));
}

#[test]
fn a_notice_names_the_times_of_a_row_that_starts_now() {
    let shop = Shop::open();
    shop.run(&format!("{ORDERS}; {OFFICE}"));
    let said = |arguments: &str| {
        let call =
            format!("SELECT awty.watch('shop.orders', rule => 'r', until => 'false', {arguments}, replace => true)");
        let output =
            shop.cluster.tool("psql").args(["-X", "-U", "shop", "-d", "postgres", "-c", &call]).output().unwrap();
        String::from_utf8_lossy(&output.stderr).trim().to_owned()
    };
    let all = said("calendar => 'office', within => '2 days', remind => '{1 hour}', escalate => '{7 days}'");
    let [first, second] = all.lines().collect::<Vec<_>>()[..] else { panic!("{all}") };
    let places = ["NOTICE:  a row that starts now: reminder ", ", level 1 ", ", level 2 "].map(|part| first.find(part));
    assert!(places.is_sorted() && places[0] == Some(0), "{all}");
    assert_eq!(second, "NOTICE:  7 days are 7 open days; one week of this calendar is 5 days");
    let due = said("due => 'placed_at', escalate => '{1 hour}', calendar => 'office'");
    assert!(due.starts_with("NOTICE:  a row that is due now: level 1 "), "{due}");
}

#[test]
fn nothing_is_told_in_closed_time_with_a_slot_of_an_hour() {
    let shop = Shop::on(Cluster::builder().set("awty.time_travel", "on").set("awty.slot", "1h").start());
    shop.run(ORDERS);
    shop.run(
        "SELECT awty.create_calendar('office', '{mon-fri 09:30-12:15, mon-fri 13:45-17:20}', 'UTC');
         CREATE TABLE shop.told (key text, level integer, at timestamptz);
         CREATE FUNCTION shop.tell(a awty.alert) RETURNS void LANGUAGE sql AS $$ INSERT INTO shop.told VALUES (a.entity_key, a.level, awty.now()) $$;
         SELECT awty.watch('shop.orders', since => 'placed_at', until => $$status <> 'UNSHIPPED'$$, calendar => 'office', within => '5 hours',
             remind => '{50 minutes}', escalate => '{1 day, 11 hours}', every => '5 hours', call => 'shop.tell', existing => 'none')",
    );
    let mut client = shop.client();
    let mut journey = client.transaction().unwrap();
    journey.batch_execute("INSERT INTO shop.orders SELECT n, awty.now() + n * interval '37 minutes' FROM generate_series(1, 200) AS n").unwrap();
    // Ends the pause on the evening of an open day, so that many overdue checks run after closing time.
    journey
        .batch_execute(
            "SELECT awty.pause('orders', paused_until => (SELECT min(day) + interval '20 hours 30 minutes'
                 FROM generate_series(date_trunc('day', now(), 'UTC') + interval '2 days', now() + interval '5 days', '1 day') AS day
                 WHERE extract(isodow FROM day AT TIME ZONE 'UTC') < 6))",
        )
        .unwrap();
    journey.execute("SELECT count(*) FROM awty.travel('21 days', max => 100000)", &[]).unwrap();
    let paused = "SELECT count(*) FILTER (WHERE raised_at > due_at + interval '2 hours') > 10 FROM awty.alert";
    assert!(journey.query_one(paused, &[]).unwrap().get::<_, bool>(0), "the pause has delayed alerts");
    // Finds calls in closed time. With slots of an hour, awty rounds due times up to a full hour. The office closes at
    // 12:15 and 17:20, so calls up to 13:00 and 18:00 are correct.
    let closed = "SELECT coalesce(string_agg(to_char(at AT TIME ZONE 'UTC', 'Dy HH24:MI'), ', '), '-') FROM (
            SELECT at, at AT TIME ZONE 'UTC' AS l FROM shop.told) AS t
        WHERE extract(isodow FROM l) > 5 OR NOT (l::time BETWEEN '09:59' AND '13:01' OR l::time BETWEEN '13:59' AND '18:01')";
    assert_eq!(journey.query_one(closed, &[]).unwrap().get::<_, String>(0), "-");
    let told = "SELECT count(DISTINCT key) = 200 AND count(DISTINCT level) = 4 AND count(*) > 1000 FROM shop.told";
    assert!(journey.query_one(told, &[]).unwrap().get::<_, bool>(0));
    let early = "SELECT count(*) FROM awty.alert WHERE raised_at < due_at OR told <> (SELECT count(*) FROM shop.told WHERE key = entity_key)";
    assert_eq!(journey.query_one(early, &[]).unwrap().get::<_, i64>(0), 0);
}
