use crate::client::{Client, encoded};
use crate::people::{self, is, open, problem};
use crate::receiver::Receiver;
use crate::shop::Shop;
use serde_json::{Value, json};

#[test]
fn put_takes_what_get_returns_and_changes_nothing() {
    let (shop, _gateway, client) = open();
    for (path, fields) in [
        (
            "/json",
            "every => '3600.5 s', body => '{\"a\": 1}', headers => '{\"X-Api-Key\": \"s3cret\", \"X-From\": \"shop\"}'",
        ),
        ("/null", "cron => '0 9 * * *', zone => 'UTC', body => 'null', labels => '{a,b}'"),
        ("/text", "every => '1 mon', zone => 'UTC', body_text => 'x', jitter => '0', catch_up => '1 day'"),
        ("/bytes", "after => '1 day', body_base64 => 'AA==', retries => '{\"max_attempts\": 2}', timeout => '5 s'"),
        (
            "/none",
            "at => date_trunc('hour', now() + interval '30 days'), max_lateness => '1 h', description => 'd', paused => true",
        ),
    ] {
        let uri = format!("https://localhost{path}");
        shop.app(&format!("SELECT awty_http.schedule('{uri}', {fields})"));
        let stored = || {
            shop.text(&format!(
                "SELECT concat(e, f.next_check_at) FROM awty_http.endpoint AS e
                 JOIN awty.future_job AS f ON f.entity_name = e.entity_name AND f.entity_key = e.entity_key AND f.job = e.job
                 WHERE e.uri = '{uri}'"
            ))
        };
        let (place, before) = (format!("/v1/schedules?uri={}", encoded(&uri)), stored());
        let shown = client.get(&place);
        let tag = format!("If-Match: {}\r\n", shown.header("etag"));
        let put = client.ask_with("PUT", &place, &shown.text, &tag);
        assert_eq!(put.status, 200, "{path}: {} {}", shown.text, put.text);
        assert_eq!(stored(), before, "{path}: {}", shown.text);
    }
}

#[test]
fn one_field_of_an_answer_changes_and_hidden_values_stay() {
    let (shop, _gateway, client) = open();
    let place = format!("/v1/schedules?uri={}", encoded("https://localhost/tick"));
    let body = json!({"every": "1 h", "jitter": "0 s", "catch_up": "0s", "headers": {"X-Api-Key": "s3cret"}});
    let mut shown = client.ask("PUT", &place, &body.to_string()).json();
    assert_eq!((&shown["jitter"], &shown["catch_up"]), (&json!("0s"), &json!("0s")));
    shown["every"] = json!("2 h");
    assert_eq!(client.ask("PUT", &place, &shown.to_string()).json()["every"], json!("2h"));
    let stored = "SELECT request -> 'headers' ->> 'X-Api-Key' FROM awty_http.endpoint";
    assert_eq!(shop.text(stored), "s3cret");
    shown["headers"] = json!({"X-Other-Key": "•••"});
    let refused = client.ask("PUT", &place, &shown.to_string());
    assert!(refused.status == 422 && refused.text.contains("none is stored"), "{}", refused.text);
    for (method, path, body) in [
        ("PUT", place.as_str(), json!({"every": "1 h", "colour": "red"})),
        ("POST", "/v1/schedules", json!({"uri": "https://localhost/b", "every": "1 h", "counts": {}})),
        ("POST", "/v1/sends", json!({"uri": "https://localhost/b", "headers": {"X-Api-Key": "•••"}})),
    ] {
        assert_eq!(problem(&client.ask(method, path, &body.to_string())), is(422, "invalid-field"), "{method} {body}");
    }
    assert_eq!(client.ask("DELETE", &place, "").status, 204);
    shown["headers"] = json!({"X-Api-Key": "•••"});
    assert_eq!(client.ask("PUT", &place, &shown.to_string()).status, 422, "a deleted schedule keeps no value");
}

#[test]
fn put_takes_what_get_returns_of_a_target() {
    let (shop, gateway, client) = open();
    client.ask("POST", "/v1/schedules", &json!({"uri": "https://localhost/tick", "every": "1 h"}).to_string());
    let admin = people::client(&shop, &gateway, "app", "admin");
    let place = format!("/v1/targets/{}", encoded("https://localhost"));
    let mut target = admin.get(&place).json();
    target["concurrency"] = json!(3);
    let put = admin.ask("PUT", &place, &target.to_string());
    assert_eq!((put.status, &put.json()["concurrency"]), (200, &json!(3)), "{}", put.text);
    target["colour"] = json!("red");
    assert_eq!(problem(&admin.ask("PUT", &place, &target.to_string())), is(422, "invalid-field"));
}

#[test]
fn a_secret_that_cannot_be_sent_is_refused_when_it_is_given() {
    let shop = Shop::open();
    shop.secret("app", "TOKEN", "t0p\n");
    shop.let_secret("app", "TOKEN", "https://localhost");
    let file = shop.let_secret("app", "GONE", "https://localhost");
    let gateway = shop.gateway_with("gateway", &["--config", &file]);
    let client = people::client(&shop, &gateway, "app", "write");
    let ask = |path: &str, origin: &str, value: &str| {
        let body = json!({"uri": format!("{origin}/x"), "every": "1 h", "headers": {"X": value}});
        let send = json!({"uri": format!("{origin}/x"), "headers": {"X": value}});
        client.ask("POST", path, &(if path == "/v1/sends" { send } else { body }).to_string())
    };
    for path in ["/v1/schedules", "/v1/sends"] {
        for (origin, value, part) in [
            (
                "https://b.example",
                "{{secret:TOKEN}}",
                "[secrets.\\\"app/TOKEN\\\"]\\norigins = [\\\"https://b.example\\\"]",
            ),
            ("https://localhost", "{{secret:NOPE}}", "[secrets.\\\"app/NOPE\\\"]"),
            ("https://localhost", "{{secret:GONE}}", "is not in the tenant's folder"),
            ("https://localhost", "{{secret:TOKEN", "has no end"),
        ] {
            let refused = ask(path, origin, value);
            assert_eq!(problem(&refused), is(422, "invalid-field"), "{value}");
            assert!(refused.text.contains(part) && !refused.text.contains("t0p"), "{}", refused.text);
            assert_eq!(refused.json()["errors"][0]["pointer"], json!("/headers"));
        }
        assert_eq!(ask(path, "https://localhost", "Bearer {{secret:TOKEN}}").status, 201);
    }
    assert_eq!(shop.text("SELECT count(*) FROM awty.future_job WHERE job = 'http.app'"), "2");
}

#[test]
fn a_token_that_is_not_known_is_told_from_a_missing_one() {
    let (_shop, gateway, client) = open();
    let said = |token: &str| {
        let answer = Client { address: gateway.address(), token: token.to_owned() }.get("/v1/schedules");
        assert_eq!(problem(&answer), is(401, "token-missing"));
        answer.json()["detail"].as_str().unwrap().to_owned()
    };
    let mut wrong = client.token.clone();
    wrong.replace_range(10..11, if wrong[10..11] == *"a" { "b" } else { "a" });
    assert!(said(&wrong).contains("not known"), "{}", said(&wrong));
    assert!(said("nonsense").contains("has no token of awty") && said("").starts_with("Send the header"));
}

#[test]
fn the_key_of_a_cancelled_send_is_reported() {
    let (shop, _gateway, client) = open();
    let body = json!({"uri": "https://localhost/x", "after": "1 h"}).to_string();
    let in_sql = "SELECT awty.cancel(entity_name, entity_key, job) FROM awty.future_job WHERE job = 'http.app'";
    for is_by_key in [true, false] {
        let key = format!("Idempotency-Key: k-{is_by_key}\r\n");
        let ask = || client.ask_with("POST", "/v1/sends", &body, &key);
        assert_eq!((ask().status, ask().status), (201, 200));
        if is_by_key {
            assert_eq!(client.ask("DELETE", "/v1/sends/k-true", "").status, 204);
        } else {
            shop.app(in_sql);
        }
        let again = ask();
        assert_eq!(problem(&again), is(409, "key-reused"), "by key: {is_by_key}");
        assert!(again.text.contains("was cancelled"), "{}", again.text);
        assert_eq!(client.get(again.json()["existing"].as_str().unwrap()).json()["state"], json!("cancelled"));
        assert_eq!(shop.text("SELECT count(*) FROM awty.future_job WHERE job = 'http.app'"), "0");
    }
}

#[test]
fn a_list_is_searched_in_descriptions_and_labels_and_shows_what_was_deleted() {
    let (_shop, _gateway, client) = open();
    for (path, description, label) in [("/Tick", "Wakes Ulla", "Billing"), ("/tock", "nightly", "shop")] {
        let uri = format!("https://localhost{path}");
        let body = json!({"uri": uri, "every": "1 h", "description": description, "labels": [label]}).to_string();
        assert_eq!(client.ask("POST", "/v1/schedules", &body).status, 201);
    }
    let found = |query: &str| -> Vec<String> {
        let items = client.get(&format!("/v1/schedules?{query}")).json();
        let uri = |item: &Value| item["uri"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        items["items"].as_array().unwrap().iter().map(uri).collect()
    };
    for query in ["q=tick", "q=WAKES", "q=billing", "q=uLLA", "label=Billing"] {
        assert_eq!(found(query), ["Tick"], "{query}");
    }
    assert_eq!((found("q=localhost").len(), found("q=Tick%0AWakes").len()), (2, 1));
    assert!(found("q=nobody").is_empty() && found("label=billing").is_empty() && found("state=ended").is_empty());
    let place = format!("/v1/schedules?uri={}", encoded("https://localhost/Tick"));
    assert_eq!(client.ask("DELETE", &place, "").status, 204);
    assert_eq!((found("state=ended"), found("q=o")), (vec!["Tick".to_owned()], vec!["tock".to_owned()]));
}

#[test]
fn statistics_count_failures_by_themselves() {
    let (_shop, _gateway, client) = open();
    let receiver = Receiver::start();
    let body = json!({"uri": receiver.uri("/status/404"), "every": "1 s", "jitter": "0 s"}).to_string();
    let place = client.ask("POST", "/v1/schedules", &body).header("location");
    people::until_answer(&client, &format!("{place}/stats?bucket=1h"), |stats| {
        let point = &stats["items"][0];
        point["failed"].as_i64().is_some_and(|failed| failed >= 2) && point["failed"] == point["count"]
    });
    let slow = json!({"uri": receiver.uri("/slow"), "every": "1 s", "jitter": "0 s"}).to_string();
    let place = client.ask("POST", "/v1/schedules", &slow).header("location");
    people::until_answer(&client, &format!("{place}/stats?bucket=1d"), |stats| {
        stats["items"][0]["left_out"].as_i64().is_some_and(|left_out| left_out >= 1)
    });
}

#[test]
fn the_default_jitter_stays_a_default_when_it_is_sent_back() {
    let (shop, _gateway, client) = open();
    let place = format!("/v1/schedules?uri={}", encoded("https://localhost/tick"));
    let stored = "SELECT jitter FROM awty.repetition WHERE job = 'http.app'";
    for (jitter, before, after) in [(json!(null), "00:00:20", "00:01:00"), (json!("20 s"), "00:00:20", "00:00:20")] {
        let body = json!({"every": "20 s", "jitter": jitter}).to_string();
        let mut shown = client.ask("PUT", &place, &body).json();
        assert_eq!(shop.text(stored), before, "{shown}");
        shown["every"] = json!("2 h");
        assert_eq!(client.ask("PUT", &place, &shown.to_string()).status, 200);
        assert_eq!(shop.text(stored), after, "{shown}");
    }
}
