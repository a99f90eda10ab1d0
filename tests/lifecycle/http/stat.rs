use super::Http;

#[test]
fn a_roll_up_counts_and_again_gives_the_same_numbers() {
    let http = Http::open();
    http.ask("app", "SELECT awty_http.schedule('https://a.example.com/x', '1 s', jitter => '0')");
    let ways = [
        "complete($1, NULL, '{\"lateness\": 0.0015, \"duration\": 0.25}')",
        "complete($1, NULL, '{\"lateness\": 60, \"duration\": 0.75}')",
        "complete($1, NULL, '{\"lateness\": -1, \"duration\": 3}')",
        "fail($1, 'dropped: 12 s late', final => true, not_started => true)",
        "fail($1, 'HTTP 500', final => true, result => '{\"lateness\": 0.0005, \"duration\": 0.5}')",
    ];
    for way in ways {
        if way.contains("60") {
            let late = "UPDATE awty.future_job SET next_check_at = now() - interval '60 s'";
            http.cluster.execute("postgres", &[late]);
        }
        let lease = http.claim()[0];
        http.client("gateway").execute(&format!("SELECT awty.{way}"), &[&lease]).unwrap();
    }
    let roll_up = "SELECT awty_http_internal.roll_up(now() + interval '1 hour')";
    http.cluster.execute("postgres", &[roll_up]);
    let hours = "FROM awty_http.stat WHERE width = '24 hours' AND id LIKE 's\\_%'";
    assert_eq!(
        http.ask(
            "app",
            &format!(
                "SELECT (count, ok, dropped, caught_up, implausible, lateness_sum, lateness_max, duration_sum, caught_up_max) {hours}"
            )
        ),
        "(5,3,1,1,2,00:00:00.002,00:00:00.0015,00:00:01.5,00:01:00)"
    );
    // Step n of a histogram counts values from 2^(n - 2) ms to 2^(n - 1) ms.
    assert_eq!(http.ask("app", &format!("SELECT (lateness_steps[1], lateness_steps[2], duration_steps[9], duration_steps[10], duration_steps[11]) {hours}")), "(1,1,1,1,1)");
    let all = "SELECT md5(string_agg(s::text, '' ORDER BY s::text)) FROM awty_http.stat AS s";
    let before = http.ask("app", all);
    http.cluster.execute("postgres", &[roll_up, roll_up]);
    assert_eq!(http.ask("app", all), before);
    assert_eq!(http.ask("other", "SELECT count(*) FROM awty_http.stat"), "0");
    // awty_http deletes hourly statistics after 90 days, and daily statistics after five years.
    http.ask("app", "SELECT awty_http.unschedule('https://a.example.com/x')");
    http.cluster.execute("postgres", &["SELECT awty_http_internal.roll_up(now() + interval '100 days')"]);
    assert_eq!(http.ask("app", "SELECT string_agg(DISTINCT width::text, ' ') FROM awty_http.stat"), "24:00:00");
    assert_eq!(http.ask("app", "SELECT count(*) FROM awty_http.endpoint"), "1");
    http.cluster.execute("postgres", &["SELECT awty_http_internal.roll_up(now() + interval '2000 days')"]);
    assert_eq!(http.ask("app", "SELECT count(*) FROM awty_http.stat"), "0");
}

#[test]
fn odd_numbers_and_buckets_of_the_future_do_no_harm() {
    let http = Http::open();
    let id = http.ask("app", "SELECT awty_http.schedule('https://a.example.com/x', '1 s', jitter => '0')");
    for result in ["{\"lateness\": 1e-400, \"duration\": 1e-400}", "{\"lateness\": 1e400, \"duration\": -1e400}"] {
        let lease = http.claim()[0];
        http.ask("gateway", &format!("SELECT awty.complete({lease}, result => '{result}')"));
    }
    let ahead = "INSERT INTO awty_http.stat SELECT '%', '1 hour', date_trunc('hour', now()) + interval '30 days', 1, 1, 0, 0, 0, 0, '0', NULL, NULL,
        array_fill(0, '{24}'), '0', NULL, NULL, array_fill(0, '{24}'), 'http.app'".replace('%', &id);
    http.cluster.execute("postgres", &[&ahead]);
    assert_eq!(http.ask("app", &format!("SELECT ok FROM awty_http_internal.counts('{id}')")), "2");
    http.cluster.execute("postgres", &["SELECT awty_http_internal.roll_up(now() + interval '1 hour')"]);
    let counted = "SELECT count || ' ' || lateness_steps[1] FROM awty_http.stat WHERE bucket < now() AND width = '24 hours' AND id <> job";
    assert_eq!(http.ask("app", counted), "2 1");
}

#[test]
fn values_of_one_tenant_stop_the_statistics_of_no_other() {
    let http = Http::open();
    let id = http.ask("app", "SELECT awty_http.schedule('https://a.example.com/x', '1 s', jitter => '0')");
    http.ask("other", "SELECT awty_http.schedule('https://a.example.com/y', '1 h')");
    let huge = "INSERT INTO awty_http.stat SELECT '%', '1 hour', date_trunc('day', now(), 'UTC') + n * interval '1 hour', 1, 1, 0, 0, 0, 0,
        '2500000000 hours', NULL, NULL, array_fill(0, '{24}'), '0', NULL, NULL, array_fill(0, '{24}'), 'http.app'
        FROM generate_series(0, 1) AS n"
        .replace('%', &id);
    let call = |n: i32| calls_of_x(&format!("(SELECT interval '1 s' AS ago, {n} AS n) AS u"));
    let of_other = call(2).replace("http.app", "http.other").replace("'/x'", "'/y'").replace("'app'", "'other'");
    http.cluster.execute("postgres", &[&huge, &call(1), &of_other]);
    http.cluster.execute("postgres", &["SELECT awty_http_internal.roll_up(now() + interval '1 hour')"]);
    let counted = "SELECT string_agg(count || ' ' || width, ', ' ORDER BY width) FROM awty_http.stat WHERE id <> job";
    assert_eq!(http.ask("other", counted), "1 01:00:00, 1 24:00:00");
    assert_eq!(http.ask("other", &counted.replace("<>", "=")), "1 01:00:00, 1 24:00:00");
}

/// A roll-up that is under way when `awty_http.add_tenant()` renames a tenant's job may add an hour with the old name.
#[test]
fn hours_of_a_renamed_job_stop_no_roll_up() {
    let http = Http::open();
    let id = http.ask("app", "SELECT awty_http.schedule('https://a.example.com/x', '1 s', jitter => '0')");
    let old = "INSERT INTO awty_http.stat SELECT '%', '1 hour', date_trunc('day', now(), 'UTC') + n * interval '1 hour', 1, 1, 0, 0, 0, 0,
        '0', NULL, NULL, array_fill(0, '{24}'), '0', NULL, NULL, array_fill(0, '{24}'), (ARRAY['http.app', 'http'])[n + 1]
        FROM generate_series(0, 1) AS n"
        .replace('%', &id);
    http.cluster.execute("postgres", &[&old, "SELECT awty_http_internal.roll_up(now() + interval '1 hour')"]);
    let counted = "SELECT count || ' ' || job FROM awty_http.stat WHERE width = '24 hours' AND id <> job";
    assert_eq!(http.ask("app", counted), "2 http.app");
}

/// With a period of 3 s, a call that ends 8 s after its planned time misses two due times (at 3 s and 6 s). A call that
/// ends after 10 s misses three.
#[test]
fn slots_that_pass_during_a_call_are_counted() {
    let http = Http::open();
    for (path, plan) in [
        ("/every", "every => '3 s', jitter => '1 s'"),
        ("/cron", "cron => '* * * * *', zone => 'Europe/Berlin'"),
        ("/caught", "every => '3 s', catch_up => '1 min'"),
        ("/once", "at => now() + interval '1 day'"),
    ] {
        http.ask("app", &format!("SELECT awty_http.schedule('https://a.example.com{path}', {plan})"));
    }
    let call = "INSERT INTO awty_internal.attempt
        SELECT row_number() OVER (), row_number() OVER (), 'http.app', e.entity_name, e.entity_key, t.at, t.due, 0, 1, false, 'app', t.at,
            'key', t.at, t.at, t.at, 'g', t.due + c.took, '0', true, NULL, NULL, NULL, 'app'
        FROM awty_http.endpoint AS e
        CROSS JOIN (VALUES (0, 0), (1, 1)) AS n (n, retried)
        CROSS JOIN LATERAL (SELECT CASE WHEN e.cron IS NULL THEN interval '8 s' ELSE '150 s' END AS took) AS c
        CROSS JOIN LATERAL (
            SELECT date_trunc('hour', now()) - interval '50 min' + n * interval '10 min' AS at,
                   date_trunc('hour', now()) - interval '50 min' + n * interval '10 min' + n.retried * interval '2 s' AS due) AS t";
    http.cluster.execute("postgres", &[call]);
    let counted = "SELECT e.entity_key || ' ' || s.count || ' ' || s.left_out FROM awty_http.endpoint AS e
        CROSS JOIN LATERAL awty_http_internal.stats(e.id, '1 h', now() - interval '2 h', now()) AS s ORDER BY 1";
    let expected = "/caught 2 0 /cron 2 4 /every 2 5 /once 2 0";
    assert_eq!(http.ask("app", counted), expected);
    http.cluster.execute("postgres", &["SELECT awty_http_internal.roll_up(now())"]);
    assert_eq!(http.ask("app", "SELECT sum(left_out) FROM awty_http.stat WHERE id <> job AND width = '24 hours'"), "9");
    assert_eq!(http.ask("app", counted), expected);
}

#[test]
fn the_hourly_check_rolls_up() {
    let http = Http::open();
    http.cluster.execute("postgres", &["SELECT awty.check_now('job', 'awty_http.roll_up')"]);
    let done = "SELECT done = 1 FROM awty.job_status WHERE job = 'awty_http.roll_up'";
    http.cluster.await_sql("postgres", "the check to be done", done);
}

#[test]
fn what_is_kept_for_ever_is_counted_however_old_it_is() {
    let http = Http::open();
    http.ask("app", "SELECT awty_http.schedule('https://a.example.com/x', '1 h')");
    let call = "INSERT INTO awty_internal.attempt SELECT 1, 1, 'http.app', 'https://a.example.com', '/x', t.at, t.at, 0, 1, false, 'app', t.at,
        'key', t.at, t.at, t.at, 'g', t.at, '0', true, NULL, NULL, NULL, 'app' FROM (SELECT now() - interval '10 days' AS at) AS t";
    let roll_up = "SELECT awty_http_internal.roll_up(now())";
    http.cluster.execute("postgres", &[call, roll_up]);
    assert_eq!(http.ask("app", "SELECT count(*) FROM awty_http.stat"), "0", "a part of a day may be gone");
    http.cluster.execute("postgres", &["ALTER SYSTEM SET awty.attempt_retention = 0", "SELECT pg_reload_conf()"]);
    http.cluster.await_sql("postgres", "the setting", "SELECT current_setting('awty.attempt_retention') = '0'");
    http.cluster.execute("postgres", &[roll_up]);
    assert_eq!(
        http.ask(
            "app",
            "SELECT string_agg(count || ' ' || width, ', ' ORDER BY width) FROM awty_http.stat WHERE id <> 'http.app'"
        ),
        "1 01:00:00, 1 24:00:00"
    );
}

fn calls_of_x(ago: &str) -> String {
    format!(
        "INSERT INTO awty_internal.attempt SELECT n, n, 'http.app', 'https://a.example.com', '/x', t.at, t.at, 0, 1, false, 'app', t.at,
        'key', t.at, t.at, t.at, 'g', t.at, '0', true, NULL, NULL, NULL, 'app'
        FROM {ago}, LATERAL (SELECT now() - ago AS at) AS t"
    )
}

#[test]
fn what_ended_in_the_last_24_hours_is_counted_rolled_up_or_not() {
    let http = Http::open();
    let id = http.ask("app", "SELECT awty_http.schedule('https://a.example.com/x', '1 h')");
    let ago = "unnest('{24 h 5 min,23 h 55 min,23 h 1 min,2 h,5 min}'::interval[]) WITH ORDINALITY AS u (ago, n)";
    http.cluster.execute("postgres", &[&calls_of_x(ago)]);
    let counts = format!("SELECT awty_http_internal.counts('{id}')");
    assert_eq!(http.ask("app", &counts), "(4,0,0)");
    http.cluster.execute("postgres", &["SELECT awty_http_internal.roll_up(now())"]);
    assert_eq!(http.ask("app", &counts), "(4,0,0)");
}

#[test]
fn the_last_of_many_calls_is_found_without_reading_the_others() {
    let http = Http::open();
    let id = http.ask("app", "SELECT awty_http.schedule('https://a.example.com/x', '1 h')");
    let ago = "(SELECT n * interval '1 s' AS ago, n FROM generate_series(1, 20000) AS n) AS u";
    http.cluster.execute("postgres", &[&calls_of_x(ago)]);
    let explain = format!(
        "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) SELECT * FROM awty_http_internal.attempts('{id}', max => 1)"
    );
    for analyzed in [false, true] {
        let mut client = http.client("app");
        let plan: Vec<serde_json::Value> = (0..2).map(|_| client.query_one(&explain, &[]).unwrap().get(0)).collect();
        let blocks = &plan[1][0]["Plan"]["Shared Hit Blocks"];
        assert!(blocks.as_i64().is_some_and(|blocks| blocks < 200), "analyzed: {analyzed}, {blocks} blocks");
        http.cluster.execute("postgres", &["ANALYZE"]);
    }
}

const MANY: &str = "
    INSERT INTO awty_http_internal.endpoint (id, job, uri, entity_name, entity_key, every, created_by)
    SELECT awty_http_internal.id(number, e.name || e.key), job, e.name || e.key, e.name, e.key, '1 h', 'app'
    FROM awty_http.tenant, (SELECT 'https://a.example.com' AS name, '/' || n AS key FROM generate_series(1, 120) AS n) AS e WHERE job = 'http.app';
    INSERT INTO awty_internal.attempt
    SELECT n, n, 'http.app', 'https://a.example.com', '/' || n % 120 + 1, t.at, t.at, 0, 1, false, 'app', t.at,
        'key', t.at, t.at, t.at, 'g', t.at, '0', true, NULL, NULL, NULL, 'app'
    FROM generate_series(0, 719) AS n, LATERAL (SELECT date_trunc('hour', now()) - interval '1 s' - n / 360 * interval '1 h' AS at) AS t";

const COUNTED: &str = "SELECT string_agg(concat_ws(' ', s.n, s.calls), ', ' ORDER BY s.width, s.job) FROM (
    SELECT width, id = job AS job, count(*) AS n, sum(count) AS calls FROM awty_http.stat GROUP BY 1, 2) AS s";

#[test]
fn a_roll_up_in_parts_counts_each_call() {
    let http = Http::open();
    http.cluster.execute("postgres", &[MANY]);
    let whole = "SELECT md5(string_agg(s::text, '' ORDER BY s::text)) FROM awty_http.stat AS s";
    let part = |rest: &str| {
        let rest = http.cluster.psql("postgres", &format!("SELECT awty_http_internal.roll_up(now(), '0', {rest})"));
        Some(rest.trim().to_owned()).filter(|rest| !rest.is_empty())
    };
    let mut rest = "NULL".to_owned();
    for parts in 0.. {
        assert!(parts < 4, "three parts of 50 endpoints, and the sums");
        let Some(left) = part(&rest) else { break };
        assert_eq!(http.cluster.psql("postgres", "SELECT count(*) FROM awty_http.stat WHERE id = job").trim(), "0");
        rest = format!("'{left}'");
    }
    let counted = http.cluster.psql("postgres", COUNTED);
    let in_parts = http.cluster.psql("postgres", whole);
    let begun = "SELECT awty_http_internal.roll_up(now(), '0')";
    http.cluster.execute("postgres", &["TRUNCATE awty_http.stat", begun, "SELECT awty_http_internal.roll_up(now())"]);
    assert_eq!(
        (http.cluster.psql("postgres", whole), http.cluster.psql("postgres", COUNTED)),
        (in_parts, counted.clone())
    );
    assert!(counted.starts_with("240 720, 2 720, "), "{counted}");
}

#[test]
fn the_hourly_check_does_much_work_in_parts() {
    let http = Http::open();
    let slow = "CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.6); RETURN NULL; END'";
    let trigger = "CREATE TRIGGER slow BEFORE INSERT ON awty_http.stat EXECUTE FUNCTION public.slow()";
    let now = "SELECT awty.check_now('job', 'awty_http.roll_up')";
    http.cluster.execute("postgres", &[MANY, slow, trigger, now]);
    let left = "SELECT args ? 'after' FROM awty.future_job WHERE job = 'awty_http.roll_up'";
    http.cluster.await_sql("postgres", "a part to be left", left);
    let sooner = "SELECT awty.check_now('job', 'awty_http.roll_up') FROM awty.future_job WHERE job = 'awty_http.roll_up' AND args ? 'after'";
    http.cluster.await_that("the roll-up to end", awty_testkit::PATIENCE, || {
        let _running = http.cluster.superuser("postgres").batch_execute(sooner);
        let counted = http.cluster.psql("postgres", COUNTED);
        if counted.starts_with("240 720, 2 720, ") { Ok(()) } else { Err(counted) }
    });
    let plan = "SELECT args IS NULL AND next_check_at = date_trunc('hour', next_check_at) FROM awty.future_job WHERE job = 'awty_http.roll_up'";
    http.cluster.await_sql("postgres", "the plan to go on", plan);
    let runs = "SELECT done >= 3 FROM awty.job_status WHERE job = 'awty_http.roll_up'";
    http.cluster.await_sql("postgres", "three runs to be counted", runs);
}

#[test]
fn locked_rows_hold_up_no_roll_up() {
    let http = Http::open();
    let uri = |role: &str| format!("https://{role}.example.com/tick");
    for role in ["app", "other"] {
        http.ask(role, &format!("SELECT awty_http.schedule('{}', '1 h')", uri(role)));
        http.ask(role, &format!("SELECT awty_http.unschedule('{}')", uri(role)));
        http.ask(role, &format!("SELECT awty_http.create_token('{role}', 'read', '1 s')"));
    }
    let mut app = http.client("app");
    app.batch_execute(&format!(
        "BEGIN; SELECT awty_http.schedule('{}', '1 h'), awty_http.drop_token(id) FROM awty_http.token",
        uri("app")
    ))
    .unwrap();
    http.cluster.execute(
        "postgres",
        &["SET lock_timeout = '30 s'", "SELECT awty_http_internal.roll_up(now() + interval '100 days')"],
    );
    app.batch_execute("ROLLBACK").unwrap();
    for table in ["awty_http.endpoint", "awty_http.token"] {
        let left = format!("SELECT count(*) FROM {table}");
        assert_eq!((http.ask("app", &left), http.ask("other", &left)), ("1".into(), "0".into()), "{table}");
    }
}

/// PostgreSQL compares a month as 30 days, so this interval equals zero.
#[test]
fn a_schedule_without_slots_leaves_none_out() {
    let http = Http::open();
    http.ask("app", "SELECT awty_http.schedule('https://api.example.com/x', after => '0', catch_up => '71582788 mons -2147483640 days')");
    let left = "SELECT awty_http_internal.left_out(e, now(), now(), now()) FROM awty_http_internal.endpoint AS e";
    assert_eq!(http.ask("postgres", left), "0");
}
