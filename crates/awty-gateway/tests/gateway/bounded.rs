//! Checks that each view reads a bounded number of rows, even if the tables are large or no row matches a filter.

use crate::people::{open, pages};
use crate::shop::Shop;
use crate::visitor::{Browser, watch};
use awty_gateway::db::{BY_INDEX, calls, schedules, status, targets, views};
use awty_testkit::postgres::Client;

const FEW: i64 = 5_000;
const READ: &str = "SELECT coalesce(sum(pg_stat_get_xact_tuples_returned(c.oid)), 0)::bigint FROM pg_class AS c
    WHERE c.relkind IN ('r', 'i') AND c.relnamespace::regnamespace::text LIKE 'awty%'";
const IN_ORDER: [&str; 14] = [
    views::TARGETS,
    views::STOPS,
    views::LATE_COUNT,
    views::OPEN,
    views::SOON,
    views::FAILING,
    views::ENDED,
    views::DUE_AHEAD,
    views::PROBLEMS,
    views::HISTORY,
    views::NAMED,
    calls::MEANWHILE,
    calls::FACTS,
    schedules::LIST,
];

fn rows_read(client: &mut Client, sql: &str, values: &[&str]) -> i64 {
    let filled =
        values.iter().enumerate().fold(sql.to_owned(), |sql, (n, value)| sql.replace(&format!("${}", n + 1), value));
    let mut transaction = client.transaction().unwrap();
    if IN_ORDER.contains(&sql) {
        transaction.query(BY_INDEX, &[]).unwrap();
    }
    let before: i64 = transaction.query_one(READ, &[]).unwrap().get(0);
    transaction.query(&filled, &[]).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    transaction.query_one(READ, &[]).unwrap().get::<_, i64>(0) - before
}

/// Each statement has a name, its SQL text, its parameters' values, and the largest number of rows that it may read.
#[track_caller]
fn read_no_more(shop: &Shop, statements: &[(&str, &str, &[&str], i64)]) {
    let mut client = shop.cluster.client("postgres", "app");
    let read = statements.iter().map(|(name, sql, values, most)| (name, rows_read(&mut client, sql, values), most));
    let too_many: Vec<String> =
        read.filter(|(_, rows, most)| rows > most).map(|(name, rows, _)| format!("{name} reads {rows} rows")).collect();
    assert!(too_many.is_empty(), "{too_many:?}");
}

#[test]
fn each_first_page_reads_a_bounded_number_of_rows() {
    let (shop, _gateway, _app) = open();
    watch(&shop);
    shop.app("SELECT awty.pause('orders'); INSERT INTO orders SELECT n, 'NEW', now() + '2 days' FROM generate_series(10, 5000) AS n");
    shop.app("SELECT awty.register('mail')");
    shop.app(
        "SELECT sum(awty.schedule_many('user', keys, 'mail', after => '3 days')) FROM (
        SELECT array_agg(n::text) AS keys FROM generate_series(1, 120000) AS n GROUP BY n / 1000) AS k",
    );
    let many = "SELECT count(awty_http.schedule('http://127.0.0.1:1099/' || n, every => '20 hours', starts => now() + interval '10 hours')) FROM generate_series(1, 3000) AS n";
    shop.app(many);
    shop.cluster.execute(
        "postgres",
        &[
            "INSERT INTO awty.future_job_history (id, job, entity_name, entity_key, first_check_at, next_check_at, scheduled_by, scheduled_at,
                 finished_at, run_time, check_count, attempts, outcome, role)
             SELECT 100000000 + n, 'mail', 'user', n::text, now(), now(), 'app', now(), now() - n * interval '100 ms', '0', 1, 1,
                 CASE WHEN n % 4 = 0 THEN 'failed' ELSE 'done' END, 'app' FROM generate_series(1, 20000) AS n",
            "ANALYZE",
        ],
    );
    let id = shop.text("SELECT quote_literal(min(id)) FROM awty_http.endpoint");
    let estimated = "SELECT pending BETWEEN 110000 AND 130000 FROM awty.job_status WHERE job = 'mail'";
    assert_eq!(shop.text(estimated), "true");
    let counted = 125_000;
    let statements: [(&str, &str, &[&str], i64); 23] = [
        ("late", views::LATE_COUNT, &["1001"], FEW),
        ("alerts", views::OPEN, &["1", "10"], FEW),
        ("cleared", views::CLEARED, &["20"], FEW),
        ("soon", views::SOON, &["10"], FEW),
        ("failing", views::FAILING, &["100"], FEW),
        ("endpoints", views::ENDPOINTS, &["100"], FEW),
        ("ended", views::ENDED, &["100"], FEW),
        ("behind", views::BEHIND, &["100", "'1 s'"], FEW),
        ("due ahead", views::DUE_AHEAD, &["'1 hour'", "20001"], FEW),
        ("ahead", views::AHEAD, &["'1 hour'", "'5 minutes'"], FEW),
        ("next", views::NEXT_DUE, &[], FEW),
        ("targets", views::TARGETS, &["10"], FEW),
        ("stops", views::STOPS, &[], FEW),
        ("stop", views::STOP, &[], FEW),
        ("schedules", schedules::LIST, &["''", "NULL", "NULL", "NULL", "NULL", "NULL", "51", "3000", "false"], FEW),
        ("problems", views::PROBLEMS, &["NULL", "NULL", "51"], FEW),
        ("named", views::NAMED, &["'user'", "100"], FEW),
        ("meanwhile", calls::MEANWHILE, &[&id, "now()::text", "(now() + '2 days')::text"], FEW),
        ("facts", calls::FACTS, &[&id, "now()::text"], FEW),
        ("history", views::HISTORY, &["NULL", "NULL", "51"], FEW),
        ("status", status::STATUS, &[], counted),
        ("jobs", views::JOBS, &["500"], counted),
        ("rules", views::RULES, &["500"], counted),
    ];
    read_no_more(&shop, &statements);
    let rows = rows_read(&mut shop.cluster.client("postgres", "app"), status::FINDINGS, &[]);
    assert!(rows <= 60_000, "the findings read {rows} rows");
}

#[test]
fn filters_that_no_schedule_fits_read_a_bounded_number_of_rows() {
    let (shop, _gateway, _app) = open();
    shop.app("SELECT count(awty_http.schedule('http://127.0.0.1:1099/' || n, every => '20 hours', starts => now() + interval '10 hours')) FROM generate_series(1, 3000) AS n");
    shop.cluster.execute("postgres", &["ANALYZE"]);
    let none = ["NULL"; 5];
    let with = |place: usize, value: &'static str, most: &'static str| {
        let mut values = none;
        values[place] = value;
        [&["''"][..], &values, &["51", most, "false"]].concat()
    };
    let cases = [
        ("held", with(0, "'held'", "500"), 4_000),
        ("blocked", with(0, "'blocked'", "500"), 4_000),
        ("ended", with(0, "'ended'", "500"), 4_000),
        ("paused", with(0, "'paused'", "500"), 200),
        ("origin", with(1, "'http://127.0.0.1:1098'", "500"), 200),
        ("label", with(2, "'nightly'", "500"), 1_000),
        ("text", with(3, "'nightly'", "500"), 1_000),
        ("failing", with(4, "true", "500"), 200),
    ];
    let statements = cases.each_ref().map(|(name, values, most)| (*name, schedules::LIST, &values[..], *most));
    read_no_more(&shop, &statements);
}

#[test]
fn a_list_that_looks_at_many_schedules_goes_on_at_the_next_page() {
    let (shop, _gateway, app) = open();
    shop.cluster.execute(
        "postgres",
        &["INSERT INTO awty_http_internal.endpoint (id, job, uri, entity_name, entity_key, at, created_by)
           SELECT 's_' || n, 'http.app', 'http://127.0.0.1:1099/' || n, 'http://127.0.0.1:1099', '/' || n, now(), 'app'::regrole
           FROM generate_series(10000, 15001) AS n; ANALYZE"],
    );
    shop.app("SELECT awty_http.schedule('http://127.0.0.1:1099/', every => '20 hours')");
    shop.cluster.execute("postgres", &["UPDATE awty_http_internal.endpoint SET id = 's_3' WHERE entity_key = '/'"]);
    let first = app.get("/v1/schedules?state=active");
    assert!(first.json()["items"].as_array().unwrap().is_empty() && !first.header("link").is_empty(), "{}", first.text);
    let found = pages(&app, "/v1/schedules?state=active");
    assert_eq!(found.iter().map(|one| one["id"].as_str().unwrap()).collect::<Vec<_>>(), ["s_3"]);
    assert_eq!(pages(&app, "/v1/schedules?state=ended&limit=100").len(), 5_002);
}

/// Stores 12,000 open alerts of level 0 (for rows that are not late), 12,000 open alerts of level 1, and 12,000 cleared
/// alerts.
#[test]
fn views_of_alerts_and_failures_read_a_bounded_number_of_rows() {
    let (shop, _gateway, _app) = open();
    watch(&shop);
    shop.app("SELECT awty.pause('orders'); SELECT awty.register('mail')");
    shop.app("SELECT awty.schedule_many('user', array_agg(n::text), 'mail', after => '3 days') FROM generate_series(1, 12000) AS n");
    let alert = |level: i32, keys: &str, cleared: &str| {
        format!(
            "INSERT INTO awty.alert (rule, entity_name, entity_key, level, due_at, cleared_at, role)
             SELECT 'orders', 'orders', n::text, {level}, now(), {cleared}, 'app' FROM generate_series({keys}) AS n"
        )
    };
    shop.cluster.execute(
        "postgres",
        &[
            &alert(0, "100001, 112000", "NULL"),
            &alert(1, "200001, 212000", "NULL"),
            &alert(0, "300001, 312000", "now()"),
            "INSERT INTO awty.future_job (job, entity_name, entity_key, first_check_at, next_check_at, scheduled_by, scheduled_at)
             SELECT rule, entity_name, entity_key, now() + interval '10 min', now() + interval '10 min', 'app'::regrole, now()
             FROM awty.alert WHERE level = 1 AND entity_key <> '1'",
            "INSERT INTO awty_internal.breaker (job, target, failures, since, opened_at, opens, failed_at)
             SELECT 'http.app', 'https://' || n, 20, now() - interval '1 h', now() - interval '1 h', 1, now() FROM generate_series(1, 100000) AS n",
            "UPDATE awty.future_job SET attempt = 1 WHERE job = 'mail'",
            "INSERT INTO awty_internal.check_stat (check_id, runs, run_time, failed_at)
             SELECT id, 1, '1 s', now() FROM awty.future_job WHERE job = 'mail'",
            "ANALYZE",
        ],
    );
    read_no_more(
        &shop,
        &[
            ("late", views::LATE_COUNT, &["1001"], 1_100),
            ("alerts", views::OPEN, &["1", "10"], 100),
            ("alerts that are not late", views::OPEN, &["0", "10"], 10_100),
            ("cleared", views::CLEARED, &["20"], 100),
            ("soon", views::SOON, &["10"], 20_100),
            ("failing", views::FAILING, &["100"], FEW),
            ("due ahead", views::DUE_AHEAD, &["'1 hour'", "1001"], 1_100),
            ("targets", views::TARGETS, &["10"], 12_000),
            ("list of targets", targets::LIST, &["NULL", "51"], FEW),
            ("stops", views::STOPS, &[], 12_000),
        ],
    );
}

#[test]
fn planned_times_are_searched_for_a_short_time() {
    let (shop, gateway, _) = open();
    shop.cluster.execute("postgres", &["GRANT CREATE ON SCHEMA public TO app"]);
    shop.app("CREATE FUNCTION works() RETURNS void LANGUAGE sql AS 'SELECT'");
    shop.app(
        "SELECT awty.create_calendar('always', '{mon-sun 00:00-24:00}', 'UTC');
         SELECT awty.register(job, 'works') FROM (VALUES ('searched'), ('added')) AS j (job);
         SELECT awty.repeat('searched', every => '1 s', zone => 'UTC', calendar => 'always'); SELECT awty.repeat('added', every => '1 s')",
    );
    shop.await_text("SELECT count(*) FROM awty.job_status WHERE last_success_at IS NOT NULL", "2");
    shop.cluster.execute("postgres", &["ALTER SYSTEM SET awty.enabled = off", "SELECT pg_reload_conf()"]);
    let browser = Browser::of(&shop, &gateway, "app", "read");
    browser.comes_to_show("/", &["#searched\"", "#added\""]);
    let late = format!(
        "DO $do$ DECLARE jobs text; BEGIN PERFORM pg_sleep({});
             SELECT string_agg(b ->> 'job', ' ') INTO jobs FROM ({}) AS b (b);
             ASSERT jobs = 'added', jobs; END $do$",
        views::SEARCH_FOR.as_secs_f64() + 0.1,
        views::BEHIND.replace("$1", "100").replace("$2", &format!("'{} s'", views::SEARCH_FOR.as_secs_f64()))
    );
    shop.app(&late);
}
