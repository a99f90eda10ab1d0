use crate::people::open;
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
    // EXPLAIN reports the number of rows per loop as an average. Since PostgreSQL 18, the average may be a fraction.
    let each = plan[field].as_f64().unwrap_or(0.0) * plan["Actual Loops"].as_f64().unwrap_or(1.0);
    inner + if is_scan { each.round() as i64 } else { 0 }
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
