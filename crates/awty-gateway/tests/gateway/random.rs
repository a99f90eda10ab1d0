use crate::client::{Client, encoded};
use crate::people;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const REQUESTS: usize = 10_000;
const CLIENTS: u64 = 20;
/// The gateway's memory may grow by this many KiB, because the allocator keeps memory of large requests.
const GROWTH: u64 = 8 << 10;

fn text(random: &mut StdRng) -> String {
    let pieces = [
        "",
        "10 s",
        "1h 30m",
        "10000",
        "-1 s",
        "9999999 w",
        "http://a.example/",
        "http://10.0.0.1/",
        "https://b.example/x?y=z",
        "\u{0}",
        "\u{202e}abc",
        "<script>",
        "'; DROP TABLE x; --",
        "{{secret:X}}",
        "* * * * *",
        "Europe/Berlin",
        "2027-01-01T00:00:00Z",
        "infinity",
        "200-299",
        "POST",
        "ünï",
        "%00",
        "../..",
        "\u{10ffff}",
    ];
    if random.random_bool(0.03) {
        "x".repeat(random.random_range(0..100_000))
    } else {
        (*pieces.choose(random).unwrap()).to_owned()
    }
}

fn value(random: &mut StdRng) -> Value {
    match random.random_range(0..9) {
        0 => Value::Null,
        1 => json!(random.random::<bool>()),
        2 => json!(random.random::<i64>()),
        3 => json!(random.random::<f64>() * 1e300),
        4 => json!([text(random), 1]),
        5 => json!({text(random): text(random)}),
        _ => json!(text(random)),
    }
}

fn body(random: &mut StdRng) -> String {
    let fields = [
        "uri",
        "every",
        "cron",
        "zone",
        "at",
        "after",
        "starts",
        "ends",
        "jitter",
        "catch_up",
        "method",
        "headers",
        "body",
        "body_text",
        "body_base64",
        "timeout",
        "connect_timeout",
        "retries",
        "max_lateness",
        "success",
        "sign",
        "keep_response",
        "labels",
        "description",
        "paused",
        "note",
        "blocked_until",
        "concurrency",
        "rate",
        "burst",
        "scope",
        "role",
        "expires",
        "nonsense",
    ];
    if random.random_bool(0.05) {
        return text(random);
    }
    let uri = format!("http://c.example/{}", random.random_range(0..20));
    let mut all = match random.random_range(0..5) {
        0 => json!({}),
        1 => json!({"uri": uri}),
        2 => json!({"scope": "read"}),
        _ => json!({"uri": uri, "every": "1 h"}),
    };
    for _ in 0..random.random_range(0..4) {
        all[*fields.choose(random).unwrap()] = value(random);
    }
    all.to_string()
}

#[derive(Default)]
struct Made {
    schedules: Vec<String>,
    keys: Vec<String>,
    tokens: Vec<i64>,
}

fn one_of(random: &mut StdRng, all: &[&str]) -> String {
    (*all.choose(random).unwrap()).to_owned()
}

fn query(random: &mut StdRng) -> String {
    let names = ["state", "q", "label", "origin", "failing", "limit", "after", "uri", "from", "to", "bucket", "count"];
    let value = match random.random_range(0..3) {
        0 => text(random),
        1 => one_of(
            random,
            &["1", "100", "true", "active", "1m", "10s", "1d", "2026-01-01T00:00:00Z", "-262143-01-01T00:00:00Z"],
        ),
        _ => one_of(
            random,
            &["WyJhIl0", "WyIxIiwiMiJd", "WyJpbmZpbml0eSIsIjEiXQ", "WyIyMDI2LTAxLTAxIiwiMSJd", "http://c.example/1"],
        ),
    };
    format!("{}={}", one_of(random, &names), encoded(&value))
}

fn path(random: &mut StdRng, made: &Made) -> String {
    let id = made.schedules.choose(random).cloned().unwrap_or_else(|| "s_none".into());
    let key = made.keys.choose(random).cloned().unwrap_or_else(|| text(random));
    let origin = one_of(random, &["http://c.example", "https://b.example", "http://c.example/x", "nonsense"]);
    let number = random.random_range(-2..1_000_i64);
    let bare = match random.random_range(0..20) {
        0 | 1 => "/v1/schedules".into(),
        2 => format!("/naptime/{}/{}", encoded(&text(random)), encoded(&text(random))),
        3 => format!("/naptime/http%3A%2F%2Fc.example%2F{}/1%20h", number.rem_euclid(20)),
        4 => format!("/v1/schedules/{}", encoded(&text(random))),
        5 | 6 => format!("/v1/schedules/{id}"),
        7 | 8 => format!("/v1/schedules/{id}/{}", one_of(random, &["run", "pause", "resume", "x"])),
        9 | 10 => format!("/v1/schedules/{id}/{}", one_of(random, &["attempts", "secret", "stats", "next"])),
        11 => "/v1/sends".into(),
        12 => format!("/v1/sends/{}", encoded(&key)),
        13 => {
            one_of(random, &["/v1/history", "/v1/slots", "/v1/status", "/v1/targets", "/v1/tokens", "/v1/openapi.json"])
        }
        14 => format!("/v1/history/{}/retry", encoded(&one_of(random, &["1", "5", "-1", "9223372036854775808", "x"]))),
        15 => format!("/v1/targets/{}", encoded(&origin)),
        16 => format!("/v1/targets/{}/{}", encoded(&origin), one_of(random, &["block", "unblock"])),
        17 => format!("/v1/tokens/{}", made.tokens.choose(random).copied().unwrap_or(-number.abs())),
        18 => format!("/problems/{}", encoded(&text(random))),
        _ => format!("/{}", encoded(&text(random))),
    };
    if random.random_bool(0.3) { format!("{bare}?{}", query(random)) } else { bare }
}

fn method(random: &mut StdRng, path: &str) -> String {
    let posts = ["/run", "/pause", "/resume", "/retry", "/block", "/unblock", "/v1/sends"];
    let bare = path.split('?').next().unwrap_or_default();
    match random.random_range(0..10) {
        0 | 1 => one_of(random, &["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]),
        _ if posts.iter().any(|end| bare.ends_with(end)) => "POST".into(),
        _ if bare.starts_with("/v1/schedules/s_") && bare.matches('/').count() > 3 => "GET".into(),
        _ if bare == "/v1/tokens" => one_of(random, &["GET", "POST"]),
        _ => one_of(random, &["GET", "GET", "POST", "PUT", "DELETE"]),
    }
}

fn headers(random: &mut StdRng) -> String {
    let name = one_of(random, &["If-Match", "If-None-Match", "Idempotency-Key", "Content-Type", "Accept"]);
    let value =
        one_of(random, &["*", "\"1-0\"", "W/\"x\"", "k1", "\"k 2\"", "", "application/json", "text/html", "\u{e9}"]);
    if random.random_bool(0.4) { format!("{name}: {value}\r\n") } else { String::new() }
}

#[test]
fn no_request_is_answered_with_500_and_memory_stays_flat() {
    let (shop, gateway, _client) = people::open();
    let clients: Vec<Client> = (0..CLIENTS).map(|_| people::client(&shop, &gateway, "tenant", "admin")).collect();
    let (mut random, mut made, mut seen) = (StdRng::seed_from_u64(19), Made::default(), BTreeMap::<u16, usize>::new());
    let mut early = 0;
    for number in 0..REQUESTS {
        let client = &clients[number % clients.len()];
        let (path, body, headers) = (path(&mut random, &made), body(&mut random), headers(&mut random));
        let method = method(&mut random, &path);
        let answer = client.ask_with(&method, &path, &body, &headers);
        *seen.entry(answer.status).or_default() += 1;
        // On a busy machine, a request can time out at a locked row.
        let is_good =
            (200..500).contains(&answer.status) || (answer.status, answer.problem().as_str()) == (504, "timed-out");
        assert!(is_good, "{method} {path}\n{headers}{body}\n{} {}\n{}", answer.status, answer.text, gateway.log());
        let json = answer.json();
        made.schedules.extend(json["id"].as_str().map(str::to_owned));
        made.keys.extend(json["key"].as_str().map(str::to_owned));
        made.tokens.extend(json["token"].as_str().and(json["id"].as_i64()));
        if number == REQUESTS * 2 / 5 {
            early = gateway.memory();
        }
    }
    assert_eq!(gateway.get("/livez").0, 200);
    assert!(
        [200, 201, 202, 204, 400, 404, 405, 409, 410, 412, 422].iter().all(|status| seen.contains_key(status)),
        "not much was tried: {seen:?}"
    );
    let late = gateway.memory();
    assert!(late < early + GROWTH, "memory grows: {early} KiB after two fifths, {late} at the end");
}
