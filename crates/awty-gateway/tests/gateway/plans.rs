use crate::people::open;
use awty_gateway::db::history::LIST;
use serde_json::Value;

fn of_scans(plan: &Value, field: &str) -> i64 {
    let inner = match plan {
        Value::Array(nodes) => nodes.iter().map(|node| of_scans(node, field)).sum(),
        Value::Object(fields) => fields.values().map(|node| of_scans(node, field)).sum(),
        _ => 0,
    };
    let is_scan = plan["Relation Name"].as_str().is_some_and(|name| name.starts_with("future_job_history"));
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
    assert_eq!(of_scans(&plan, "Rows Removed by Filter"), 0, "{plan:#}");
    let rows = of_scans(&plan, "Actual Rows");
    assert!((20..=60).contains(&rows), "{rows} rows were read for a page of 20: {plan:#}");
}

/// The home view shows the next hour on each load.
#[test]
fn the_next_hour_reads_no_check_that_is_due_later() {
    let (shop, _gateway, _app) = open();
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
