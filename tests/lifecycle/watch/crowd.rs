//! Eight sessions change rows, holds and calendars, while awty reads the same rows for two rules.

use super::{ORDERS, await_walked};
use awty_testkit::fixture::Shop;
use awty_testkit::postgres::Client;

const ROWS: u64 = 3;
const STEPS: u64 = 400;

const RULES: &str = "SELECT awty.create_calendar('always', '{mon-sun 00:00-24:00}', 'UTC');
    CREATE TABLE shop.told (alert bigint, told bigint, cleared boolean);
    CREATE FUNCTION shop.tell(a awty.alert) RETURNS void LANGUAGE sql AS $$ INSERT INTO shop.told VALUES (a.id, a.told, a.cleared_at IS NOT NULL) $$;
    SELECT awty.watch('shop.orders', rule => 'promise', since => 'placed_at', until => $$status = 'SHIPPED'$$, within => '3 hours', calendar => 'always',
        stopped => $$status = 'WAITING'$$, remind => '{1 hour}', escalate => '{5 hours}', every => '1 s', call => 'shop.tell', call_cleared => 'shop.tell');
    SELECT awty.watch('shop.orders', rule => 'own', due => $$awty.due(placed_at, '4 hours', 'always')$$, until => $$status = 'SHIPPED'$$,
        call => 'shop.tell')";

/// Returns random SQL. Each statement locks a row before the row's alert, so that concurrent sessions do not deadlock.
fn step(session: u64, n: u64) -> String {
    let dice = (session * 7919 + n * 104_729).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 17;
    let (row, rule) = (dice / 97 % ROWS, if (dice / 7).is_multiple_of(2) { "promise" } else { "own" });
    let set = |what: &str| format!("UPDATE shop.orders SET {what} WHERE id = {row}");
    match dice % 16 {
        0..=2 => set("status = 'WAITING'"),
        3..=5 => set("status = 'UNSHIPPED'"),
        6 => set("status = 'SHIPPED'"),
        7 => set("placed_at = now() - interval '4 hours'"),
        8 => set("placed_at = now() - interval '150 min'"),
        9 => format!("DELETE FROM shop.orders WHERE id = {row}"),
        10 => format!("INSERT INTO shop.orders VALUES ({row}, now() - interval '6 hours') ON CONFLICT DO NOTHING"),
        11 => format!("SELECT awty.hold('orders', {row}, '{rule}', held_until => now() + interval '2 s')"),
        12 => format!("BEGIN; {}; SELECT awty.hold('orders', {row}, '{rule}'); COMMIT", set("note = 'held'")),
        13 => format!("SELECT awty.release('orders', {row}, '{rule}')"),
        14 => format!("SELECT awty.check_now('orders', {row}, '{rule}')"),
        _ => format!(
            "SELECT awty.create_calendar('always', '{{mon-sun 00:00-24:00}}', 'UTC', replace => true,
                 closed => ARRAY(SELECT (now() AT TIME ZONE 'UTC')::date - {} WHERE {} > 0))",
            dice / 16 % 3,
            dice / 16 % 3
        ),
    }
}

/// Returns the session's errors, except errors that other sessions cause, such as a missing check, a running check or a
/// busy calendar.
fn session(client: &mut Client, session: u64) -> Vec<String> {
    let mut errors = Vec::new();
    for n in 0..STEPS {
        let script = step(session, n);
        if let Err(error) = client.batch_execute(&script) {
            let code = error.code().map_or("none", |code| code.code()).to_owned();
            client.batch_execute("ROLLBACK").unwrap();
            if !["42704", "55000", "55006", "55P03"].contains(&code.as_str()) {
                errors.push(format!("{script}: {error:?}"));
            }
        }
    }
    errors
}

#[test]
fn eight_sessions_change_everything_at_once() {
    let shop = Shop::open();
    shop.run(ORDERS);
    shop.run(RULES);
    await_walked(&shop);
    let errors: Vec<String> = std::thread::scope(|scope| {
        let sessions: Vec<_> = (0..8).map(|n| (shop.client(), n)).collect();
        let sessions: Vec<_> =
            sessions.into_iter().map(|(mut client, n)| scope.spawn(move || session(&mut client, n))).collect();
        while sessions.iter().any(|session| !session.is_finished()) {
            // Changes the rules one by one, because a single statement could lock the rules in another order than
            // `awty.create_calendar()`.
            for rule in ["promise", "own"] {
                let due = format!("UPDATE awty.rule SET swept_at = '-infinity' WHERE rule = '{rule}'");
                shop.cluster.execute("postgres", &[&due]);
            }
            shop.run("SELECT awty.pause('own'), awty.resume('own')");
        }
        sessions.into_iter().flat_map(|session| session.join().unwrap()).collect()
    });
    let log = shop.cluster.log_since(0);
    let deadlock = log.find("deadlock detected").map_or("", |at| &log[at..log.len().min(at + 3_000)]);
    assert!(errors.is_empty() && deadlock.is_empty(), "{}\n{deadlock}", errors.join("\n"));
    await_walked(&shop);
    let twice = "SELECT count(*) FROM (SELECT FROM awty.alert WHERE cleared_at IS NULL GROUP BY rule, entity_key HAVING count(*) > 1) AS d";
    assert_eq!(shop.cluster.value::<i64>("postgres", twice), 0, "a row has two open alerts");
    // A held alert at its last level has a check only if the hold has an end.
    let clocks = "SELECT coalesce(string_agg(concat_ws(' ', o.id, o.status, s.stopped_since), ', '), '-') FROM shop.orders AS o
        LEFT JOIN awty_internal.stop AS s ON s.rule = 'promise' AND s.key = o.id::text
        LEFT JOIN awty.future_job AS f ON f.job = 'promise' AND f.entity_name = 'orders' AND f.entity_key = o.id::text
        WHERE o.status <> 'SHIPPED' AND (s.stopped_since IS NOT NULL) <> (o.status = 'WAITING') OR o.status <> 'SHIPPED' AND f.id IS NULL
           AND NOT EXISTS (SELECT FROM awty.alert AS a WHERE a.rule = 'promise' AND a.entity_key = o.id::text AND a.cleared_at IS NULL
                           AND a.level = 2 AND a.held_by IS NOT NULL AND a.held_until IS NULL)";
    let found = shop.cluster.value::<String>("postgres", clocks);
    if found != "-" {
        let more = "SELECT string_agg(x, E'\\n') FROM (
            (SELECT 'history ' || h::text FROM awty.future_job_history AS h WHERE h.job = 'promise' ORDER BY h.finished_at DESC LIMIT 12)
            UNION ALL SELECT 'check ' || f::text FROM awty.future_job AS f
            UNION ALL SELECT 'alert ' || a::text FROM awty.alert AS a WHERE a.cleared_at IS NULL
            UNION ALL SELECT 'row ' || o::text || ' ' || o.xmin FROM shop.orders AS o
            UNION ALL SELECT 'rule ' || r::text FROM awty.rule AS r
            UNION ALL SELECT 'now ' || now()
            UNION ALL SELECT 'stop ' || s::text FROM awty_internal.stop AS s) AS t (x)";
        panic!("a row without its clock or its check: {found}\n{}", shop.cluster.value::<String>("postgres", more));
    }
    shop.run("UPDATE shop.orders SET status = 'SHIPPED'");
    let left = "SELECT NOT EXISTS (SELECT FROM awty.alert WHERE cleared_at IS NULL) AND NOT EXISTS (SELECT FROM awty.future_job)";
    shop.await_true("all to be met and told", left);
    // Counts alerts whose column `told` differs from the number of runs of `call`. Ended alerts of the rule `promise`
    // also need exactly one run of `call_cleared`.
    let wrong = "SELECT count(*) FROM awty.alert AS a LEFT JOIN (
            SELECT alert, count(*) FILTER (WHERE NOT cleared) AS told, count(*) FILTER (WHERE cleared) AS cleared FROM shop.told GROUP BY alert) AS t
            ON t.alert = a.id
        WHERE a.told <> coalesce(t.told, 0) OR a.rule = 'promise' AND a.told > 0 AND a.told_at >= a.raised_at AND coalesce(t.cleared, 0) <> 1";
    assert_eq!(shop.cluster.value::<i64>("postgres", wrong), 0, "tellings without their alert");
}
