use crate::client::{Client, encoded};
use crate::people::{self, is, open, problem, until_answer};
use crate::receiver::Receiver;
use serde_json::{Value, json};

struct Fixture {
    operations: Vec<(String, String, Value)>,
}

impl Fixture {
    fn make(client: &Client, admin: &Client, receiver: &Receiver) -> Self {
        let body = json!({"uri": receiver.uri("/status/404"), "every": "1 h"}).to_string();
        let schedule = client.ask("POST", "/v1/schedules", &body).header("location");
        assert_eq!(client.ask("POST", &format!("{schedule}/run"), "").status, 202);
        let send = client.ask("POST", "/v1/sends", &json!({"uri": receiver.uri("/ok"), "after": "1 h"}).to_string());
        let past =
            until_answer(client, "/v1/history", |history| !history["items"].as_array().unwrap().is_empty()).json();
        let token = admin.ask("POST", "/v1/tokens", "{\"scope\": \"read\"}").header("location");
        let real = |path: &str| {
            let id = |place: &str| place.rsplit('/').next().unwrap().to_owned();
            path.replace("/schedules/{id}", &format!("/schedules/{}", id(&schedule)))
                .replace("{key}", &id(&send.header("location")))
                .replace("/history/{id}", &format!("/history/{}", past["items"][0]["id"]))
                .replace("{origin}", &encoded(&receiver.origin()))
                .replace("/tokens/{id}", &format!("/tokens/{}", id(&token)))
                .replace("{uri}/{period}", &format!("{}/1%20h", encoded(&receiver.uri("/status/404"))))
                .replace("{name}", "not-found")
        };
        let document = client.get("/v1/openapi.json").json();
        let mut operations = Vec::new();
        for (path, methods) in document["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                let mut real = real(path);
                if path == "/v1/schedules" && ["put", "delete"].contains(&method.as_str()) {
                    real = format!("{real}?uri={}", encoded(&receiver.uri("/status/404")));
                }
                operations.push((method.to_uppercase(), real, operation.clone()));
            }
        }
        Fixture { operations }
    }

    fn of_api(&self) -> impl Iterator<Item = &(String, String, Value)> {
        self.operations.iter().filter(|(_, path, _)| !path.contains("openapi") && !path.contains("problems"))
    }
}

fn body(path: &str) -> &'static str {
    match path {
        _ if path.starts_with("/v1/tokens") => "{\"scope\": \"read\"}",
        _ if path.starts_with("/v1/sends") => "{\"uri\": \"http://a.example/\"}",
        _ if path.starts_with("/v1/schedules?") => "{\"every\": \"1 h\"}",
        _ if path.ends_with("schedules") => "{\"uri\": \"http://a.example/\", \"every\": \"1 h\"}",
        _ => "{}",
    }
}

#[test]
fn each_operation_asks_for_a_token_a_scope_and_the_right_role() {
    let (shop, gateway, client) = open();
    let receiver = Receiver::start();
    let admin = people::client(&shop, &gateway, "app", "admin");
    let fixture = Fixture::make(&client, &admin, &receiver);
    let with = |token: &str| Client { address: gateway.address(), token: token.to_owned() };
    let old = people::client(&shop, &gateway, "app", "admin");
    shop.cluster.execute(
        "postgres",
        &["UPDATE awty_http.token SET expires_at = now() - interval '1 s' WHERE id = (SELECT max(id) FROM awty_http.token)"],
    );
    let reader = people::client(&shop, &gateway, "app", "read");
    let stranger = people::client(&shop, &gateway, "other", "admin");
    for (method, path, operation) in &fixture.operations {
        let ask = |client: &Client| client.ask(method, path, body(path));
        if operation["security"] == json!([{}]) {
            assert_eq!(ask(&with("")).status, 200, "{method} {path}");
            continue;
        }
        assert_eq!(problem(&ask(&with(""))), is(401, "token-missing"), "{method} {path}");
        assert_eq!(problem(&ask(&old)), is(401, "token-expired"), "{method} {path}");
        let (reads, admins) = (method == "GET", path.contains("/tokens"));
        if !reads || admins || path.ends_with("/secret") {
            assert_eq!(problem(&ask(&reader)), is(403, "not-permitted"), "{method} {path}");
        } else {
            assert_eq!(ask(&reader).status, 200, "{method} {path}");
        }
        if admins || path.starts_with("/v1/targets/") && !reads {
            assert_eq!(problem(&ask(&client)), is(403, "not-permitted"), "{method} {path}");
        }
        let answer = ask(&stranger);
        let of_one = path.matches('/').count() > 2 || path.contains("?uri=") || path.starts_with("/naptime");
        match (of_one, reads) {
            (true, false) if method == "PUT" && (path.contains("?uri=") || path.starts_with("/naptime")) => {
                assert_eq!(problem(&answer), is(403, "not-permitted"), "{method} {path}");
            }
            (true, false) if path.starts_with("/v1/targets/") && !path.ends_with("unblock") => {
                assert_eq!(problem(&answer), is(403, "not-permitted"), "{method} {path}");
            }
            (true, _) => assert_eq!(problem(&answer), is(404, "not-found"), "{method} {path}"),
            (false, true) => {
                let known = ["/v1/status", "/v1/tokens"].contains(&path.as_str());
                assert!(
                    answer.status == 200 && (known || answer.json()["items"] == json!([])),
                    "{method} {path}: {}",
                    answer.text
                );
            }
            (false, false) => {
                let expected = if path == "/v1/tokens" { 201 } else { 403 };
                assert_eq!(answer.status, expected, "{method} {path}: {}", answer.text);
            }
        }
    }
    assert_eq!(shop.text("SELECT count(*) FROM awty_http.endpoint WHERE created_by = 'other'::regrole"), "0");
}

#[test]
fn each_body_and_each_query_is_judged() {
    let (shop, gateway, client) = open();
    let receiver = Receiver::start();
    let admin = people::client(&shop, &gateway, "app", "admin");
    let fixture = Fixture::make(&client, &admin, &receiver);
    let mut bodies = 0;
    for (method, path, operation) in fixture.of_api() {
        if operation.get("requestBody").is_some() {
            bodies += 1;
            let large = format!("{{\"x\": \"{}\"}}", "x".repeat(600 * 1024));
            for (body, headers, expected) in [
                ("{", "", is(400, "malformed-json")),
                ("[1]", "", is(400, "malformed-json")),
                ("\u{feff}{}", "", is(400, "malformed-json")),
                ("{\"colour\": 1}", "", is(422, "invalid-field")),
                ("a=b", "Content-Type: application/x-www-form-urlencoded\r\n", is(415, "unsupported-media-type")),
                (large.as_str(), "", is(413, "too-large")),
            ] {
                let answer = admin.ask_with(method, path, body, headers);
                let short: String = body.chars().take(20).collect();
                assert_eq!(problem(&answer), expected, "{method} {path} {short}: {}", answer.text);
            }
        }
        let takes_query =
            operation["parameters"].as_array().is_some_and(|all| all.iter().any(|one| one["in"] == json!("query")));
        if takes_query {
            let separator = if path.contains('?') { '&' } else { '?' };
            let answer = admin.ask(method, &format!("{path}{separator}colour=1"), body(path));
            assert_eq!(problem(&answer), is(422, "invalid-field"), "{method} {path}");
        }
    }
    assert_eq!(bodies, 8, "operations with a body");
}

#[test]
fn a_tag_is_a_condition_and_requests_at_once_lose_nothing() {
    let (shop, gateway, client) = open();
    let made = client.ask("POST", "/v1/schedules", "{\"uri\": \"http://a.example/\", \"every\": \"1 h\"}");
    let (place, tag) = (made.header("location"), client.get(&made.header("location")).header("etag"));
    let clients: Vec<Client> = (0..8).map(|_| people::client(&shop, &gateway, "app", "write")).collect();
    let put = |client: &Client, number: usize| {
        let body = format!("{{\"every\": \"{} min\"}}", number + 2);
        client.ask_with("PUT", &place, &body, &format!("If-Match: {tag}\r\n")).status
    };
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            clients.iter().enumerate().map(|(number, client)| scope.spawn(move || put(client, number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 412).count(), 7, "{statuses:?}");
    // A schedule that starts failing gets a new ETag. `If-Match` still accepts the old ETag, because no client has
    // changed the schedule meanwhile.
    let tag = client.get(&place).header("etag");
    shop.cluster.execute("postgres", &["UPDATE awty_http_internal.endpoint SET failing_since = now()"]);
    assert_eq!(client.ask_with("GET", &place, "", &format!("If-None-Match: {tag}\r\n")).status, 200);
    let changed = client.ask_with("POST", &format!("{place}/pause"), "", &format!("If-Match: {tag}\r\n"));
    assert_eq!(changed.status, 200, "{}", changed.text);
    assert_eq!(client.ask_with("PUT", &place, "{\"every\": \"1 h\"}", "If-None-Match: *\r\n").status, 412);
    let by_uri = format!("/v1/schedules?uri={}", encoded("http://b.example/"));
    let made: Vec<u16> = std::thread::scope(|scope| {
        let make =
            |client: &Client| client.ask_with("PUT", &by_uri, "{\"every\": \"1 h\"}", "If-None-Match: *\r\n").status;
        let threads: Vec<_> = clients.iter().map(|client| scope.spawn(move || make(client))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(made.iter().filter(|status| **status == 201).count(), 1, "{made:?}");
    assert_eq!(made.iter().filter(|status| **status == 412).count(), 7, "{made:?}");
}

#[test]
fn what_is_being_called_is_not_called_a_second_time() {
    let (_shop, _gateway, client) = open();
    let receiver = Receiver::start();
    let body = json!({"uri": receiver.uri("/hang"), "every": "1 h", "timeout": "10 min"}).to_string();
    let place = client.ask("POST", "/v1/schedules", &body).header("location");
    let run = || client.ask("POST", &format!("{place}/run"), "");
    assert_eq!(run().status, 202);
    until_answer(&client, &place, |_| receiver.seen("/hang").len() == 1);
    let again = run();
    assert_eq!(problem(&again), is(409, "already-running"), "{}", again.text);
    assert_eq!(receiver.seen("/hang").len(), 1);
}
