//! Statistics: the same numbers however often they are counted.

use super::Http;

#[test]
fn a_roll_up_counts_and_again_gives_the_same_numbers() {
    let http = Http::open();
    http.ask("app", "SELECT awty_http.schedule('https://a.example.com/x', '1 s', jitter => '0')");
    let ways = [
        "complete($1, NULL, '{\"lateness\": 0.0015, \"duration\": 0.25}')",
        "complete($1, NULL, '{\"lateness\": 60, \"duration\": 0.75}')",
        "complete($1, NULL, '{\"lateness\": -1, \"duration\": 1e8}')",
        "fail($1, 'dropped: 12 s late', final => true, untouched => true)",
        "fail($1, 'HTTP 500', final => true, result => '{\"lateness\": 0.0005, \"duration\": 0.5}')",
    ];
    for way in ways {
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
                "SELECT (count, ok, dropped, caught_up, implausible, lateness_sum, lateness_max, duration_sum) {hours}"
            )
        ),
        "(5,3,1,1,2,00:00:00.002,00:00:00.0015,00:00:01.5)"
    );
    // Below 1 ms, below 2 ms; below 512 ms, below 1024 ms.
    assert_eq!(http.ask("app", &format!("SELECT (lateness_steps[1], lateness_steps[2], duration_steps[9], duration_steps[10], duration_steps[11]) {hours}")), "(1,1,1,1,1)");
    let all = "SELECT md5(string_agg(s::text, '' ORDER BY s::text)) FROM awty_http.stat AS s";
    let before = http.ask("app", all);
    http.cluster.execute("postgres", &[roll_up, roll_up]);
    assert_eq!(http.ask("app", all), before);
    assert_eq!(http.ask("other", "SELECT count(*) FROM awty_http.stat"), "0");
    // Hours go after 90 days, days after five years, and then the endpoint that was unscheduled.
    http.ask("app", "SELECT awty_http.unschedule('https://a.example.com/x')");
    http.cluster.execute("postgres", &["SELECT awty_http_internal.roll_up(now() + interval '100 days')"]);
    assert_eq!(http.ask("app", "SELECT string_agg(DISTINCT width::text, ' ') FROM awty_http.stat"), "24:00:00");
    assert_eq!(http.ask("app", "SELECT count(*) FROM awty_http.endpoint"), "1");
    http.cluster.execute("postgres", &["SELECT awty_http_internal.roll_up(now() + interval '2000 days')"]);
    assert_eq!(http.ask("app", "SELECT count(*) FROM awty_http.stat"), "0");
}

/// What one worker reports, and one clock that was ahead, stop the statistics of nobody.
#[test]
fn odd_numbers_and_buckets_of_the_future_do_no_harm() {
    let http = Http::open();
    let id = http.ask("app", "SELECT awty_http.schedule('https://a.example.com/x', '1 s', jitter => '0')");
    for result in ["{\"lateness\": 1e-400, \"duration\": 1e-400}", "{\"lateness\": 1e400, \"duration\": -1e400}"] {
        let lease = http.claim()[0];
        http.ask("gateway", &format!("SELECT awty.complete({lease}, result => '{result}')"));
    }
    let ahead = "INSERT INTO awty_http.stat SELECT '%', '1 hour', date_trunc('hour', now()) + interval '30 days', 1, 1, 0, 0, 0, '0', NULL, NULL,
        array_fill(0, '{24}'), '0', NULL, NULL, array_fill(0, '{24}')".replace('%', &id);
    http.cluster.execute("postgres", &[&ahead]);
    assert_eq!(http.ask("app", &format!("SELECT ok FROM awty_http_internal.counts('{id}')")), "2");
    http.cluster.execute("postgres", &["SELECT awty_http_internal.roll_up(now() + interval '1 hour')"]);
    let counted = "SELECT count || ' ' || lateness_steps[1] FROM awty_http.stat WHERE bucket < now() AND width = '24 hours' AND role IS NULL";
    assert_eq!(http.ask("app", counted), "2 1");
}

/// The job of awty that does it runs.
#[test]
fn the_hourly_check_rolls_up() {
    let http = Http::open();
    http.cluster.execute("postgres", &["SELECT awty.check_now('job', 'awty_http.roll_up')"]);
    let done = "SELECT done = 1 FROM awty.job_status WHERE job = 'awty_http.roll_up'";
    http.cluster.await_sql("postgres", "the check to be done", done);
}

/// An hour is counted as long as its attempts are there, which may be for ever.
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
