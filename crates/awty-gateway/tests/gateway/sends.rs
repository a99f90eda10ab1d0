use crate::client::{self, Client, encoded};
use crate::people::{self, is, open, pages, problem, until_answer};
use crate::receiver::Receiver;
use serde_json::json;

fn send(client: &Client, key: &str, body: &serde_json::Value) -> client::Answer {
    client.ask_with("POST", "/v1/sends", &body.to_string(), &format!("Idempotency-Key: {key}\r\n"))
}

#[test]
fn a_send_is_called_once_for_its_key() {
    let (shop, gateway, client) = open();
    let receiver = Receiver::start();
    let order = json!({"uri": receiver.uri("/ok"), "body": {"order": 42}});
    let sent = send(&client, "\"order 42\"", &order);
    assert_eq!((sent.status, sent.header("location").as_str()), (201, "/v1/sends/order%2042"), "{}", sent.text);
    assert_eq!(sent.json()["uri"], order["uri"]);
    assert_eq!(send(&client, "\"order 42\"", &order).status, 200);
    let other = send(&client, "\"order 42\"", &json!({"uri": receiver.uri("/ok"), "body": {"order": 43}}));
    assert_eq!(problem(&other), is(409, "key-reused"));
    let done = until_answer(&client, "/v1/sends/order%2042", |send| send["state"] == json!("done"));
    assert_eq!(
        (&done.json()["last"]["status"], &done.json()["last"]["attempt"]),
        (&json!(200), &json!(1)),
        "{}",
        done.text
    );
    assert_eq!(receiver.seen("/ok").len(), 1);
    assert_eq!(
        client
            .ask_with("GET", "/v1/sends/order%2042", "", &format!("If-None-Match: {}\r\n", done.header("etag")))
            .status,
        304
    );
    assert_eq!(problem(&client.ask("DELETE", "/v1/sends/order%2042", "")), is(410, "deleted"));
    assert_eq!(send(&client, "\"order 42\"", &order).status, 200);
    for method in ["GET", "DELETE"] {
        let other = people::client(&shop, &gateway, "other", "admin").ask(method, "/v1/sends/order%2042", "");
        assert_eq!(problem(&other), is(404, "not-found"), "{method}");
    }
    let reader = people::client(&shop, &gateway, "app", "read");
    assert_eq!(reader.get("/v1/sends/order%2042").status, 200);
    assert_eq!(problem(&send(&reader, "x", &order)), is(403, "not-permitted"));
    assert_eq!(problem(&reader.ask("DELETE", "/v1/sends/order%2042", "")), is(403, "not-permitted"));
}

#[test]
fn a_send_waits_for_its_time_and_can_be_cancelled_until_then() {
    let (_shop, _gateway, client) = open();
    let receiver = Receiver::start();
    let sent = client.ask("POST", "/v1/sends", &json!({"uri": receiver.uri("/ok"), "after": "1 h"}).to_string());
    assert_eq!((sent.status, &sent.json()["state"]), (201, &json!("pending")), "{}", sent.text);
    let place = sent.header("location");
    assert_eq!(client.get(&place).json()["key"], sent.json()["key"]);
    assert_eq!(client.ask("DELETE", &place, "").status, 204);
    assert_eq!(client.get(&place).json()["state"], json!("cancelled"));
    let gone = client.ask("DELETE", &place, "");
    assert_eq!(problem(&gone), is(410, "deleted"));
    assert_eq!(client.get(gone.json()["history"].as_str().unwrap()).status, 200);
    let refused = |body: serde_json::Value| problem(&client.ask("POST", "/v1/sends", &body.to_string()));
    assert_eq!(refused(json!({})), is(422, "invalid-field"));
    assert_eq!(refused(json!({"uri": "nonsense"})), is(422, "malformed-uri"));
    assert_eq!(refused(json!({"uri": "http://10.0.0.1/"})), is(422, "address-not-allowed"));
    assert_eq!(refused(json!({"uri": receiver.uri("/ok"), "method": "CONNECT"})), is(422, "invalid-field"));
    assert_eq!(
        refused(json!({"uri": receiver.uri("/ok"), "after": "1 h", "at": "2030-01-01T00:00:00Z"})),
        is(422, "invalid-field")
    );
    assert_eq!(refused(json!({"uri": receiver.uri("/ok"), "every": "1 h"})), is(422, "invalid-field"));
    assert_eq!(
        problem(&send(&client, &"k".repeat(300), &json!({"uri": receiver.uri("/ok")}))),
        is(422, "invalid-field")
    );
    assert_eq!(problem(&client.get("/v1/sends/nothing")), is(404, "not-found"));
    assert_eq!(receiver.seen("/ok").len(), 0);
}

#[test]
fn what_failed_is_in_the_history_and_can_be_called_again() {
    let (shop, gateway, client) = open();
    let receiver = Receiver::start();
    assert_eq!(send(&client, "one", &json!({"uri": receiver.uri("/status/404")})).status, 201);
    let history = format!("/v1/history?uri={}", encoded(&receiver.uri("/status/404")));
    let found = until_answer(&client, &history, |history| !history["items"].as_array().unwrap().is_empty());
    let item = &found.json()["items"][0];
    assert_eq!(
        (&item["outcome"], &item["key"], &item["schedule"]),
        (&json!("failed"), &json!("one"), &json!(null)),
        "{}",
        found.text
    );
    let retry = format!("/v1/history/{}/retry", item["id"]);
    for (asker, expected) in [
        (people::client(&shop, &gateway, "other", "admin"), is(404, "not-found")),
        (people::client(&shop, &gateway, "app", "read"), is(403, "not-permitted")),
    ] {
        assert_eq!(problem(&asker.ask("POST", &retry, "")), expected);
        assert_eq!(asker.get(&history).status, 200);
    }
    assert_eq!(people::client(&shop, &gateway, "other", "admin").get(&history).json()["items"], json!([]));
    let again = client.ask("POST", &retry, "");
    assert_eq!((again.status, again.header("location").as_str()), (202, "/v1/sends/one"), "{}", again.text);
    until_answer(&client, &history, |history| history["items"].as_array().unwrap().len() == 2);
    assert_eq!(receiver.seen("/status/404").len(), 2);
    shop.app(&format!("SELECT awty_http.send('{}')", receiver.uri("/status/400")));
    let keyless = format!("/v1/history?uri={}", encoded(&receiver.uri("/status/400")));
    let found = until_answer(&client, &keyless, |history| !history["items"].as_array().unwrap().is_empty());
    let again = client.ask("POST", &format!("/v1/history/{}/retry", found.json()["items"][0]["id"]), "");
    assert_eq!((again.status, again.header("location").as_str()), (202, ""), "{}", again.text);
    assert_eq!(problem(&client.ask("POST", "/v1/history/9223372036854775807/retry", "")), is(404, "not-found"));
    assert_eq!(problem(&client.ask("POST", "/v1/history/nonsense/retry", "")), is(404, "not-found"));
    assert_eq!(problem(&client.get("/v1/history?uri=nonsense")), is(422, "malformed-uri"));
}

#[test]
fn the_history_of_a_deleted_schedule_stays() {
    let (_shop, _gateway, client) = open();
    let receiver = Receiver::start();
    let by_uri = format!("/v1/schedules?uri={}", encoded(&receiver.uri("/status/404")));
    let made = client.ask("PUT", &by_uri, "{\"every\": \"1 s\"}");
    let place = made.header("location");
    let history = format!("/v1/history?uri={}", encoded(&receiver.uri("/status/404")));
    until_answer(&client, &history, |history| history["items"].as_array().unwrap().len() >= 3);
    assert_eq!(client.ask("DELETE", &place, "").status, 204);
    let gone = client.get(&place);
    assert_eq!(problem(&gone), is(410, "deleted"));
    let past = client.get(gone.json()["history"].as_str().unwrap()).json();
    assert!(past["schedule"]["deleted_at"].is_string() && past["items"].as_array().unwrap().len() >= 3, "{past}");
    assert_eq!(past["items"][0]["schedule"], made.json()["id"]);
    for link in ["attempts", "stats"] {
        let found = client.get(past["schedule"][link].as_str().unwrap());
        assert!(!found.json()["items"].as_array().unwrap().is_empty(), "{link}: {}", found.text);
    }
    let paged = pages(&client, &format!("{history}&limit=1"));
    assert_eq!(&json!(paged), &client.get(&history).json()["items"], "page by page it is the same");
    let retry = format!("/v1/history/{}/retry", past["items"][0]["id"]);
    assert_eq!(problem(&client.ask("POST", &retry, "")), is(410, "deleted"));
    assert_eq!(client.ask("PUT", &by_uri, "{\"every\": \"1 h\", \"paused\": true}").status, 201);
    assert_eq!(problem(&client.ask("POST", &retry, "")), is(412, "precondition-failed"));
    assert_eq!(client.ask("POST", &format!("{place}/resume"), "").status, 200);
    let before = receiver.seen("/status/404").len();
    assert_eq!(client.ask("POST", &retry, "").status, 202);
    people::until_answer(&client, &place, |_| receiver.seen("/status/404").len() > before);
}

/// A tenant may answer its own call with 1 MiB of JSON.
#[test]
fn a_large_result_of_a_send_is_not_shown() {
    let (shop, _gateway, client) = open();
    let receiver = Receiver::start();
    assert_eq!(send(&client, "k", &json!({"uri": receiver.uri("/sent")})).status, 201);
    shop.await_text("SELECT count(*) FROM awty.attempt", "1");
    for (length, status) in [(10_000, json!(299)), (20_000, json!(null))] {
        let result = format!("jsonb_build_object('status', 299, 'x', repeat('a', {length}))");
        shop.cluster.execute("postgres", &[&format!("UPDATE awty_internal.attempt SET result = {result}")]);
        let shown = client.get("/v1/sends/k").json();
        assert!(shown["last"]["slot"].is_string() && shown["last"]["status"] == status, "{shown}");
    }
}
