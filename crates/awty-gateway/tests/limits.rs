//! What bounds a request, and what the whole database has to say to it.
#![allow(clippy::unwrap_used, clippy::expect_used)] // in a test the panic is the report

#[path = "common/client.rs"]
mod client;
#[path = "common/people.rs"]
mod people;
#[path = "common/shop.rs"]
mod shop;

use people::{is, open, problem};
use std::io::{Read, Write};
use std::net::TcpStream;

#[test]
fn a_request_has_a_bounded_head_and_comes_in_time() {
    let (_shop, gateway, client) = open();
    let large = format!("X-Large: {}\r\n", "x".repeat(20 * 1024));
    assert_eq!(client.ask_with("GET", "/v1/schedules", "", &large).status, 431);
    let fitting = format!("X-Fits: {}\r\n", "x".repeat(8 * 1024));
    assert_eq!(client.ask_with("GET", "/v1/schedules", "", &fitting).status, 200);
    // Half a head, and a body that does not come: both are ended by the gateway.
    let begun = |text: &str| {
        let mut stream = TcpStream::connect(gateway.address()).unwrap();
        stream.set_read_timeout(Some(shop::PATIENCE)).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        stream
    };
    let token = &client.token;
    let half = begun("GET /v1/schedules HTTP/1.1\r\nHost: x\r\n");
    let no_body = begun(&format!(
        "POST /v1/sends HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Length: 9\r\n\r\n{{"
    ));
    for (mut stream, expected) in [(half, ""), (no_body, "504")] {
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer);
        assert_eq!(answer.split(' ').nth(1).unwrap_or_default(), expected, "{answer}");
    }
    assert_eq!(problem(&client.get("/v1/schedules/%FF")), is(404, "not-found"));
    let metrics = gateway.get("/metrics").1;
    let series = "awty_gateway_http_requests_total{route=\"/v1/schedules/{id}\",method=\"GET\",status=\"404\"} 1";
    assert!(metrics.contains(series) && !metrics.contains("%FF"), "{metrics}");
}

#[test]
fn a_database_that_is_held_promises_no_call() {
    let (shop, _gateway, client) = open();
    let made = client.ask("POST", "/v1/schedules", "{\"uri\": \"http://a.example/\", \"every\": \"1 h\"}");
    let run = format!("{}/run", made.header("location"));
    shop.cluster.execute("postgres", &["UPDATE awty_internal.origin SET identity = identity + 1"]);
    assert_eq!(problem(&client.ask("POST", &run, "")), is(503, "held-until-adopted"));
    assert_eq!(client.get("/v1/status").json()["database"]["held"], serde_json::json!(true));
    shop.cluster.execute("postgres", &["SELECT awty.adopt()"]);
    assert_eq!(client.ask("POST", &run, "").status, 202);
}
