use crate::client::{Client, encoded};
use crate::people::{self, open};
use crate::receiver::Receiver;
use crate::shop::until;
use serde_json::json;

#[test]
fn an_endpoint_is_scheduled_over_http_called_changed_and_deleted() {
    let (_shop, _gateway, client) = open();
    let receiver = Receiver::start();
    let by_uri = format!("/v1/schedules?uri={}", encoded(&receiver.uri("/ok")));
    let body = json!({"every": "10 seconds", "headers": {"X-Api-Key": "s3cret"}, "body": {"a": 1}, "labels": ["shop"]})
        .to_string();
    let made = client.ask("PUT", &by_uri, &body);
    assert_eq!(
        (made.status, &made.json()["every"], &made.json()["state"]),
        (201, &json!("10s"), &json!("active")),
        "{}",
        made.text
    );
    let place = made.header("location");
    let id = made.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(place, format!("/v1/schedules/{id}"));
    assert_eq!(made.json()["headers"], json!({"X-Api-Key": "•••"}));
    let again = client.ask("PUT", &by_uri, &body);
    assert_eq!((again.status, again.json()["id"].as_str()), (200, Some(id.as_str())), "{}", again.text);
    let double = client.ask("POST", "/v1/schedules", &json!({"uri": receiver.uri("/ok"), "every": "1 h"}).to_string());
    assert_eq!(
        (double.status, double.problem().as_str(), &double.json()["existing"]),
        (409, "uri-already-scheduled", &json!(place))
    );
    assert_eq!(client.ask("POST", &format!("{place}/run"), "").status, 202);
    until("the call to be booked", || {
        let attempts = client.get(&format!("{place}/attempts")).json();
        if attempts["items"][0]["ok"] == json!(true) { Ok(()) } else { Err(attempts.to_string()) }
    });
    assert_eq!(receiver.seen("/ok")[0].headers["x-api-key"], "s3cret");
    assert!(client.get(&format!("{place}/secret")).json()["secret"].as_str().unwrap().starts_with("whsec_"));
    let paused = client.ask("POST", &format!("{place}/pause"), "{\"note\": \"holidays\"}");
    assert_eq!(
        (&paused.json()["state"], &paused.json()["why"]),
        (&json!("paused"), &json!("holidays")),
        "{}",
        paused.text
    );
    assert_eq!(client.ask("POST", &format!("{place}/run"), "").problem(), "precondition-failed");
    assert_eq!(client.ask("POST", &format!("{place}/resume"), "").json()["state"], json!("active"));
    let old = made.header("etag");
    assert_eq!(client.ask_with("DELETE", &place, "", &format!("If-Match: {old}\r\n")).status, 412);
    let tag = client.get(&place).header("etag");
    let changed = client.ask_with("PUT", &place, "{\"every\": \"20 s\"}", &format!("If-Match: {tag}\r\n"));
    assert_eq!((changed.status, &changed.json()["every"]), (200, &json!("20s")), "{}", changed.text);
    until("an answer that has not changed", || {
        let tag = client.get(&place).header("etag");
        let again = client.ask_with("GET", &place, "", &format!("If-None-Match: {tag}\r\n"));
        if again.status == 304 { Ok(()) } else { Err(again.text) }
    });
    assert_eq!(client.ask("DELETE", &place, "").status, 204);
    let gone = client.ask("DELETE", &place, "");
    assert_eq!((gone.status, gone.problem().as_str()), (410, "deleted"));
    let history = client.get(gone.json()["history"].as_str().unwrap()).json();
    assert!(
        history["schedule"]["deleted_at"].is_string() && history["schedule"]["last"]["status"] == json!(200),
        "{history}"
    );
    assert_eq!(client.ask("PUT", &by_uri, &body).status, 201, "a deleted one can be made again");
}

#[test]
fn naptimes_entry_points_have_the_same_rules() {
    let (_shop, _gateway, client) = open();
    let receiver = Receiver::start();
    let at = |period: &str| format!("/naptime/{}/{}", encoded(&receiver.uri("/ok")), encoded(period));
    assert_eq!(client.get(&at("10 seconds")).status, 404);
    assert_eq!(client.ask("PUT", &at("10 seconds"), "").status, 201);
    assert_eq!(client.ask("PUT", &at("10 s"), "").status, 200);
    assert_eq!(client.get(&at("PT10S")).json()["every"], json!("10s"));
    let other = client.ask("PUT", &at("20 s"), "");
    assert_eq!((other.status, other.problem().as_str()), (409, "uri-already-scheduled"));
    assert_eq!((client.get(&at("20 s")).status, client.ask("DELETE", &at("20 s"), "").status), (404, 404));
    let bare = client.ask("PUT", &at("10000"), "");
    assert!(bare.status == 422 && bare.text.contains("10000 has no unit; write 10 s or 10000 ms"), "{}", bare.text);
    assert_eq!(client.ask("DELETE", &at("10 s"), "").status, 204);
    assert_eq!(client.get(&at("10 s")).status, 410);
    let rounded = client.ask("PUT", &at("1500 ms"), "");
    assert_eq!(
        (&rounded.json()["every"], &rounded.json()["rounded_from"]),
        (&json!("2s"), &json!("1s 500ms")),
        "{}",
        rounded.text
    );
    assert_eq!(client.get(&at("1500 ms")).status, 200);
}

#[test]
fn each_refusal_has_its_status_and_its_name() {
    let (shop, gateway, client) = open();
    let receiver = Receiver::start();
    let post = |body: &str| client.ask("POST", "/v1/schedules", body);
    let uri = receiver.uri("/ok");
    let expected = [
        (post("{"), 400, "malformed-json"),
        (post("[]"), 400, "malformed-json"),
        (post("{}"), 422, "invalid-field"),
        (post(&json!({"uri": uri, "every": "10 s", "tiemout": 1}).to_string()), 422, "invalid-field"),
        (post(&json!({"uri": "nonsense", "every": "10 s"}).to_string()), 422, "malformed-uri"),
        (post(&json!({"uri": "http://10.0.0.1/", "every": "10 s"}).to_string()), 422, "address-not-allowed"),
        (
            post(&json!({"uri": format!("http://{}/", gateway.address()), "every": "10 s"}).to_string()),
            422,
            "address-not-allowed",
        ),
        (post(&json!({"uri": uri, "every": "1 ms"}).to_string()), 422, "period-out-of-range"),
        (post(&json!({"uri": uri, "every": "367 d"}).to_string()), 422, "period-out-of-range"),
        (post(&json!({"uri": uri, "cron": "nonsense"}).to_string()), 422, "invalid-field"),
        (post(&" ".repeat(600 * 1024)), 413, "too-large"),
        (
            client.ask_with("POST", "/v1/schedules", "a=b", "Content-Type: text/plain\r\n"),
            415,
            "unsupported-media-type",
        ),
        (client.ask("PATCH", "/v1/schedules", ""), 405, "method-not-allowed"),
        (client.get("/v1/schedules/s_nothing"), 404, "not-found"),
        (client.get("/v1/nothing"), 404, "not-found"),
        (client.get("/v1/schedules?limit=0"), 422, "invalid-field"),
        (client.get("/v1/schedules?limet=1"), 422, "invalid-field"),
        (client.get("/v1/schedules?after=%2A"), 422, "invalid-field"),
    ];
    for (index, (answer, status, name)) in expected.iter().enumerate() {
        assert_eq!((answer.status, answer.problem().as_str()), (*status, *name), "number {index}: {}", answer.text);
        assert_eq!(answer.header("content-type"), "application/problem+json");
    }
    let with = |token: &str| Client { address: gateway.address(), token: token.to_owned() }.get("/v1/schedules");
    for token in ["", "nonsense", &format!("awty_{}", "a".repeat(43))] {
        let refused = with(token);
        assert_eq!(
            (refused.status, refused.problem().as_str(), refused.header("www-authenticate").as_str()),
            (401, "token-missing", "Bearer")
        );
    }
    let reader = people::client(&shop, &gateway, "app", "read");
    assert_eq!(reader.get("/v1/schedules").status, 200);
    assert_eq!(reader.ask("POST", "/v1/schedules", "{}").problem(), "not-permitted");
    shop.cluster.execute("postgres", &["UPDATE awty_http.token SET expires_at = now() - interval '1 s'"]);
    assert_eq!(client.get("/v1/schedules").problem(), "token-expired");
}

#[test]
fn a_list_has_pages_and_filters_and_another_roles_are_not_in_it() {
    let (shop, gateway, client) = open();
    let receiver = Receiver::start();
    for number in 0..5 {
        let label = if number == 3 { "odd" } else { "even" };
        let body = json!({"uri": receiver.uri(&format!("/ok/{number}")), "every": "1 h", "labels": [label], "paused": number == 4});
        assert_eq!(client.ask("POST", "/v1/schedules", &body.to_string()).status, 201);
    }
    let (mut path, mut found) = ("/v1/schedules?limit=2".to_owned(), Vec::new());
    while !path.is_empty() {
        let page = client.get(&path);
        found.extend(
            page.json()["items"].as_array().unwrap().iter().map(|item| item["uri"].as_str().unwrap().to_owned()),
        );
        path = page.header("link").split('>').next().unwrap_or_default().trim_start_matches('<').to_owned();
    }
    found.sort();
    let expected: Vec<String> = (0..5).map(|number| receiver.uri(&format!("/ok/{number}"))).collect();
    assert_eq!(found, expected);
    let count =
        |query: &str| client.get(&format!("/v1/schedules?{query}")).json()["items"].as_array().map_or(99, Vec::len);
    let origin = format!("origin={}", encoded(&receiver.origin()));
    assert_eq!(
        [count("label=odd"), count("state=paused"), count("q=ok%2F2"), count("failing=true"), count(&origin)],
        [1, 1, 1, 0, 5]
    );
    assert_eq!(count(&format!("origin={}", encoded(&receiver.origin().replace("http", "HTTP")))), 5);
    for (query, pointer) in
        [("state=late", "/state"), ("limit=x", "/limit"), ("limit=0", "/limit"), ("origin=x", "/origin"), ("x=1", "/x")]
    {
        let refused = client.get(&format!("/v1/schedules?{query}"));
        assert_eq!((refused.status, &refused.json()["errors"][0]["pointer"]), (422, &json!(pointer)), "{query}");
    }
    let other = people::client(&shop, &gateway, "other", "admin");
    assert_eq!(other.get("/v1/schedules").json()["items"], json!([]));
    let id = client.get("/v1/schedules?label=odd").json()["items"][0]["id"].as_str().unwrap().to_owned();
    for (method, path) in [
        ("GET", ""),
        ("DELETE", ""),
        ("PUT", ""),
        ("POST", "/run"),
        ("POST", "/pause"),
        ("GET", "/attempts"),
        ("GET", "/secret"),
    ] {
        let answer = other.ask(method, &format!("/v1/schedules/{id}{path}"), "{}");
        assert_eq!((answer.status, answer.problem().as_str()), (404, "not-found"), "{method} {path}");
    }
}

#[test]
fn while_the_database_is_away_the_api_says_so() {
    let (mut shop, _gateway, client) = open();
    shop.cluster.stop(awty_testkit::Stop::Fast);
    let away = client.get("/v1/schedules");
    assert_eq!(
        (away.status, away.problem().as_str(), away.header("retry-after").as_str()),
        (503, "database-away", "1")
    );
    shop.cluster.start();
    until(
        "the API to return",
        || if client.get("/v1/schedules").status == 200 { Ok(()) } else { Err("away".to_owned()) },
    );
}
