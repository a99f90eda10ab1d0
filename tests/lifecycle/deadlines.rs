//! Simulates a year of six help desks with `awty.travel()`, and checks one service level agreement of each help desk.
//!
//! A ticket comes every 23 hours, so that tickets come at each hour of the day.

use awty_testkit::Cluster;
use awty_testkit::fixture::Shop;
use awty_testkit::postgres::Client;

const OFFICE: &str = "SELECT awty.create_calendar('office', zone => 'Europe/Berlin',
    closed => ARRAY(SELECT (now() + n * interval '13 days')::date FROM generate_series(1, 40) AS n),
    hours => '{mon-thu 09:00-12:30, mon-thu 13:30-17:30, fri 09:00-14:00}')";

/// This function must not call awty's functions, because the test compares its results with awty's results.
const IS_OPEN: &str = "CREATE FUNCTION shop.is_open(t timestamptz) RETURNS boolean STABLE LANGUAGE sql AS $$
    SELECT NOT EXISTS (SELECT FROM awty.calendar AS c WHERE l.at::date = ANY (c.closed))
       AND CASE WHEN extract(isodow FROM l.at) <= 4 THEN l.at::time >= '09:00' AND l.at::time < '12:30' OR l.at::time >= '13:30' AND l.at::time < '17:30'
                WHEN extract(isodow FROM l.at) = 5 THEN l.at::time >= '09:00' AND l.at::time < '14:00' ELSE false END
    FROM (SELECT t AT TIME ZONE 'Europe/Berlin' AS at) AS l $$";

const MOVED: &str = "CREATE FUNCTION shop.moved(due timestamptz, ticket bigint) RETURNS timestamptz STABLE LANGUAGE plpgsql AS $$
    DECLARE
        stop record;
    BEGIN
        FOR stop IN SELECT w.at AS begins, (SELECT min(e.at) FROM shop.waits AS e WHERE e.id = w.id AND e.at > w.at) AS ends
            FROM shop.waits AS w WHERE w.id = ticket AND w.waiting ORDER BY w.at
        LOOP
            EXIT WHEN stop.begins >= due;
            IF stop.ends IS NULL THEN
                RETURN 'infinity';
            ELSIF awty.open_time(stop.begins, stop.ends, 'office') > '0' THEN
                due := awty.due(due, awty.open_time(stop.begins, stop.ends, 'office'), 'office');
            END IF;
        END LOOP;
        RETURN due;
    END $$";

struct Agreement {
    product: &'static str,
    watch: &'static str,
    done: &'static str,
    levels: &'static [&'static str],
    /// Office hours between the last reminder and the deadline (level 1).
    remind: Option<&'static str>,
}

const AGREEMENTS: &[Agreement] = &[
    Agreement {
        product: "Zendesk: first reply time by priority, in business hours",
        watch: "SELECT awty.watch('ticket', rule => 'sla', calendar => 'office', until => 'first_reply_at IS NOT NULL', call => 'tell',
            due => $$awty.due(created_at, CASE priority WHEN 'urgent' THEN interval '1 hour' WHEN 'high' THEN '4 hours' ELSE '8 hours' END, 'office')$$)",
        done: "first_reply_at",
        levels: &["awty.due(t.created_at, CASE t.priority WHEN 'urgent' THEN interval '1 hour' WHEN 'high' THEN '4 hours' ELSE '8 hours' END, 'office')"],
        remind: None,
    },
    Agreement {
        product: "Jira: time to resolution, urgent tickets around the clock",
        watch: "SELECT awty.watch('ticket', rule => 'sla', until => 'solved_at IS NOT NULL', call => 'tell', escalate => '{1 day}',
            due => $$CASE priority WHEN 'urgent' THEN created_at + interval '8 hours' ELSE awty.due(created_at, '16 hours', 'office') END$$)",
        done: "solved_at",
        levels: &[
            "CASE t.priority WHEN 'urgent' THEN t.created_at + interval '8 hours' ELSE awty.due(t.created_at, '16 hours', 'office') END",
            "CASE t.priority WHEN 'urgent' THEN t.created_at + interval '32 hours' ELSE awty.due(t.created_at, '16 hours', 'office') + interval '24 hours' END",
        ],
        remind: None,
    },
    Agreement {
        product: "Jira: time to resolution, with a clock that stops while the customer must answer",
        watch: "SELECT awty.watch('ticket', rule => 'sla', calendar => 'office', since => 'created_at', until => 'solved_at IS NOT NULL',
            within => '16 hours', stopped => 'waiting', escalate => '{24 hours}', call => 'tell')",
        done: "solved_at",
        levels: &[
            "moved(awty.due(t.created_at, '16 hours', 'office'), t.id)",
            "moved(awty.due(t.created_at, '24 hours', 'office'), t.id)",
        ],
        remind: None,
    },
    Agreement {
        product: "ServiceNow: resolution within eight hours of a schedule, with warnings at half and at three quarters",
        watch: "SELECT awty.watch('ticket', rule => 'sla', calendar => 'office', since => 'created_at', until => 'solved_at IS NOT NULL',
            within => '8 hours', remind => '{4 hours, 2 hours}', call => 'tell')",
        done: "solved_at",
        levels: &["awty.due(t.created_at, '8 hours', 'office')"],
        remind: Some("2 hours"),
    },
    Agreement {
        product: "Salesforce: a milestone with a warning and violation actions",
        watch: "SELECT awty.watch('ticket', rule => 'sla', calendar => 'office', since => 'created_at', until => 'first_reply_at IS NOT NULL',
            within => '2 hours', remind => '{30 min}', escalate => '{4 hours, 6 hours}', call => 'tell')",
        done: "first_reply_at",
        levels: &[
            "awty.due(t.created_at, '2 hours', 'office')",
            "awty.due(t.created_at, '4 hours', 'office')",
            "awty.due(t.created_at, '6 hours', 'office')",
        ],
        remind: Some("30 min"),
    },
    Agreement {
        product: "Dynamics: ten days of a customer service calendar, with a warning",
        watch: "SELECT awty.watch('ticket', rule => 'sla', calendar => 'office', since => 'created_at', until => 'solved_at IS NOT NULL',
            within => '10 days', remind => '{6 hours}', call => 'tell')",
        done: "solved_at",
        levels: &["awty.due(t.created_at, '10 days', 'office')"],
        remind: Some("6 hours"),
    },
    Agreement {
        product: "Freshdesk: escalation in four steps, told again each day",
        watch: "SELECT awty.watch('ticket', rule => 'sla', calendar => 'office', since => 'created_at', until => 'solved_at IS NOT NULL',
            within => '1 day', escalate => '{2 days, 3 days, 4 days}', every => '1 day', call => 'tell')",
        done: "solved_at",
        levels: &[
            "awty.due(t.created_at, '1 day', 'office')",
            "awty.due(t.created_at, '2 days', 'office')",
            "awty.due(t.created_at, '3 days', 'office')",
            "awty.due(t.created_at, '4 days', 'office')",
        ],
        remind: None,
    },
];

const STEP: &str = "
    INSERT INTO ticket (id, priority, created_at, replies_after, solves_after)
        SELECT n, (ARRAY['urgent', 'high', 'normal'])[1 + n % 3], awty.now(), (n * 7 % 13) * interval '6 hours', (n * 11 % 29) * interval '18 hours'
        FROM (SELECT count(*) AS n FROM ticket) AS t;
    UPDATE ticket SET first_reply_at = awty.now() WHERE first_reply_at IS NULL AND created_at + replies_after <= awty.now();
    UPDATE ticket SET solved_at = awty.now() WHERE solved_at IS NULL AND created_at + solves_after <= awty.now();
    WITH changed AS (
        UPDATE ticket SET waiting = NOT waiting WHERE solved_at IS NULL AND (id * 5 + (SELECT count(*) FROM ticket)) % 6 = 0 RETURNING id, waiting
    ) INSERT INTO waits SELECT id, waiting, awty.now() FROM changed;
    SELECT count(*) FROM awty.travel('23 hours', max => 100000);";

/// A slot of one minute is longer than any run, so each run reports its result before the next slot.
fn shop() -> Shop {
    let shop = Shop::on(Cluster::builder().set("awty.time_travel", "on").set("awty.slot", "1min").start());
    shop.run(&format!(
        "CREATE TABLE shop.ticket (id bigint PRIMARY KEY, priority text NOT NULL, created_at timestamptz NOT NULL, first_reply_at timestamptz,
             solved_at timestamptz, waiting boolean NOT NULL DEFAULT false, replies_after interval NOT NULL, solves_after interval NOT NULL);
         CREATE TABLE shop.waits (id bigint, waiting boolean, at timestamptz);
         CREATE TABLE shop.told (key bigint, level integer, at timestamptz);
         CREATE FUNCTION shop.tell(a awty.alert) RETURNS void LANGUAGE sql AS $$ INSERT INTO told VALUES (a.entity_key::bigint, a.level, awty.now()) $$;
         ALTER ROLE shop SET search_path = shop; {IS_OPEN}; {MOVED}"
    ));
    shop
}

fn faults(client: &mut Client, what: &str, from: &str) -> Vec<String> {
    let sql = format!(
        "SELECT coalesce(string_agg(f.fault, ', '), '') FROM (SELECT {what} AS fault FROM {from} LIMIT 5) AS f"
    );
    let found: String = client.query_one(&sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error:?}")).get(0);
    if found.is_empty() { Vec::new() } else { vec![found] }
}

fn judge(client: &mut Client, agreement: &Agreement) -> Vec<String> {
    let Agreement { done, levels, remind, .. } = agreement;
    let slot = |time: &str| format!("date_trunc('minute', {time} + interval '59.999999 s')");
    let levels: Vec<String> = levels.iter().map(|level| slot(level)).collect();
    // `awty.travel()` runs the due checks before it returns, so the alert has reached each level that is due.
    let reached: Vec<String> = levels.iter().map(|at| format!("({at} <= coalesce({done}, awty.now()))::int")).collect();
    let (first, reached) = (&levels[0], reached.join(" + "));
    // Ignores tickets that begin to wait within 2 minutes of a deadline, because the simulated time is less exact.
    let close = levels.iter().map(|at| format!("w.at BETWEEN {at} - interval '2 min' AND {at} + interval '2 min'"));
    let close = close.collect::<Vec<_>>().join(" OR ");
    let tickets = format!(
        "(SELECT t.id, t.created_at, t.{done} AS done_at, {first} AS due, {reached} AS level, a.level AS found, a.raised_at, a.cleared_at, a.reminded_at,
              a.due_at
          FROM ticket AS t LEFT JOIN awty.alert AS a ON a.entity_key = t.id::text
          WHERE NOT EXISTS (SELECT FROM waits AS w WHERE w.id = t.id AND w.waiting AND ({close}))) AS t"
    );
    let mut found = faults(
        client,
        "format('ticket %s of %s should reach level %s until %s: %s', id, created_at, level, done_at, found)",
        &format!("{tickets} WHERE coalesce(found, 0) <> level"),
    );
    found.extend(faults(
        client,
        "format('the alert of %s is raised at %s for %s', id, raised_at, due)",
        &format!("{tickets} WHERE level > 0 AND (raised_at BETWEEN due AND due + interval '2 min') IS NOT TRUE"),
    ));
    found.extend(faults(
        client,
        "format('the alert of %s is cleared at %s, not %s', id, cleared_at, done_at)",
        &format!("{tickets} WHERE found > 0 AND cleared_at IS DISTINCT FROM done_at AND (cleared_at - done_at < interval '1 min') IS NOT TRUE"),
    ));
    if let Some(remind) = remind {
        found.extend(faults(
            client,
            "format('the last reminder of %s is at %s for %s', id, reminded_at, due_at)",
            &format!(
                "{tickets} WHERE level > 0 AND
                     (abs(extract(epoch FROM awty.open_time(reminded_at, due_at, 'office') - interval '{remind}')) < 120) IS NOT TRUE"
            ),
        ));
    }
    found
}

#[test]
fn the_agreements_of_six_help_desks_hold_for_a_year() {
    let shop = shop();
    let mut client = shop.client();
    let mut found = Vec::new();
    for agreement in AGREEMENTS {
        client.batch_execute(&format!("BEGIN; {OFFICE}; {}", agreement.watch)).unwrap();
        for _ in 0..382 {
            client.batch_execute(STEP).unwrap();
        }
        let year: bool = client.query_one("SELECT awty.now() > now() + interval '1 year'", &[]).unwrap().get(0);
        assert!(year);
        let mut wrong = judge(&mut client, agreement);
        if agreement.watch.contains("calendar =>") {
            let closed = "told WHERE NOT is_open(at - interval '2 min') AND NOT is_open(at)";
            wrong.extend(faults(&mut client, "format('%s was told at %s', key, at)", closed));
        }
        let many: i64 = client.query_one("SELECT count(*) FROM awty.alert WHERE level > 0", &[]).unwrap().get(0);
        if !(40..370).contains(&many) {
            wrong.push(format!("{many} alerts prove little"));
        }
        found.extend(wrong.into_iter().map(|fault| format!("{}: {fault}", agreement.product)));
        client.batch_execute("ROLLBACK").unwrap();
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

fn told(client: &mut Client) -> String {
    let sql = "SELECT coalesce(string_agg(format('%s %s %s', rule, what, to_char(at AT TIME ZONE 'Europe/Berlin', 'Dy HH24:MI')), ', ' ORDER BY date_trunc('minute', at), rule, what), '-')
        FROM told";
    client.query_one(sql, &[]).unwrap().get(0)
}

fn travel_to(client: &mut Client, week: i32, time: &str) {
    let sql = format!(
        "SELECT awty.travel((date_trunc('week', now() AT TIME ZONE 'Europe/Berlin') + interval '{week} weeks {time}') AT TIME ZONE 'Europe/Berlin' - awty.now())"
    );
    client.batch_execute(&sql).unwrap();
}

const TELLING: &str = "DROP TABLE told;
    CREATE TABLE told (rule text, what text, at timestamptz);
    CREATE OR REPLACE FUNCTION tell(a awty.alert) RETURNS void LANGUAGE sql AS $$ INSERT INTO told VALUES (a.rule, a.level, awty.now()) $$;
    CREATE FUNCTION tell_solved(a awty.alert) RETURNS void LANGUAGE sql AS $$ INSERT INTO told VALUES (a.rule, 'cleared', awty.now()) $$";

const HOURS: &str = "SELECT awty.create_calendar('office', zone => 'Europe/Berlin',
    hours => '{mon-thu 09:00-12:30, mon-thu 13:30-17:30, fri 09:00-14:00}')";

#[test]
fn a_help_desk_has_two_targets_and_a_clock_that_stops() {
    let shop = Shop::on(Cluster::builder().set("awty.time_travel", "on").start());
    shop.run(
        "ALTER ROLE shop SET search_path = shop; CREATE TABLE shop.told (); CREATE TABLE shop.ticket (id bigint PRIMARY KEY,
             created_at timestamptz NOT NULL DEFAULT awty.now(), first_reply_at timestamptz, status text NOT NULL DEFAULT 'open')",
    );
    let mut client = shop.client();
    client
        .batch_execute(&format!(
            "BEGIN; {TELLING}; {HOURS};
             SELECT awty.watch('ticket', rule => 'first_reply', calendar => 'office', since => 'created_at',
               until => 'first_reply_at IS NOT NULL', within => '1 hour', call => 'tell');
             SELECT awty.watch('ticket', rule => 'solved', calendar => 'office', since => 'created_at', until => $$status = 'solved'$$,
               within => '2 days', stopped => $$status = 'waiting'$$, remind => '{{1 day}}', escalate => '{{3 days}}', every => '1 day', call => 'tell')"
        ))
        .unwrap();
    travel_to(&mut client, 1, "9 hours");
    client.batch_execute("INSERT INTO ticket (id) VALUES (1)").unwrap();
    travel_to(&mut client, 1, "1 day 10 hours");
    assert_eq!(told(&mut client), "first_reply 1 Mon 10:00, solved 0 Tue 09:00");
    client.batch_execute("UPDATE ticket SET status = 'waiting', first_reply_at = awty.now()").unwrap();
    travel_to(&mut client, 1, "2 days 11 hours");
    client.batch_execute("UPDATE ticket SET status = 'open'; DELETE FROM told").unwrap();
    // The rule `solved` ignores the eight and a half opening hours in which the ticket's status was `waiting`.
    travel_to(&mut client, 2, "1 day");
    assert_eq!(told(&mut client), "solved 1 Thu 10:00, solved 2 Fri 10:00, solved 2 Mon 10:00");
    let late = "SELECT (rule, entity_key, level, told) = ('solved', '1', 2, 4) FROM awty.late";
    assert!(client.query_one(late, &[]).unwrap().get::<_, bool>(0));
    client.batch_execute("UPDATE ticket SET status = 'solved'").unwrap();
    assert!(client.query("SELECT FROM awty.late", &[]).unwrap().is_empty());
}

#[test]
fn each_order_of_a_shop_has_its_own_promise() {
    let shop = Shop::on(Cluster::builder().set("awty.time_travel", "on").start());
    shop.run(
        "ALTER ROLE shop SET search_path = shop; CREATE TABLE shop.told (); CREATE TABLE shop.orders (id bigint PRIMARY KEY,
             placed_at timestamptz NOT NULL DEFAULT awty.now(), promised interval NOT NULL, warehouse text NOT NULL, shipped_at timestamptz)",
    );
    let mut client = shop.client();
    client
        .batch_execute(&format!(
            "BEGIN; {TELLING}; {HOURS}; SELECT awty.create_calendar('night', '{{mon-sun 22:00-24:00}}', 'Europe/Berlin');
             SELECT awty.watch('orders', rule => 'promise', due => $$awty.due(placed_at, promised, warehouse)$$, calendar => 'office',
               until => 'shipped_at IS NOT NULL', remind => '{{1 day}}', call => 'tell', call_cleared => 'tell_solved')"
        ))
        .unwrap();
    travel_to(&mut client, 1, "9 hours");
    client
        .batch_execute("INSERT INTO orders (id, promised, warehouse) VALUES (42, '2 days', 'office'), (43, '1 hour', 'night'), (44, '4 days', 'office')")
        .unwrap();
    travel_to(&mut client, 1, "2 days 10 hours");
    assert_eq!(told(&mut client), "promise 0 Tue 09:00, promise 1 Tue 09:00, promise 1 Wed 09:00");
    client
        .batch_execute(
            "DELETE FROM told;
             SELECT awty.hold('orders', 42, 'promise', note => 'Anna calls the supplier', held_until => awty.now() + interval '1 day 2 hours');
             UPDATE orders SET shipped_at = awty.now() WHERE id = 43",
        )
        .unwrap();
    let taken = "SELECT (entity_key, held_by, note) = ('42', 'shop', 'Anna calls the supplier') FROM awty.late";
    assert!(client.query_one(taken, &[]).unwrap().get::<_, bool>(0));
    travel_to(&mut client, 1, "3 days 13 hours");
    assert_eq!(told(&mut client), "promise cleared Wed 10:00, promise 0 Thu 09:00, promise 1 Thu 12:00");
    client.batch_execute("DELETE FROM told; UPDATE orders SET shipped_at = awty.now()").unwrap();
    travel_to(&mut client, 1, "5 days");
    assert_eq!(told(&mut client), "promise cleared Thu 13:00");
}

/// Simulates older time zone data by moving the check to the time that the older data would give.
#[test]
fn new_zone_data_moves_checks_of_rules() {
    let mut shop = Shop::open();
    shop.run(
        "CREATE TABLE shop.ticket (id bigint PRIMARY KEY, created_at timestamptz NOT NULL, solved boolean);
         SELECT awty.create_calendar('cairo', '{mon-sun 00:00-24:00}', 'Africa/Cairo');
         SELECT awty.create_calendar('utc', '{mon-sun 00:00-24:00}', 'UTC');
         SELECT awty.watch('shop.ticket', rule => 'other', calendar => 'utc', since => 'created_at', until => 'solved', within => '2 hours');
         SELECT awty.watch('shop.ticket', rule => 'sla', calendar => 'cairo', since => 'created_at', until => 'solved', within => '2 hours');
         INSERT INTO shop.ticket VALUES (1, date_trunc('second', now()))",
    );
    let walked = "SELECT count(*) = 1 AND min(next_check_at - created_at) = interval '2 hours'
        FROM awty.future_job LEFT JOIN shop.ticket ON id::text = entity_key WHERE job = 'sla'"
        .replace("ON id::text", "ON ticket.id::text");
    shop.await_true("the check", &walked);
    shop.cluster.configure("awty.enabled = off");
    shop.cluster.restart();
    shop.cluster.execute(
        "postgres",
        &[
            "UPDATE awty.future_job SET next_check_at = next_check_at + interval '1 hour' WHERE job IN ('sla', 'other')",
            "UPDATE awty.calendar SET zone_hash = zone_hash + 1 WHERE calendar = 'cairo'",
        ],
    );
    shop.cluster.configure("awty.enabled = on");
    shop.cluster.restart();
    shop.await_true("the check to move", &walked);
    let renewed = "SELECT bool_and(hashed_at > pg_postmaster_start_time()) FROM awty.calendar";
    shop.await_true("the hashes to be renewed", renewed);
    let unmoved = walked.replace("'sla'", "'other'").replace("2 hours", "3 hours");
    assert!(shop.cluster.value::<bool>("postgres", &unmoved), "the zone UTC has no new data");
}

#[test]
fn new_zone_data_waits_for_a_locked_rule_alone() {
    let mut shop = Shop::on(Cluster::builder().set("max_prepared_transactions", "1").start());
    shop.run("CREATE TABLE shop.ticket (id bigint PRIMARY KEY, created_at timestamptz NOT NULL, solved boolean)");
    for (name, zone) in [("cairo", "Africa/Cairo"), ("lima", "America/Lima")] {
        shop.run(&format!(
            "SELECT awty.create_calendar('{name}', '{{mon-sun 00:00-24:00}}', '{zone}');
             SELECT awty.watch('shop.ticket', rule => '{name}', calendar => '{name}', since => 'created_at', until => 'solved', within => '2 hours')"
        ));
    }
    shop.run("INSERT INTO shop.ticket VALUES (1, date_trunc('second', now()))");
    let after = |rule: &str, hours: i32| {
        format!(
            "SELECT next_check_at - created_at = interval '{hours} hours' FROM awty.future_job, shop.ticket
             WHERE job = '{rule}' AND entity_name = 'ticket'"
        )
    };
    shop.await_true("the walks", "SELECT NOT EXISTS (SELECT FROM awty.future_job WHERE entity_name LIKE 'awty.%')");
    shop.cluster.configure("awty.enabled = off");
    shop.cluster.restart();
    shop.cluster.execute(
        "postgres",
        &[
            "UPDATE awty.future_job SET next_check_at = next_check_at + interval '1 hour'",
            "UPDATE awty.calendar SET zone_hash = zone_hash + 1",
            "BEGIN; SELECT FROM awty.rule WHERE rule = 'cairo' FOR UPDATE; PREPARE TRANSACTION 'locks'",
        ],
    );
    shop.cluster.configure("awty.enabled = on");
    shop.cluster.restart();
    shop.await_true("the other check to move", &after("lima", 2));
    let hashed = "SELECT string_agg(calendar, ' ') FROM awty.calendar WHERE hashed_at > pg_postmaster_start_time()";
    assert_eq!(shop.cluster.value::<String>("postgres", hashed), "lima");
    assert!(shop.cluster.value::<bool>("postgres", &after("cairo", 3)));
    shop.cluster.execute("postgres", &["ROLLBACK PREPARED 'locks'"]);
    // Pausing a job makes awty inspect the database.
    shop.run("SELECT awty.pause('lima'), awty.resume('lima')");
    shop.await_true("the check to move", &after("cairo", 2));
}
