use awty_testkit::Cluster;
use awty_testkit::fixture::{NOTE, Shop};
use serde_json::Value;

const CHECKS: i64 = 300;

fn per_run(shop: &Shop) -> Vec<String> {
    let sql = format!(
        "SELECT regexp_replace(left(ltrim(query), 60), '\\s+', ' ', 'g') FROM pg_stat_statements
         WHERE calls >= {CHECKS} AND query NOT LIKE '%poll%' ORDER BY 1"
    );
    shop.cluster.psql("postgres", &sql).lines().map(str::to_owned).collect()
}

#[test]
fn a_run_executes_no_statement_for_its_figures() {
    let server = Cluster::builder()
        .set("shared_preload_libraries", "awty,pg_stat_statements")
        .set("pg_stat_statements.track", "all");
    let shop = Shop::on(server.start());
    shop.cluster.execute("postgres", &["CREATE EXTENSION pg_stat_statements SCHEMA public"]);
    shop.job("note", NOTE, "");
    shop.job("later", "BEGIN RETURN now() + '1 h'; END", ", max_horizon => '1 day'");
    let expected = [
        ("note", vec!["INSERT INTO shop.note (entity_key) VALUES (j.entity_key)"]),
        ("later", vec!["WITH moved AS ( UPDATE awty.future_job SET next_ch"]),
    ];
    for (job, statements) in expected {
        let mut client = shop.client();
        let mut transaction = client.transaction().unwrap();
        let schedule = format!(
            "SELECT awty.schedule('{job}', i::text, '{job}', after => '0') FROM generate_series(1, {CHECKS}) AS i"
        );
        transaction.batch_execute(&schedule).unwrap();
        shop.cluster.execute("postgres", &["SELECT pg_stat_statements_reset()"]);
        transaction.commit().unwrap();
        let ran = format!("SELECT count(*) = 0 AS poll FROM awty.future_job WHERE job = '{job}' AND check_count = 0");
        shop.await_true("the runs", &ran);
        let found: Vec<String> = per_run(&shop).into_iter().filter(|query| !query.contains("$job$")).collect();
        // Omits the expression of a RETURN statement, because plpgsql evaluates the expression as a separate statement.
        let found: Vec<&str> = found.iter().map(String::as_str).filter(|query| !query.starts_with("now()")).collect();
        assert_eq!(found, statements, "{job}");
        let counting =
            "SELECT count(*) FROM pg_stat_statements WHERE query LIKE '%INTO awty_internal.job_stat%' AND calls > 10";
        assert_eq!(shop.cluster.value::<i64>("postgres", counting), 0);
    }
}

#[test]
fn a_run_reads_no_buffer_for_errors_that_it_has_not() {
    let shop = Shop::open();
    let mut client = shop.cluster.superuser("postgres");
    let buffers = |client: &mut awty_testkit::postgres::Client, key: i64| -> i64 {
        let sql = format!(
            "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)
             UPDATE awty.future_job SET next_check_at = next_check_at + '1 s', check_count = check_count + 1, attempt = 0
             WHERE entity_name = 'e' AND entity_key = '{key}' AND job = 'j'"
        );
        let plan: Value = client.query_one(&sql, &[]).unwrap().get(0);
        plan[0]["Plan"]["Shared Hit Blocks"].as_i64().unwrap()
    };
    let checks = "INSERT INTO awty.future_job (job, entity_name, entity_key, first_check_at, next_check_at, scheduled_by, scheduled_at)
         SELECT 'j', 'e', n, now() + '1 day', now() + '1 day', 'postgres', now() FROM generate_series(1, 100) AS n";
    client.batch_execute(checks).unwrap();
    client.batch_execute("BEGIN").unwrap();
    buffers(&mut client, 1);
    let with = buffers(&mut client, 2);
    client.batch_execute("DROP INDEX awty.future_job_failing_idx").unwrap();
    buffers(&mut client, 3);
    let without = buffers(&mut client, 4);
    client.batch_execute("ROLLBACK").unwrap();
    assert_eq!(with, without);
}
