use super::{Http, refused};

const URI: &str = "https://api.example.com/tick";

/// Stores calls, each with its age, success, message, lateness and duration. Times are in seconds.
fn was_called(http: &Http, calls: &[(i32, bool, &str, f64, f64)]) {
    let insert = "INSERT INTO awty_internal.attempt SELECT (random() * 1e15)::bigint, 1, 'http.app', 'https://api.example.com', '/tick', t.at, t.at, 0, 1, false,
        'app', t.at, 'key', t.at, t.at, t.at, 'g', t.at, make_interval(secs => greatest($4::float8, 0)), $2, NULL, nullif($3, ''), jsonb_build_object('lateness', $4::float8, 'duration', $5::float8), 'app'
        FROM (SELECT date_bin('10 min', clock_timestamp(), '2000-01-01') - $1::int * interval '1 s' AS at) AS t";
    let mut client = http.cluster.superuser("postgres");
    for (ago, ok, message, lateness, duration) in calls {
        client.execute(insert, &[ago, ok, message, lateness, duration]).unwrap();
    }
}

#[test]
fn the_next_calls_of_an_overdue_check_are_ahead() {
    let http = Http::open();
    http.ask("app", "SELECT awty_http.schedule('https://api.example.com/late', every => '10 s', jitter => '10 s')");
    http.cluster.execute(
        "postgres",
        &["UPDATE awty.future_job SET next_check_at = next_check_at - interval '1 min', first_check_at = first_check_at - interval '1 min'
           WHERE job = 'http.app'"],
    );
    let next = "SELECT concat_ws(' ', count(*), count(DISTINCT t), count(*) FILTER (WHERE t > now()))
                FROM awty_http_internal.next_calls((SELECT e.id FROM awty_http.endpoint AS e), 5) AS t";
    assert_eq!(http.ask("app", next), "5 5 4");
}

#[test]
fn buckets_of_every_width_have_the_same_calls_before_and_after_they_are_rolled_up() {
    let http = Http::open();
    let id = http.ask("app", &format!("SELECT awty_http.schedule('{URI}', '1 h', jitter => '0')"));
    was_called(
        &http,
        &[
            (5, true, "", 0.003, 0.1),
            (6, true, "", 0.003, 0.3),
            (65, false, "HTTP 500", 0.012, 0.7),
            (66, false, "dropped: 12 s late", 12.0, 0.0),
            (700, true, "", 5000.0, 0.2),
            (7300, true, "", -1.0, 0.2),
        ],
    );
    let sums = |width: &str| {
        http.ask(
            "app",
            &format!(
                "SELECT (count(*), sum(count), sum(ok), sum(dropped), sum(caught_up), sum(implausible), max(lateness_max), max(duration_max))
                 FROM awty_http_internal.stats('{id}', '{width}', clock_timestamp() - least(interval '{width}' * 359, '2 days'), clock_timestamp())"
            ),
        )
    };
    assert_eq!(sums("1 min"), "(4,6,4,1,1,1,00:00:00.012,00:00:00.7)");
    assert_eq!(sums("10 min"), "(3,6,4,1,1,1,00:00:00.012,00:00:00.7)");
    let wide: Vec<String> = ["1 h", "6 h", "1 day"].map(sums).into();
    for sum in &wide {
        assert!(sum.ends_with(",6,4,1,1,1,00:00:00.012,00:00:00.7)"), "{sum}");
    }
    assert_eq!(http.ask("app", &format!("SELECT awty_http_internal.counts('{id}')")), "(4,1,1)");
    // This roll-up leaves out the current hour, because the hour has not ended yet.
    http.cluster.execute("postgres", &["SELECT awty_http_internal.roll_up(now())"]);
    assert_eq!(["1 h", "6 h", "1 day"].map(sums).to_vec(), wide);
    http.cluster.execute("postgres", &["SELECT awty_http_internal.roll_up(now() + interval '1 h')"]);
    assert_eq!(["1 h", "6 h", "1 day"].map(sums).to_vec(), wide);
    assert_eq!(http.ask("app", &format!("SELECT awty_http_internal.counts('{id}')")), "(4,1,1)");
    let of_all = |role: &str| {
        let day = "SELECT sum(count) FROM awty_http_internal.stats('http.app', '1 day', now() - interval '2 days', now() + interval '1 day')";
        http.ask(role, day)
    };
    assert_eq!((of_all("app"), of_all("other")), ("6".into(), String::new()));
    assert_eq!(http.ask("other", &format!("SELECT awty_http_internal.counts('{id}')")), "(0,0,0)");
    let foreign =
        format!("SELECT count(*) FROM awty_http_internal.stats('{id}', '1 h', now() - interval '1 day', now())");
    assert_eq!(http.ask("other", &foreign), "0");
    let mut app = http.client("app");
    for arguments in
        ["'2 min', now() - interval '1 h', now()", "'1 s', now() - interval '361 s', now()", "'1 h', now(), now()"]
    {
        assert_eq!(
            refused(&mut app, &format!("SELECT awty_http_internal.stats('{id}', {arguments})")),
            "22023",
            "{arguments}"
        );
    }
}

#[test]
fn no_query_computes_the_moments_of_a_plan_without_end() {
    let http = Http::open();
    let moments = "SELECT count(*) FROM awty_http_internal.coming('1 s', NULL, 'UTC', now(), 1000000, NULL)";
    assert_eq!(http.ask("other", moments), "10000");
    let id = http.ask("app", &format!("SELECT awty_http.schedule('{URI}', '1 min')"));
    assert_eq!(
        http.ask("app", &format!("SELECT count(*) <= 10001 FROM awty_http_internal.next_calls('{id}', 1000000)")),
        "true"
    );
}

/// awty_http interpolates percentiles, because a histogram has no exact durations.
#[test]
fn percentiles_lie_within_what_was_seen() {
    let http = Http::open();
    let of = |steps: &str, share: f64| {
        http.ask("app", &format!("SELECT awty_http_internal.percentile(array_cat('{steps}', array_fill(0::bigint, '{{20}}')), {share}, '1.5 ms', '7 ms')"))
    };
    assert_eq!(of("{0,10,0,0}", 0.5), "00:00:00.0015");
    assert_eq!(of("{0,10,0,10}", 0.75), "00:00:00.006");
    assert_eq!(of("{0,10,0,10}", 1.0), "00:00:00.007");
    assert_eq!(of("{0,0,0,0}", 0.5), "");
}

#[test]
fn the_calls_of_a_schedule_come_in_pages() {
    let http = Http::open();
    let id = http.ask("app", &format!("SELECT awty_http.schedule('{URI}', '1 h')"));
    let calls: Vec<_> = (1..=7).map(|ago| (ago, true, "", 0.0, f64::from(ago))).collect();
    was_called(&http, &calls);
    let mut app = http.client("app");
    let mut before = (String::from("infinity"), 0_i64);
    let mut seen = Vec::new();
    loop {
        let page = "SELECT ended_at::text, lease, (result ->> 'duration')::float8 FROM awty_http_internal.attempts($1, $2::text::timestamptz, $3, 3)";
        let rows = app.query(page, &[&id, &before.0, &before.1]).unwrap();
        let Some(last) = rows.last() else { break };
        before = (last.get(0), last.get(1));
        seen.extend(rows.iter().map(|row| row.get::<_, f64>(2)));
    }
    assert_eq!(seen, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    assert_eq!(http.ask("other", &format!("SELECT count(*) FROM awty_http_internal.attempts('{id}')")), "0");
    http.ask("app", &format!("SELECT awty_http.unschedule('{URI}')"));
    assert_eq!(http.ask("app", &format!("SELECT count(*) FROM awty_http_internal.attempts('{id}')")), "7");
}

#[test]
fn each_schedule_says_how_it_stands_and_when_it_is_called() {
    let http = Http::open();
    let id = http.ask("app", &format!("SELECT awty_http.schedule('{URI}', '10 min')"));
    let state = || {
        http.ask(
            "app",
            &format!(
                "SELECT state || coalesce(': ' || why, '') FROM awty_http_internal.schedule_status WHERE id = '{id}'"
            ),
        )
    };
    assert_eq!(state(), "active");
    let distances = format!(
        "SELECT string_agg(d::text, ' ') FROM (SELECT t - lag(t) OVER () AS d FROM awty_http_internal.next_calls('{id}', 4) AS t) AS x"
    );
    assert_eq!(http.ask("app", &distances), "00:10:00 00:10:00 00:10:00");
    assert_eq!(
        http.ask("app", &format!("SELECT min(t) = (SELECT next_check_at FROM awty.future_job) FROM awty_http_internal.next_calls('{id}') AS t")),
        "true"
    );
    http.ask("app", "SELECT awty.alter_target('http.app', 'https://api.example.com', blocked_until => 'infinity', note => 'they move')");
    assert_eq!(state(), "blocked: its target is blocked until infinity: they move");
    http.ask("app", &format!("SELECT awty_http_internal.pause('{id}', 'until Monday')"));
    assert_eq!(state(), "paused: until Monday");
    let by = "SELECT count(*) FROM awty_http.endpoint AS e, awty.explain(e.entity_name, e.entity_key) AS x
        WHERE x.detail LIKE 'the check is held since % by app: \"until Monday\"%'";
    assert_eq!(http.ask("app", by), "1", "the role that paused it is not named");
    assert_eq!(http.ask("app", &format!("SELECT count(*) FROM awty_http_internal.next_calls('{id}')")), "0");
    http.ask("app", &format!("SELECT awty_http_internal.resume('{id}')"));
    http.ask(
        "gateway",
        &format!("SELECT awty_http_internal.asked('{id}', 'hold', 'the endpoint answered that it is gone')"),
    );
    assert_eq!(state(), "held: the endpoint answered that it is gone");
    http.ask("app", &format!("SELECT awty_http.unschedule('{URI}')"));
    assert_eq!(state(), "ended");
    assert_eq!(http.ask("other", "SELECT count(*) FROM awty_http_internal.schedule_status"), "0");
}

#[test]
fn a_send_says_what_became_of_it_and_can_be_cancelled() {
    let http = Http::open();
    let state =
        |key: &str| http.ask("app", &format!("SELECT state FROM awty_http_internal.send_status WHERE key = '{key}'"));
    http.ask(
        "app",
        "SELECT count(awty_http.send('https://api.example.com/x', key => k)) FROM unnest('{gone,done,failed}'::text[]) AS k",
    );
    assert_eq!(state("gone"), "pending");
    assert_eq!(http.ask("app", "SELECT awty_http_internal.cancel_send('gone')"), "true");
    assert_eq!(http.ask("app", "SELECT awty_http_internal.cancel_send('gone')"), "false");
    assert_eq!(http.ask("other", "SELECT awty_http_internal.cancel_send('done')"), "false");
    assert_eq!(state("gone"), "cancelled");
    http.claim_at_least(2);
    assert_eq!(state("done"), "in_flight");
    http.ask("gateway", "SELECT awty.complete(lease) FROM awty.lease WHERE entity_key LIKE '%#app/done'");
    http.ask(
        "gateway",
        "SELECT awty.fail(lease, 'HTTP 404', final => true) FROM awty.lease WHERE entity_key LIKE '%#app/failed'",
    );
    assert_eq!((state("done"), state("failed")), ("done".into(), "failed".into()));
    assert_eq!(
        http.ask("app", "SELECT uri || ' ' || outcome || ' ' || message FROM awty_http_internal.problem"),
        "https://api.example.com/x failed HTTP 404"
    );
    assert_eq!(http.ask("other", "SELECT count(*) FROM awty_http_internal.problem"), "0");
    assert_eq!(http.ask("other", "SELECT count(*) FROM awty_http_internal.send_status"), "0");
}

#[test]
fn what_failed_is_called_again_now() {
    let http = Http::open();
    let problem = "SELECT max(id) FROM awty_http_internal.problem";
    http.ask("app", "SELECT awty_http.send('https://api.example.com/x', '{\"n\": 1}', 'k')");
    http.ask("gateway", &format!("SELECT awty.fail({}, 'HTTP 404', final => true)", http.claim()[0]));
    let past = http.ask("app", problem);
    let mut other = http.client("other");
    let retry = |id: &str| format!("SELECT awty_http_internal.retry({id})");
    assert_eq!(refused(&mut other, &retry(&past)), "42704");
    let again = http.ask("app", &retry(&past));
    assert_ne!(again, past);
    assert_eq!(
        http.ask("app", "SELECT id || ' ' || content FROM awty.future_job JOIN awty_http_internal.content USING (entity_name, entity_key, job)"),
        format!("{again} {{\"body\": {{\"n\": 1}}, \"method\": \"POST\"}}")
    );
    http.ask("gateway", &format!("SELECT awty.complete({})", http.claim()[0]));
    assert_eq!(http.ask("app", "SELECT state FROM awty_http_internal.send_status"), "done");
    http.ask(
        "app",
        &format!("SELECT awty_http.schedule('{URI}', '1 h'), awty.check_now('https://api.example.com', '/tick')"),
    );
    http.ask("gateway", &format!("SELECT awty.fail({}, 'HTTP 404', final => true)", http.claim()[0]));
    let past = http.ask("app", problem);
    http.ask("app", &retry(&past));
    assert_eq!(http.ask("app", "SELECT next_check_at < now() + interval '5 s' FROM awty.future_job"), "true");
    http.ask("app", &format!("SELECT awty_http.unschedule('{URI}')"));
    let mut app = http.client("app");
    assert_eq!(refused(&mut app, &retry(&past)), "42704");
}

fn read_by(http: &Http, sql: &str) -> i64 {
    let read = "SELECT sum(pg_stat_get_xact_blocks_fetched(oid) + pg_stat_get_xact_tuples_returned(oid))::bigint
        FROM pg_class WHERE relnamespace IN (SELECT oid FROM pg_namespace WHERE nspname LIKE 'awty%')";
    let mut app = http.client("app");
    app.batch_execute("BEGIN").unwrap();
    let before: i64 = app.query_one(read, &[]).unwrap().get(0);
    assert_eq!(app.query(sql, &[]).unwrap().len(), 20, "{sql}");
    app.query_one(read, &[]).unwrap().get::<_, i64>(0) - before
}

#[test]
fn a_page_of_a_long_list_costs_no_more_than_one_of_a_short_list() {
    let http = Http::open();
    let list = "SELECT e.*, c.* FROM awty_http_internal.schedule_status AS e CROSS JOIN LATERAL awty_http_internal.counts(e.id) AS c";
    let mut pages = ["WHERE e.id > ''", "WHERE e.entity_name = 'https://h1.example.com'"]
        .map(|which| format!("{list} {which} ORDER BY e.id LIMIT 20"))
        .to_vec();
    let first = "(SELECT awty_http_internal.id(number, 'https://h1.example.com/1') FROM awty_http.tenant)";
    pages.push(format!("SELECT * FROM awty_http_internal.attempts({first}, max => 20)"));
    let read = |from: i32, to: i32| {
        let schedule = format!(
            "SELECT count(awty_http.schedule('https://h' || CASE WHEN n <= 30 THEN 1 ELSE n END || '.example.com/' || n, '1 h')) FROM generate_series({from}, {to}) AS n"
        );
        http.ask("app", &schedule);
        let called = format!(
            "INSERT INTO awty_internal.attempt SELECT (random() * 1e15)::bigint, n, 'http.app', 'https://h1.example.com', '/' || n, now(), now(),
                 0, 1, false, 'app', now(), 'key', now(), now(), now(), 'g', now(), '0', true, NULL, NULL, NULL, 'app'
             FROM generate_series({from}, {to}) AS n, generate_series(1, 20)"
        );
        http.cluster.execute("postgres", &[&called, "ANALYZE"]);
        pages.iter().map(|sql| read_by(&http, sql)).collect::<Vec<_>>()
    };
    let (short, long) = (read(1, 300), read(301, 4000));
    for (sql, (short, long)) in pages.iter().zip(short.into_iter().zip(long)) {
        assert!(long < 2 * short, "{long} blocks and rows, {short} of the short list: {sql}");
    }
}

#[test]
fn attempts_of_another_role_are_not_read() {
    let http = Http::open();
    let id = http.ask("app", &format!("SELECT awty_http.schedule('{URI}', '1 h', jitter => '0')"));
    was_called(&http, &[(5, true, "", 0.003, 0.1)]);
    http.cluster.execute(
        "postgres",
        &[
            "INSERT INTO awty_internal.attempt SELECT n, 1, 'theirs', 'https://api.example.com', '/tick', now(), now(), 0, 1, false,
                 'other', now(), 'key', now(), now(), now(), 'g', now() - n * interval '1 ms', '0', true, NULL, NULL, NULL, 'other'
             FROM generate_series(1, 20000) AS n",
            "ANALYZE",
        ],
    );
    let mut app = http.client("app");
    let mut reader = app.transaction().unwrap();
    for (call, found) in [("attempts", "count(*)"), ("counts", "sum(ok)")] {
        let query = format!("SELECT ({found})::bigint FROM awty_http_internal.{call}('{id}')");
        assert_eq!(reader.query_one(&query, &[]).unwrap().get::<_, i64>(0), 1, "{call}");
    }
    let read = "SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::bigint FROM pg_stat_xact_all_tables WHERE relname ^@ 'attempt'";
    let read: i64 = reader.query_one(read, &[]).unwrap().get(0);
    assert!((1..1000).contains(&read), "{read} rows were read");
}
