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

/// The job of awty that does it runs.
#[test]
fn the_hourly_check_rolls_up() {
    let http = Http::open();
    http.cluster.execute("postgres", &["SELECT awty.check_now('job', 'awty_http.roll_up')"]);
    let done = "SELECT done = 1 FROM awty.job_status WHERE job = 'awty_http.roll_up'";
    http.cluster.await_sql("postgres", "the check to be done", done);
}
