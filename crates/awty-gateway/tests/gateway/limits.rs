use crate::people::{is, open, problem};
use crate::shop;
use std::io::{Read, Write};
use std::net::TcpStream;

#[test]
fn a_request_has_a_bounded_head_and_comes_in_time() {
    let (_shop, gateway, client) = open();
    let large = format!("X-Large: {}\r\n", "x".repeat(20 * 1024));
    assert_eq!(client.ask_with("GET", "/v1/schedules", "", &large).status, 431);
    let fitting = format!("X-Fits: {}\r\n", "x".repeat(8 * 1024));
    assert_eq!(client.ask_with("GET", "/v1/schedules", "", &fitting).status, 200);
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

#[test]
fn what_a_role_has_defined_is_never_called_by_its_requests() {
    let (shop, _gateway, client) = open();
    shop.cluster.execute("postgres", &["CREATE SCHEMA app AUTHORIZATION app"]);
    // The role creates operators that PostgreSQL would prefer to its own operators if a request searched the role's
    // schema.
    let function = |name: &str, arguments: &str, result: &str| {
        format!(
            "CREATE FUNCTION app.{name}({arguments}) RETURNS {result} LANGUAGE plpgsql
             AS 'BEGIN INSERT INTO app.called VALUES (session_user); RETURN $1; END'"
        )
    };
    shop.app("CREATE TABLE app.called (by name)");
    shop.app(&function("times", "numeric, integer", "numeric"));
    shop.app("CREATE OPERATOR app.* (LEFTARG = numeric, RIGHTARG = integer, FUNCTION = app.times)");
    shop.app(&function("joined", "bigint, text", "text"));
    shop.app("CREATE OPERATOR app.|| (LEFTARG = bigint, RIGHTARG = text, FUNCTION = app.joined)");
    let called = || shop.text("SELECT count(*) FROM app.called");
    shop.app("SELECT extract(epoch FROM interval '1 s') * 1000, 1::bigint || 'x'::text");
    assert_eq!(called(), "2", "these are no decoys");
    let made = client.ask("POST", "/v1/schedules", "{\"uri\": \"http://a.example/\", \"every\": \"1 h\"}");
    let place = made.header("location");
    assert_eq!(made.status, 201, "{}", made.text);
    for path in ["/v1/schedules", "/v1/status", "/v1/slots", "/v1/targets", "/v1/history?uri=http%3A%2F%2Fa.example%2F"]
    {
        assert_eq!(client.get(path).status, 200, "{path}");
    }
    for part in ["", "/attempts", "/stats", "/next", "/secret"] {
        assert_eq!(client.get(&format!("{place}{part}")).status, 200, "{part}");
    }
    assert_eq!(client.ask("DELETE", &place, "").status, 204);
    assert_eq!(called(), "2", "a request has called them");
}

/// The tests of `requests` show that such changes delay no other role.
#[test]
fn a_change_of_a_locked_schedule_times_out() {
    let (shop, _gateway, client) = open();
    let made = client.ask("POST", "/v1/schedules", "{\"uri\": \"http://a.example/\", \"every\": \"1 h\"}");
    let place = made.header("location");
    let put = || client.ask_once("PUT", &place, "{\"every\": \"2 h\"}", "");
    let mut holder = shop.cluster.client("postgres", "app");
    holder.batch_execute("BEGIN; SELECT awty_http_internal.lock(id) FROM awty_http.endpoint").unwrap();
    for _ in 0..2 {
        let answer = put();
        assert_eq!(problem(&answer), is(504, "timed-out"));
        assert!(answer.text.contains("lock timeout"), "{}", answer.text);
    }
    holder.batch_execute("ROLLBACK").unwrap();
    assert_eq!(put().status, 200);
}
