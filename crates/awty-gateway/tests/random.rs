//! Random requests: whatever a client sends, no answer is a 500, and the gateway stays up.
#![allow(clippy::unwrap_used, clippy::expect_used)] // in a test the panic is the report

#[path = "common/client.rs"]
mod client;
#[path = "common/shop.rs"]
mod shop;

use client::{Client, encoded};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use shop::Shop;
use std::collections::BTreeMap;

const REQUESTS: usize = 10_000;
const CLIENTS: u64 = 20;

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
        "nonsense",
    ];
    if random.random_bool(0.05) {
        return text(random);
    }
    let mut all = json!({"uri": format!("http://c.example/{}", random.random_range(0..20)), "every": "1 h"});
    for _ in 0..random.random_range(0..4) {
        all[*fields.choose(random).unwrap()] = value(random);
    }
    all.to_string()
}

fn path(random: &mut StdRng, ids: &[String]) -> String {
    let id = ids.choose(random).cloned().unwrap_or_else(|| "s_none".into());
    match random.random_range(0..8) {
        0 => "/v1/schedules".into(),
        1 => format!("/v1/schedules?uri={}", encoded(&text(random))),
        2 => format!(
            "/v1/schedules?{}={}",
            ["state", "q", "label", "origin", "failing", "limit", "after"].choose(random).unwrap(),
            encoded(&text(random))
        ),
        3 => format!("/naptime/{}/{}", encoded(&text(random)), encoded(&text(random))),
        4 => format!("/v1/schedules/{}", encoded(&text(random))),
        5 => format!("/v1/schedules/{id}"),
        6 => format!(
            "/v1/schedules/{id}/{}",
            ["run", "pause", "resume", "attempts", "secret", "x"].choose(random).unwrap()
        ),
        _ => format!("/{}", encoded(&text(random))),
    }
}

#[test]
fn no_request_is_answered_with_500() {
    let shop = Shop::open();
    shop.cluster.execute("postgres", &["ALTER ROLE gateway NOINHERIT", "GRANT app TO gateway"]);
    let gateway = shop.gateway("one");
    let clients: Vec<Client> =
        (0..CLIENTS).map(|_| Client { address: gateway.address(), token: shop.token("app", "write") }).collect();
    let (mut random, mut ids, mut seen) =
        (StdRng::seed_from_u64(19), Vec::<String>::new(), BTreeMap::<u16, usize>::new());
    for number in 0..REQUESTS {
        let client = &clients[number % clients.len()];
        let method = ["GET", "POST", "PUT", "DELETE"].choose(&mut random).unwrap();
        let (path, body) = (path(&mut random, &ids), body(&mut random));
        let answer = client.ask(method, &path, &body);
        *seen.entry(answer.status).or_default() += 1;
        assert!((200..500).contains(&answer.status), "{method} {path}\n{body}\n{} {}", answer.status, answer.text);
        ids.extend(answer.json()["id"].as_str().map(str::to_owned));
    }
    assert_eq!(gateway.get("/livez").0, 200);
    assert!([200, 201, 404, 422].iter().all(|status| seen.contains_key(status)), "not much was tried: {seen:?}");
}
