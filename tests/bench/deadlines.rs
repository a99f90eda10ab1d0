//! Measures how much calendars and stops cost. Most figures are CPU time of the client's server process
//! (`/proc/PID/schedstat`), because other programs use the machine as well.

use crate::calls::Options;
use crate::progress::say;
use crate::results::{Outcome, Wanted, readable};
use crate::shop::{Shop, one};
use crate::stats::{Pairs, median};
use awty_testkit::postgres::Client;
use awty_testkit::{PATIENCE, poll};
use std::collections::HashMap;
use std::time::Instant;

const WRITES: u32 = 5_000;
const CALLS: u32 = 50_000;
const UNTIL: &str = "until => $$status = 'SHIPPED'$$";

fn set_up(shop: &Shop) {
    let tables: String = ["plain", "open", "stopping", "busy", "many"]
        .iter()
        .map(|table| format!("CREATE TABLE shop.{table} (LIKE shop.orders INCLUDING ALL);"))
        .collect();
    let rules = format!(
        "SET ROLE shop; {tables}
         SELECT awty.create_calendar('office', '{{mon-thu 09:00-12:30, mon-thu 13:30-17:30, fri 09:00-14:00}}', 'Europe/Berlin');
         SELECT awty.create_calendar('holidays', '{{mon-sun 09:00-17:00}}', 'Europe/Berlin',
             closed => ARRAY(SELECT '2027-01-01'::date + n * 9 / 5 FROM generate_series(1, 200) AS n));
         SELECT awty.create_calendar('always', '{{mon-sun 00:00-24:00}}', 'UTC');
         SELECT awty.watch('shop.plain', since => 'placed_at', {UNTIL}, within => '8 hours', escalate => '{{16 hours}}');
         SELECT awty.watch('shop.open', since => 'placed_at', {UNTIL}, within => '8 hours', escalate => '{{16 hours}}', calendar => 'office');
         SELECT awty.watch('shop.stopping', since => 'placed_at', {UNTIL}, within => '8 hours', stopped => $$status = 'WAITING'$$);
         SELECT awty.watch('shop.busy', due => $$awty.due(placed_at, '8 hours', 'office')$$, {UNTIL}, stopped => $$status = 'WAITING'$$);
         SELECT awty.watch('shop.many', since => 'placed_at', {UNTIL}, within => '8 hours', calendar => 'always');
         RESET ROLE"
    );
    shop.cluster.execute("postgres", &[&rules]);
    shop.cluster.await_sql("postgres", "the walks to end", "SELECT bool_and(walk = 'done') FROM awty.rule");
}

pub fn used_by(pid: i32) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
    Some(stat.split(' ').next()?.parse::<f64>().ok()? / 1e3)
}

/// Returns the CPU time in microseconds that the statement takes in a new session.
pub fn cpu(shop: &Shop, statement: &str) -> f64 {
    let mut client = shop.cluster.client("postgres", "shop");
    let pid: i32 = one(&mut client, "SELECT pg_backend_pid()", &[]).get(0);
    let used = || used_by(pid).unwrap();
    let before = used();
    client.batch_execute(statement).unwrap();
    used() - before
}

fn fill(shop: &Shop, table: &str) {
    let empty = format!("TRUNCATE awty.future_job, awty_internal.stop, shop.{table}");
    let rows = format!(
        "INSERT INTO shop.{table} SELECT n, 'UNSHIPPED', now(), 'somebody' FROM generate_series(1, {WRITES}) AS n"
    );
    shop.cluster
        .execute("postgres", &[&empty, &rows, "VACUUM ANALYZE awty.future_job, awty_internal.stop", "CHECKPOINT"]);
}

/// Returns a DO block that executes the statement once for each row, because a separate request for each row would use
/// CPU time of its own.
fn each(statement: &str) -> String {
    format!("DO $$ BEGIN FOR n IN 1 .. {WRITES} LOOP {statement}; END LOOP; END $$")
}

fn insert(shop: &Shop, table: &str) -> f64 {
    shop.cluster.execute("postgres", &[&format!("TRUNCATE awty.future_job, shop.{table}"), "CHECKPOINT"]);
    cpu(shop, &each(&format!("INSERT INTO shop.{table} VALUES (n, 'UNSHIPPED', now(), 'somebody')")))
}

fn update(shop: &Shop, table: &str, before: Option<&str>, set: &str) -> f64 {
    fill(shop, table);
    if let Some(before) = before {
        shop.cluster.execute("postgres", &[&format!("UPDATE shop.{table} SET {before}"), "CHECKPOINT"]);
    }
    cpu(shop, &each(&format!("UPDATE shop.{table} SET {set} WHERE id = n")))
}

fn compare(
    outcome: &mut Outcome,
    rounds: usize,
    what: [&str; 2],
    ours: impl FnMut() -> f64,
    theirs: impl FnMut() -> f64,
) {
    let pairs = Pairs::measure(what[0], rounds, ours, theirs);
    let each = |times: &[f64]| readable(median(times) / f64::from(WRITES));
    let detail = format!("{} µs against {} µs of CPU", each(&pairs.ours), each(&pairs.theirs));
    outcome.ratio(what, &pairs, Wanted::AtMost(1.2), detail);
}

fn called_functions(client: &mut Client) -> i64 {
    let sql = "SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_xact_user_functions";
    one(client, sql, &[]).get(0)
}

fn irrelevant(outcome: &mut Outcome, shop: &Shop) {
    fill(shop, "busy");
    let mut client = shop.client("postgres");
    client.batch_execute("SET track_functions = 'all'; BEGIN; UPDATE shop.busy SET customer = 'another'").unwrap();
    let calls = called_functions(&mut client);
    // An UPDATE that calls the rule's functions must increase the count of calls.
    client.batch_execute("UPDATE shop.busy SET status = 'WAITING' WHERE id = 1").unwrap();
    assert!(called_functions(&mut client) > calls, "calls are not counted");
    client.batch_execute("ROLLBACK").unwrap();
    let what = ["an irrelevant UPDATE under a rule with due and stopped", "pg_stat_xact_user_functions"];
    let detail = format!("{} rows updated", readable(WRITES.into()));
    outcome.value(what, calls as f64, "calls", Wanted::AtMost(0.0), detail);
}

fn due(outcome: &mut Outcome, shop: &Shop, rounds: usize, what: &str, calendar: &str, hours: i64, wanted: f64) {
    let statement = |due: &str| {
        format!(
            "SELECT count({due}) FROM generate_series(1, {CALLS}) AS n, LATERAL (SELECT '2027-01-04 10:00+01'::timestamptz + n * interval '1 s' AS at OFFSET 0) AS t"
        )
    };
    let call = statement(&format!("awty.due(t.at, '{hours} hours', '{calendar}')"));
    let bare = statement("t.at");
    let times: Vec<f64> = (0..rounds).map(|_| (cpu(shop, &call) - cpu(shop, &bare)) / f64::from(CALLS)).collect();
    let span =
        format!("SELECT (awty.due('2027-01-04 10:00+01', '{hours} hours', '{calendar}')::date - '2027-01-04')::int4");
    let days: i32 = one(&mut shop.client("postgres"), &span, &[]).get(0);
    say(&format!("{what}: {times:?}, {days} days"));
    let detail = format!("{hours} hours of open time, {days} days ahead; CPU, median of {rounds}");
    outcome.value([what, "without the call"], median(&times), "µs", Wanted::AtMost(wanted), detail);
}

fn replaced(outcome: &mut Outcome, shop: &Shop, checks: u32, rounds: usize) {
    let fill = format!(
        "INSERT INTO shop.many SELECT n, 'UNSHIPPED', now(), 'somebody' FROM generate_series(1, {checks}) AS n"
    );
    shop.cluster
        .execute("postgres", &["TRUNCATE awty.future_job", &fill, "VACUUM ANALYZE awty.future_job", "CHECKPOINT"]);
    let (mut times, mut cpu) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let closed = if round % 2 == 0 {
            "ARRAY[(now() AT TIME ZONE 'UTC')::date, (now() AT TIME ZONE 'UTC')::date + 1]"
        } else {
            "'{}'"
        };
        let began = Instant::now();
        shop.cluster.execute(
            "postgres",
            &[&format!(
                "SET ROLE shop; SELECT awty.create_calendar('always', '{{mon-sun 00:00-24:00}}', 'UTC', closed => {closed}, replace => true); RESET ROLE"
            )],
        );
        let first = "SELECT walk IN ('again', 'done') FROM awty.rule WHERE rule = 'many'";
        let mut used: HashMap<i32, f64> = HashMap::new();
        poll("the checks to be moved", 4 * PATIENCE, || {
            used.extend(shop.cluster.pids("awty worker").into_iter().filter_map(|pid| Some((pid, used_by(pid)?))));
            if shop.cluster.value::<bool>("postgres", first) { Ok(()) } else { Err("not yet".into()) }
        })
        .unwrap();
        times.push(began.elapsed().as_secs_f64());
        cpu.push(used.values().sum::<f64>() / 1e6);
        let moved = "SELECT count(*) FILTER (WHERE f.next_check_at = awty.next_slot(awty.due(o.placed_at, '8 hours', 'always')))
            FROM awty.future_job AS f JOIN shop.many AS o ON o.id::text = f.entity_key WHERE f.entity_name = 'many'";
        assert_eq!(shop.cluster.value::<i64>("postgres", moved), i64::from(checks), "checks at their new time");
        shop.cluster.await_sql("postgres", "the second walk", "SELECT bool_and(walk = 'done') FROM awty.rule");
    }
    say(&format!("replaced: {times:?}, CPU {cpu:?}"));
    let detail =
        format!("{} checks; {} s by the clock; medians of {rounds}", readable(checks.into()), readable(median(&times)));
    let what = ["a calendar is replaced and all checks move", "CPU of the workers"];
    outcome.value(what, median(&cpu), "s", Wanted::AtMost(10.0), detail);
}

pub fn deadlines(options: &Options) -> Result<Outcome, String> {
    let mut outcome = Outcome::new("deadlines");
    let rounds = options.rounds as usize;
    let shop = Shop::open(&[("awty.catch_up_rate", "0")]);
    set_up(&shop);
    let since = "placed_at = placed_at - interval '1 minute'";
    compare(
        &mut outcome,
        rounds,
        ["INSERT under a rule with a calendar", "the same rule without"],
        || insert(&shop, "open"),
        || insert(&shop, "plain"),
    );
    compare(
        &mut outcome,
        rounds,
        ["UPDATE that begins a stop", "UPDATE of since"],
        || update(&shop, "stopping", None, "status = 'WAITING'"),
        || update(&shop, "stopping", None, since),
    );
    compare(
        &mut outcome,
        rounds,
        ["UPDATE that ends a stop", "UPDATE of since"],
        || update(&shop, "stopping", Some("status = 'WAITING'"), "status = 'UNSHIPPED'"),
        || update(&shop, "stopping", None, since),
    );
    irrelevant(&mut outcome, &shop);
    due(&mut outcome, &shop, rounds, "awty.due over two weeks of office hours", "office", 71, 5.0);
    due(&mut outcome, &shop, rounds, "awty.due over a year with 200 closed days", "holidays", 1_320, 50.0);
    replaced(&mut outcome, &shop, options.schedules, rounds.min(3));
    outcome.what = Some(format!(
        "Writers and calls: CPU time of the server process of the client (schedstat), {} rows one by one in one transaction, or {} calls. \
         Pairs run in turn in one server, with tables that are vacuumed and a checkpoint before. A replaced calendar counts \
         the CPU time of awty's workers, and the clock from the call until the first walk has moved all checks.",
        readable(WRITES.into()),
        readable(CALLS.into())
    ));
    Ok(outcome)
}
