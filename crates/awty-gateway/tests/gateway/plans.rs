use crate::people::open;
use crate::visitor::watch;
use awty_gateway::db::history::LIST;
use awty_gateway::db::views::{CLEARED, LATE_COUNT, NAMED, OPEN};
use serde_json::Value;

fn of_scans(plan: &Value, table: &str, field: &str) -> i64 {
    let inner = match plan {
        Value::Array(nodes) => nodes.iter().map(|node| of_scans(node, table, field)).sum(),
        Value::Object(fields) => fields.values().map(|node| of_scans(node, table, field)).sum(),
        _ => 0,
    };
    let is_scan = plan["Relation Name"].as_str().is_some_and(|name| name.starts_with(table));
    inner + if is_scan { plan[field].as_i64().unwrap_or(0) * plan["Actual Loops"].as_i64().unwrap_or(1) } else { 0 }
}

#[test]
fn a_page_of_the_history_reads_no_row_of_another_tenant() {
    let (shop, _gateway, _app) = open();
    for (role, count) in [("app", 60), ("tenant", 20_000)] {
        shop.cluster.execute(
            "postgres",
            &[&format!(
                "INSERT INTO awty.future_job_history (id, job, entity_name, entity_key, first_check_at, next_check_at, scheduled_by,
                     scheduled_at, finished_at, run_time, check_count, attempts, outcome, role)
                 SELECT n, 'http.{role}', 'https://api.example.com', '/' || n, now(), now(), '{role}', now(), now() - n * interval '1 s',
                     '0', 1, 1, 'failed', '{role}' FROM generate_series(1, {count}) AS n"
            )],
        );
    }
    shop.cluster.execute("postgres", &["ANALYZE awty.future_job_history"]);
    let mut client = shop.cluster.client("postgres", "app");
    client.batch_execute(&format!("PREPARE page (text, text, text, bigint, bigint) AS {LIST}")).unwrap();
    let plan: Value = client
        .query_one("EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE page (NULL, NULL, NULL, NULL, 20)", &[])
        .unwrap()
        .get(0);
    assert_eq!(of_scans(&plan, "future_job_history", "Rows Removed by Filter"), 0, "{plan:#}");
    let rows = of_scans(&plan, "future_job_history", "Actual Rows");
    assert!((20..=60).contains(&rows), "{rows} rows were read for a page of 20: {plan:#}");
}

#[test]
fn the_next_hour_reads_no_check_that_is_due_later() {
    let (shop, _gateway, _app) = open();
    shop.cluster
        .client("postgres", "tenant")
        .batch_execute(
            "SELECT awty.register('early');
             SELECT awty.schedule_many('e', array_agg(i::text), 'early', after => '10 min') FROM generate_series(1, 20000) AS i",
        )
        .unwrap();
    shop.app("SELECT awty.register('later')");
    shop.app("SELECT awty.schedule_many('e', array_agg(i::text), 'later', after => '2 days') FROM generate_series(1, 20000) AS i");
    shop.app("SELECT awty.schedule('e', 'soon', 'later', after => '10 min')");
    shop.cluster.execute("postgres", &["ANALYZE awty.future_job"]);
    let mut client = shop.cluster.client("postgres", "app");
    let mut transaction = client.transaction().unwrap();
    let mut number = |sql: &str| -> i64 { transaction.query_one(sql, &[]).unwrap().get(0) };
    let read = "SELECT coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) FROM pg_stat_xact_all_tables WHERE relid = 'awty.future_job'::regclass";
    let before = number(read);
    assert_eq!(number("SELECT sum(checks)::bigint FROM awty.forecast('1 hour', '5 minutes') WHERE job = 'later'"), 1);
    let rows = number(read) - before;
    assert!(rows < 100, "{rows} rows were read to count one check");
}

#[test]
fn views_of_alerts_and_checks_read_no_row_of_another_tenant() {
    let (shop, _gateway, _app) = open();
    for (role, rows) in [("app", 30), ("tenant", 20_000)] {
        let sql = format!(
            "CREATE TABLE {role}_t (id bigint PRIMARY KEY, at timestamptz, done boolean);
             INSERT INTO {role}_t SELECT n, now() - interval '1 day' FROM generate_series(1, {rows}) AS n;
             SELECT awty.watch('{role}_t', since => 'at', until => 'done', within => '1 h', existing => 'none');
             SELECT awty.register('{role}_job');
             SELECT awty.schedule_many('orders', array_agg(n::text), '{role}_job', after => '1 day') FROM generate_series(1, {rows}) AS n"
        );
        shop.cluster.execute("postgres", &[&format!("GRANT CREATE ON SCHEMA public TO {role}")]);
        shop.cluster.client("postgres", role).batch_execute(&sql).unwrap();
        shop.cluster.execute(
            "postgres",
            &[&format!(
                "INSERT INTO awty_internal.stop (rule, key, since, stops)
                 SELECT '{role}_t', n::text, now(), '{{}}' FROM generate_series(1, {rows}) AS n;
                 INSERT INTO awty_internal.lease (lease, id, job, entity_name, entity_key, first_check_at, next_check_at, check_count,
                     attempt, scheduled_by, scheduled_at, key, leased_at, expires_at, deadline, worker, role)
                 SELECT id, id, job, entity_name, entity_key, first_check_at, next_check_at, 0, 1, scheduled_by, scheduled_at, 'key', now(),
                     now() + '1 h', now() + '1 h', 'worker', scheduled_by FROM awty.future_job WHERE job = '{role}_job'"
            )],
        );
        for cleared in ["NULL", "now()"] {
            shop.cluster.execute(
                "postgres",
                &[&format!(
                    "INSERT INTO awty.alert (rule, entity_name, entity_key, level, due_at, raised_at, cleared_at, role, told)
                     SELECT '{role}_t', '{role}_t', n::text, 1, now(), now(), {cleared}, '{role}', 1
                     FROM generate_series(1, {rows}) AS n"
                )],
            );
        }
    }
    shop.cluster.execute(
        "postgres",
        &["ANALYZE awty.alert; ANALYZE awty.future_job; ANALYZE awty_internal.stop; ANALYZE awty_internal.lease"],
    );
    let mut client = shop.cluster.client("postgres", "app");
    let queries = [
        (LATE_COUNT, "bigint", "20", "alert"),
        (OPEN, "int, bigint", "1, 20", "alert"),
        (CLEARED, "bigint", "20", "alert"),
        (NAMED, "text, bigint", "'orders', 20", "future_job"),
        ("SELECT * FROM awty.late WHERE level >= $1", "int", "1", "alert"),
        ("SELECT * FROM awty.late WHERE level >= $1", "int", "1", "stop"),
        ("SELECT * FROM awty.target WHERE job > $1", "text", "''", "lease"),
    ];
    for (number, (sql, types, values, table)) in queries.into_iter().enumerate() {
        client.batch_execute(&format!("PREPARE view{number} ({types}) AS {sql}")).unwrap();
        let explain = format!("EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE view{number} ({values})");
        let plan: Value = client.query_one(&explain, &[]).unwrap().get(0);
        assert_eq!(of_scans(&plan, table, "Rows Removed by Filter"), 0, "{sql}: {plan:#}");
        let rows = of_scans(&plan, table, "Actual Rows");
        assert!((20..=60).contains(&rows), "{sql}: {rows} rows were read: {plan:#}");
    }
}

#[test]
fn each_first_page_reads_a_bounded_number_of_rows() {
    use awty_gateway::db::{calls, schedules, status, views};
    let (shop, _gateway, _app) = open();
    watch(&shop);
    shop.app("SELECT awty.pause('orders'); INSERT INTO orders SELECT n, 'NEW', now() + '2 days' FROM generate_series(10, 5000) AS n");
    shop.app("SELECT awty.register('mail')");
    shop.app(
        "SELECT sum(awty.schedule_many('user', keys, 'mail', after => '3 days')) FROM (
        SELECT array_agg(n::text) AS keys FROM generate_series(1, 120000) AS n GROUP BY n / 1000) AS k",
    );
    let many = "SELECT count(awty_http.schedule('http://127.0.0.1:1099/' || n, every => '20 hours')) FROM generate_series(1, 3000) AS n";
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
    let few = 5_000;
    let counted = 112_000;
    let statements: [(&str, &str, &[&str], i64); 21] = [
        ("late", views::LATE_COUNT, &["1001"], few),
        ("alerts", views::OPEN, &["1", "10"], few),
        ("cleared", views::CLEARED, &["20"], few),
        ("soon", views::SOON, &["10"], few),
        ("failing", views::FAILING, &["100"], few),
        ("endpoints", views::ENDPOINTS, &["100"], few),
        ("ended", views::ENDED, &["100"], few),
        ("behind", views::BEHIND, &["100"], few),
        ("due ahead", views::DUE_AHEAD, &["'1 hour'", "20001"], few),
        ("ahead", views::AHEAD, &["'1 hour'", "'5 minutes'"], few),
        ("next", views::NEXT_DUE, &[], few),
        ("targets", views::TARGETS, &["10"], few),
        ("stops", views::STOPS, &[], few),
        ("paused", schedules::LIST, &["''", "'paused'", "NULL", "NULL", "NULL", "NULL", "51"], 200),
        ("problems", views::PROBLEMS, &["NULL", "NULL", "51"], few),
        ("named", views::NAMED, &["'user'", "100"], few),
        ("meanwhile", calls::MEANWHILE, &[&id, "now()::text", "(now() + '2 days')::text"], few),
        ("history", views::HISTORY, &["NULL", "NULL", "51"], few),
        ("status", status::STATUS, &[], counted),
        ("jobs", views::JOBS, &["500"], counted),
        ("rules", views::RULES, &["500"], counted),
    ];
    let mut client = shop.cluster.client("postgres", "app");
    let read = "SELECT coalesce(sum(pg_stat_get_xact_tuples_returned(c.oid)), 0)::bigint FROM pg_class AS c
        WHERE c.relkind IN ('r', 'i') AND c.relnamespace::regnamespace::text LIKE 'awty%'";
    let mut too_many = Vec::new();
    for (name, sql, values, most) in statements {
        let sql = values
            .iter()
            .enumerate()
            .fold(sql.to_owned(), |sql, (n, value)| sql.replace(&format!("${}", n + 1), value));
        let mut transaction = client.transaction().unwrap();
        if ["problems", "history", "ended", "named", "meanwhile"].contains(&name) {
            transaction.query(views::BY_INDEX, &[]).unwrap();
        }
        let before: i64 = transaction.query_one(read, &[]).unwrap().get(0);
        transaction.query(&sql, &[]).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        let rows = transaction.query_one(read, &[]).unwrap().get::<_, i64>(0) - before;
        if rows > most {
            too_many.push(format!("{name} reads {rows} rows"));
        }
    }
    assert!(too_many.is_empty(), "{too_many:?}");
    let mut transaction = client.transaction().unwrap();
    let before: i64 = transaction.query_one(read, &[]).unwrap().get(0);
    transaction.query(status::FINDINGS, &[]).unwrap();
    let rows = transaction.query_one(read, &[]).unwrap().get::<_, i64>(0) - before;
    assert!(rows <= 60_000, "the findings read {rows} rows");
}
