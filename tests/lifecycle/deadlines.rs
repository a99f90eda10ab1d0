//! Tests one service level agreement of each of six help desks. Each takes at most two statements, and is proven over a
//! simulated year with `awty.travel()`.
//!
//! A ticket comes every 23 hours, so that tickets come at each hour of the day and week. The customers' and agents'
//! writes come at the same times. What must be true of each ticket is computed from these writes.

use awty_testkit::Cluster;
use awty_testkit::fixture::Shop;
use awty_testkit::postgres::Client;

const OFFICE: &str = "SELECT awty.create_calendar('office', zone => 'Europe/Berlin',
    closed => ARRAY(SELECT (now() + n * interval '13 days')::date FROM generate_series(1, 40) AS n),
    hours => '{mon-thu 09:00-12:30, mon-thu 13:30-17:30, fri 09:00-14:00}')";

/// Is this local time open, without awty's functions?
const IS_OPEN: &str = "CREATE FUNCTION shop.is_open(t timestamptz) RETURNS boolean STABLE LANGUAGE sql AS $$
    SELECT NOT EXISTS (SELECT FROM awty.calendar AS c WHERE l.at::date = ANY (c.closed))
       AND CASE WHEN extract(isodow FROM l.at) <= 4 THEN l.at::time >= '09:00' AND l.at::time < '12:30' OR l.at::time >= '13:30' AND l.at::time < '17:30'
                WHEN extract(isodow FROM l.at) = 5 THEN l.at::time >= '09:00' AND l.at::time < '14:00' ELSE false END
    FROM (SELECT t AT TIME ZONE 'Europe/Berlin' AS at) AS l $$";

struct Agreement {
    product: &'static str,
    /// The statement beside [`OFFICE`].
    watch: &'static str,
    /// Time at which the ticket is done, as a column of `ticket`.
    done: &'static str,
    /// The times of the levels of a ticket `t`, in SQL.
    levels: &'static [&'static str],
    /// The last reminder, as an interval of open time before level 1.
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

/// Replies come within three days and solutions within 21 days, in a pattern that repeats after 377 tickets.
const STEP: &str = "
    INSERT INTO ticket (id, priority, created_at, replies_after, solves_after)
        SELECT n, (ARRAY['urgent', 'high', 'normal'])[1 + n % 3], awty.now(), (n * 7 % 13) * interval '6 hours', (n * 11 % 29) * interval '18 hours'
        FROM (SELECT count(*) AS n FROM ticket) AS t;
    UPDATE ticket SET first_reply_at = awty.now() WHERE first_reply_at IS NULL AND created_at + replies_after <= awty.now();
    UPDATE ticket SET solved_at = awty.now() WHERE solved_at IS NULL AND created_at + solves_after <= awty.now();
    SELECT count(*) FROM awty.travel('23 hours', max => 100000);";

fn shop() -> Shop {
    let shop = Shop::on(Cluster::builder().set("awty.time_travel", "on").start());
    shop.run(&format!(
        "CREATE TABLE shop.ticket (id bigint PRIMARY KEY, priority text NOT NULL, created_at timestamptz NOT NULL, first_reply_at timestamptz,
             solved_at timestamptz, replies_after interval NOT NULL, solves_after interval NOT NULL);
         CREATE TABLE shop.told (key bigint, level integer, at timestamptz);
         CREATE FUNCTION shop.tell(a awty.alert) RETURNS void LANGUAGE sql AS $$ INSERT INTO told VALUES (a.entity_key::bigint, a.level, awty.now()) $$;
         ALTER ROLE shop SET search_path = shop; {IS_OPEN}"
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

/// Returns what is wrong after a year.
fn judge(client: &mut Client, agreement: &Agreement) -> Vec<String> {
    let Agreement { done, levels, remind, .. } = agreement;
    let slot = |time: &str| format!("date_trunc('second', {time} + interval '0.999999 s')");
    let levels: Vec<String> = levels.iter().map(|level| slot(level)).collect();
    // A write in the same moment as a level comes after the level, because travel runs what is due at its goal.
    let reached: Vec<String> = levels.iter().map(|at| format!("({at} <= coalesce({done}, awty.now()))::int")).collect();
    let (first, reached) = (&levels[0], reached.join(" + "));
    let tickets = format!(
        "(SELECT t.id, t.created_at, t.{done} AS done_at, {first} AS due, {reached} AS level, a.level AS found, a.raised_at, a.cleared_at, a.reminded_at,
              a.due_at
          FROM ticket AS t LEFT JOIN awty.alert AS a ON a.entity_key = t.id::text) AS t"
    );
    let mut found = faults(
        client,
        "format('ticket %s of %s should reach level %s until %s: %s', id, created_at, level, done_at, found)",
        &format!("{tickets} WHERE coalesce(found, 0) <> level"),
    );
    found.extend(faults(
        client,
        "format('the alert of %s is raised at %s for %s', id, raised_at, due)",
        &format!("{tickets} WHERE level > 0 AND (raised_at BETWEEN due AND due + interval '1 min') IS NOT TRUE"),
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
                     (abs(extract(epoch FROM awty.open_time(reminded_at, due_at, 'office') - interval '{remind}')) < 2) IS NOT TRUE"
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
            let closed = "told WHERE NOT is_open(date_trunc('second', at) - interval '1 s') AND NOT is_open(at)";
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
