use crate::receiver::Receiver;
use crate::shop::{Gateway, Shop, until};
use std::process::Command;

fn value(gateway: &Gateway, series: &str) -> Option<f64> {
    let text = gateway.get("/metrics").1;
    text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
}

#[track_caller]
fn until_value(gateway: &Gateway, series: &str, good: impl Fn(f64) -> bool) {
    until(series, || value(gateway, series).filter(|value| good(*value)).ok_or_else(|| gateway.get("/metrics").1));
}

/// Makes calls first, because a metric appears only with its first value.
fn names(shop: &Shop, gateway: &Gateway) -> Vec<String> {
    shop.app("SELECT awty_http.send('http://127.0.0.1:1025/', '{}')");
    assert_eq!(gateway.get("/v1/schedules").0, 401);
    until_value(gateway, "awty_gateway_deliveries_total{outcome=\"failed\",status_class=\"none\"}", |_| true);
    until_value(gateway, "awty_pending{job=\"http.app\"}", |_| true);
    let text = gateway.get("/metrics").1;
    text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).map(str::to_owned).collect()
}

#[test]
fn each_metric_that_is_promised_is_there() {
    let shop = Shop::open();
    let gateway = shop.gateway("one");
    let found = names(&shop, &gateway);
    let of = |prefix: &str, kind: &str, names: &str| -> Vec<String> {
        names.split(' ').map(|name| format!("{prefix}{name} {kind}")).collect()
    };
    let promised = [
        of(
            "awty_gateway_",
            "counter",
            "deliveries leases retries blocked_addresses breaker_opened http_requests implausible_values",
        ),
        of(
            "awty_gateway_",
            "histogram",
            "delivery_duration_seconds lateness_seconds claim_duration_seconds http_request_duration_seconds",
        ),
        of("awty_gateway_", "gauge", "in_flight db_connections last_claim_timestamp_seconds build_info"),
        of("awty_", "gauge", "pending overdue lag_seconds held targets schedules_failing"),
        of("awty_", "counter", "outcomes missed"),
    ];
    let missing: Vec<_> = promised.concat().into_iter().filter(|name| !found.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?} of {found:?}");
    assert_eq!(value(&gateway, "awty_gateway_leases_total{result=\"refused\"}"), Some(0.0));
}

const RULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/packaging/alerts.yml");

#[test]
fn each_metric_of_an_alert_is_there() {
    let rules = std::fs::read_to_string(RULES).unwrap();
    let expressions: Vec<_> = rules.lines().filter_map(|line| line.trim().strip_prefix("expr: ")).collect();
    assert_eq!(expressions.len(), rules.matches("alert:").count(), "an expression is not on one line");
    let words = expressions.iter().flat_map(|one| one.split(|c: char| c != '_' && !c.is_ascii_lowercase()));
    let shop = Shop::open();
    let gateway = shop.gateway("one");
    names(&shop, &gateway);
    let text = gateway.get("/metrics").1;
    let is_there = |name: &str| text.lines().any(|line| line.split(['{', ' ']).next() == Some(name));
    let missing: Vec<_> = words.filter(|word| word.starts_with("awty_") && !is_there(word)).collect();
    assert!(missing.is_empty(), "{missing:?}\n{text}");
}

#[test]
fn prometheus_understands_the_alerts() {
    let target = std::path::Path::new(env!("CARGO_BIN_EXE_awty-gateway")).ancestors().nth(2).unwrap();
    let own = target.join("prometheus/usr/bin/promtool");
    let run = |program: &std::ffi::OsStr| Command::new(program).args(["check", "rules", RULES]).output();
    let checked = run("promtool".as_ref()).or_else(|_| run(own.as_os_str()));
    let checked = checked.expect("promtool is needed: scripts/setup test");
    let said = String::from_utf8_lossy(&[checked.stdout, checked.stderr].concat()).into_owned();
    assert!(checked.status.success() && said.contains("SUCCESS"), "{said}");
}

#[test]
fn what_was_missed_is_counted_by_job() {
    let shop = Shop::open();
    shop.cluster.execute("postgres", &["SELECT awty.alter('http.app', on_missed => 'skip')"]);
    let gateway = shop.gateway("one");
    let series = "awty_missed_total{job=\"http.app\"}";
    until_value(&gateway, series, |value| value == 0.0);
    shop.cluster.execute("postgres", &["SELECT awty.pause('http.app')"]);
    shop.app("SELECT awty_http.send('http://127.0.0.1:9009/' || n, '{}') FROM generate_series(1, 3) AS n");
    shop.await_text("SELECT count(*) FROM awty.future_job WHERE next_check_at < now() - '3 s'::interval", "3");
    shop.cluster.execute("postgres", &["SELECT awty.resume('http.app')"]);
    until_value(&gateway, series, |value| value == 3.0);
    shop.cluster.execute("postgres", &["DELETE FROM awty.future_job_history"]);
    assert_eq!(value(&gateway, series), Some(3.0));
}

#[test]
fn many_ends_of_one_tenant_do_not_stop_the_count_of_another() {
    let shop = Shop::open();
    shop.add_tenant("tenant");
    let gateway = shop.gateway("one");
    until_value(&gateway, "awty_missed_total{job=\"http.app\"}", |value| value == 0.0);
    let ends = |role: &str, count: i32| {
        format!(
            "INSERT INTO awty.future_job_history (id, job, entity_name, entity_key, first_check_at, next_check_at, scheduled_by,
                 scheduled_at, finished_at, run_time, check_count, attempts, outcome, role)
             SELECT {count} + n, 'http.{role}', 'https://api.example.com', '/', now(), now(), '{role}', now(), now(), '0', 1, 1, 'missed', '{role}'
             FROM generate_series(1, {count}) AS n"
        )
    };
    shop.cluster.execute("postgres", &[&format!("BEGIN; {}; {}; COMMIT", ends("tenant", 60_000), ends("app", 1))]);
    until_value(&gateway, "awty_missed_total{job=\"http.app\"}", |value| value == 1.0);
    assert_eq!(value(&gateway, "awty_missed_total{job=\"http.tenant\"}"), Some(50_000.0));
}

#[test]
fn a_schedule_whose_failures_are_final_is_failing() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    let gateway = shop.gateway("one");
    let series = "awty_schedules_failing{job=\"http.app\"}";
    until_value(&gateway, series, |value| value == 0.0);
    let (origin, uri) = (receiver.origin(), receiver.uri("/status/404"));
    shop.app(&format!("SELECT awty_http.schedule('{uri}', '1 h')"));
    shop.app(&format!("SELECT awty.check_now('{origin}', '/status/404', 'http.app')"));
    until_value(&gateway, series, |value| value == 1.0);
    shop.app(&format!("SELECT awty_http.unschedule('{uri}')"));
    until_value(&gateway, series, |value| value == 0.0);
}

#[test]
fn failing_schedules_of_one_tenant_hide_none_of_another() {
    let shop = Shop::open();
    shop.add_tenant("tenant");
    let many = "INSERT INTO awty_http_internal.endpoint (id, job, uri, entity_name, entity_key, every, created_by, failing_since)
        SELECT 's_' || md5(n::text), 'http.tenant', 'https://many.example/' || n, 'https://many.example', '/' || n, '1 h', 'tenant'::regrole, '2020-01-01'
        FROM generate_series(1, 100001) AS n";
    shop.cluster.execute("postgres", &[many]);
    shop.app("SELECT awty_http.schedule('https://api.example.com/', '1 h')");
    shop.cluster.execute(
        "postgres",
        &["UPDATE awty_http_internal.endpoint SET failing_since = now() WHERE job = 'http.app'", "ANALYZE"],
    );
    let gateway = shop.gateway("one");
    until_value(&gateway, "awty_schedules_failing{job=\"http.tenant\"}", |value| value == 10_000.0);
    assert_eq!(value(&gateway, "awty_schedules_failing{job=\"http.app\"}"), Some(1.0));
}

#[test]
fn targets_of_one_tenant_hide_none_of_another() {
    let shop = Shop::open();
    shop.add_tenant("tenant");
    let many = "INSERT INTO awty_internal.target (job, target, concurrency) SELECT 'http.tenant', 'https://' || n || '.example', 1 FROM generate_series(1, 60000) AS n";
    shop.cluster.execute("postgres", &[many, "ANALYZE"]);
    shop.app("SELECT awty.alter_target('http.app', 'https://~.example', blocked_until => 'infinity')");
    let gateway = shop.gateway("one");
    until_value(&gateway, "awty_targets{state=\"ready\"}", |value| value == 5_000.0);
    assert_eq!(value(&gateway, "awty_targets{state=\"blocked\"}"), Some(1.0));
}

#[test]
fn only_calls_that_are_made_again_count_as_retries() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    let gateway = shop.gateway("one");
    let series = "awty_gateway_retries_total";
    until_value(&gateway, series, |value| value == 0.0);
    for path in ["/flaky", "/status/404"] {
        let uri = receiver.uri(path);
        shop.app(&format!(
            "SELECT awty_http.schedule('{uri}', after => '0', retries => '{{\"first_delay\": \"1 s\"}}')"
        ));
    }
    shop.await_text("SELECT count(*) FROM awty.future_job WHERE job = 'http.app'", "0");
    shop.await_text("SELECT string_agg(ok::text, ',' ORDER BY ok) FROM awty.attempt", "false,false,true");
    until_value(&gateway, series, |value| value >= 1.0);
    assert_eq!(value(&gateway, series), Some(1.0));
}

#[test]
fn only_addresses_that_are_not_allowed_count_as_blocked() {
    let shop = Shop::open();
    let gateway = shop.gateway("one");
    let series = "awty_gateway_blocked_addresses_total";
    until_value(&gateway, series, |value| value == 0.0);
    for address in [&gateway.address(), "127.0.0.1:1025"] {
        shop.app(&format!("SELECT awty_http.send('http://{address}/')"));
    }
    shop.await_text(
        "SELECT string_agg(DISTINCT result ->> 'fault', ',' ORDER BY result ->> 'fault') FROM awty.attempt",
        "blocked-address,connect",
    );
    until_value(&gateway, series, |value| value >= 1.0);
    assert_eq!(value(&gateway, series), Some(1.0));
}

#[test]
fn a_breaker_that_opens_is_counted() {
    let shop = Shop::open();
    let gateway = shop.gateway("one");
    let series = "awty_gateway_breaker_opened_total";
    until_value(&gateway, series, |value| value == 0.0);
    shop.app("SELECT awty_http.schedule('http://127.0.0.1:1025/' || n, '1 s') FROM generate_series(1, 5) AS n");
    until_value(&gateway, series, |value| value == 1.0);
    until_value(&gateway, "awty_targets{state=\"open\"}", |value| value == 1.0);
    assert_eq!(value(&gateway, series), Some(1.0), "the same one was counted again");
}

#[test]
fn metrics_and_health_have_a_listener_of_their_own() {
    let shop = Shop::open();
    let gateway = shop.gateway("one");
    let (main, own) = (gateway.address(), gateway.address_of_metrics());
    assert_ne!(own, main);
    let (status, text) = gateway.get_at(&own, "/metrics");
    assert!(status == 200 && text.contains("awty_gateway_build_info"), "{status} {text}");
    assert_eq!((gateway.get_at(&own, "/livez").0, gateway.get_at(&own, "/v1/schedules").0), (200, 404));
    assert_eq!((gateway.get_at(&main, "/metrics").0, gateway.get_at(&main, "/livez").0), (404, 200));
    let held: Vec<_> = (0..110).map(|_| std::net::TcpStream::connect(&main)).collect();
    assert_eq!((gateway.get_at(&own, "/livez").0, gateway.get_at(&own, "/metrics").0), (200, 200));
    drop(held);
    shop.app(&format!("SELECT awty_http.send('http://{own}/metrics', '{{}}')"));
    shop.await_text("SELECT string_agg(result ->> 'fault', ',') FROM awty.attempt", "blocked-address");
}
