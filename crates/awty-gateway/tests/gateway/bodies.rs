use crate::people::{is, open, pages, problem};
use crate::receiver::Receiver;
use serde_json::json;
use std::collections::BTreeSet;

#[test]
fn bodies_that_only_sql_can_write_are_shown_and_deleted() {
    let (shop, _gateway, client) = open();
    let deep = "[".repeat(2_000) + &"]".repeat(2_000);
    let odd = [("n", r#"{"n": 1e400}"#), ("i", r#"{"id": 12345678901234567890123}"#), ("d", &deep)];
    for (path, body) in odd {
        shop.app(&format!("SELECT awty_http.schedule('http://10.0.0.1/{path}', '1 h', body => '{body}')"));
        let shown = client.get(&format!("/v1/schedules?uri=http%3A%2F%2F10.0.0.1%2F{path}"));
        assert_eq!(shown.status, 200, "{}", shown.text);
    }
    let list = client.get("/v1/schedules");
    assert!(list.status == 200 && list.text.contains("12345678901234567890123"), "{}", list.text);
    for (path, _) in odd {
        assert_eq!(client.ask("DELETE", &format!("/naptime/http%3A%2F%2F10.0.0.1%2F{path}/1%20h"), "").status, 204);
    }
}

#[test]
fn numbers_of_a_body_stay_as_long_as_they_are() {
    let (shop, _gateway, client) = open();
    let (path, number) = ("/v1/schedules?uri=http%3A%2F%2Fa.example%2F", "12345678901234567890123.50");
    let put = client.ask("PUT", path, &format!(r#"{{"every": "1 h", "body": {{"id": {number}}}}}"#));
    assert!(put.status == 201 && put.text.contains(number), "{}", put.text);
    assert!(client.get(path).text.contains(number));
    assert_eq!(
        shop.cluster.value::<String>("postgres", "SELECT request -> 'body' ->> 'id' FROM awty_http.endpoint"),
        number
    );
    let many = ["1e131000"; 20].join(",");
    for (method, path) in [("PUT", path), ("POST", "/v1/sends")] {
        let uri = if method == "POST" { "\"uri\": \"http://a.example/\"" } else { "\"every\": \"1 h\"" };
        let refused = client.ask(method, path, &format!("{{{uri}, \"body\": [{many}]}}"));
        assert_eq!(problem(&refused), is(422, "invalid-field"), "{}", refused.text);
        let fault = &refused.json()["errors"][0];
        assert_eq!((&fault["pointer"], &fault["remedy"]), (&json!("/body"), &json!("write it as a text")), "{fault}");
    }
}

#[test]
fn a_call_is_shown_also_where_its_result_is_too_deep_to_read() {
    let (shop, _gateway, client) = open();
    let receiver = Receiver::start();
    let made = client.ask("POST", "/v1/schedules", &json!({"uri": receiver.uri("/ok"), "every": "1 h"}).to_string());
    let place = made.header("location");
    assert_eq!(client.ask("POST", &format!("{place}/run"), "").status, 202);
    let send = json!({"uri": receiver.uri("/sent")}).to_string();
    assert_eq!(client.ask_with("POST", "/v1/sends", &send, "Idempotency-Key: k\r\n").status, 201);
    shop.await_text("SELECT count(*) FROM awty.attempt", "2");
    // External workers can store any JSON as the result of a call, even 2,000 nested arrays.
    let deep = "[".repeat(2_000) + &"]".repeat(2_000);
    shop.cluster.execute("postgres", &[&format!("UPDATE awty_internal.attempt SET result = '{deep}'")]);
    let attempts = client.get(&format!("{place}/attempts"));
    let call = &attempts.json()["items"][0];
    assert!(attempts.status == 200 && call["ok"] == json!(true) && call["slot"].is_string(), "{}", attempts.text);
    for path in [place.as_str(), "/v1/sends/k"] {
        let shown = client.get(path);
        assert!(shown.status == 200 && shown.json()["last"]["slot"].is_string(), "{}", shown.text);
    }
}

#[test]
fn a_page_has_some_megabytes_at_most() {
    let (shop, _gateway, client) = open();
    shop.app("SELECT awty_http.schedule('http://a.example/' || n, '1 h', body => to_jsonb(repeat('a', 260000))) FROM generate_series(1, 40) AS n");
    let (mut path, mut counts) = ("/v1/schedules?limit=500".to_owned(), Vec::new());
    while !path.is_empty() {
        let page = client.get(&path);
        assert!(page.status == 200 && page.text.len() < 5_000_000, "{} with {} bytes", page.status, page.text.len());
        counts.push(page.json()["items"].as_array().unwrap().len());
        path = page.header("link").split('>').next().unwrap_or_default().trim_start_matches('<').to_owned();
    }
    assert_eq!(counts, [17, 17, 6]);
}

/// A control character has six bytes in JSON.
#[test]
fn a_page_counts_what_headers_cost() {
    let (shop, _gateway, client) = open();
    shop.app(
        "SELECT awty_http.schedule('http://a.example/' || n, '1 h', headers => h.headers)
         FROM generate_series(1, 60) AS n, (SELECT jsonb_object_agg('x' || i, '') FROM generate_series(1, 1000) AS i) AS h (headers)",
    );
    let page = client.get("/v1/schedules?limit=500");
    assert!(page.status == 200 && page.header("link").contains("next"), "{} {}", page.status, page.header("link"));
}

#[test]
fn a_page_counts_all_texts_of_a_schedule() {
    let (shop, _gateway, client) = open();
    shop.app("SELECT awty_http.schedule('http://a.example/' || n, '1 h', description => repeat(chr(1), 1000), labels => ARRAY[repeat(chr(2), 2000)]) FROM generate_series(1, 400) AS n");
    let page = client.get("/v1/schedules?limit=500");
    assert!(page.status == 200 && page.text.len() < 5_000_000, "{} with {} bytes", page.status, page.text.len());
    assert!(page.header("link").contains("next"), "{}", page.header("link"));
}

/// A message has up to 4,096 bytes, and a control character has six bytes in JSON.
#[test]
fn a_page_counts_messages_and_notes() {
    let (shop, _gateway, client) = open();
    shop.app("SELECT awty_http.schedule('http://a.example/', '1 h')");
    let long = "repeat(chr(1), 4090) || n";
    let ends = format!(
        "INSERT INTO awty.future_job_history (id, job, entity_name, entity_key, first_check_at, next_check_at, scheduled_by,
             scheduled_at, finished_at, run_time, check_count, attempts, outcome, role, message)
         SELECT n, 'http.app', 'http://a.example', '/', now(), now(), 'app', now(), now(), '0', 1, 1, 'failed', 'app', {long}
         FROM generate_series(1, 300) AS n"
    );
    let attempts = format!(
        "INSERT INTO awty_internal.attempt (lease, id, job, entity_name, entity_key, first_check_at, next_check_at, check_count,
             attempt, held, scheduled_by, scheduled_at, key, leased_at, expires_at, deadline, worker, ended_at, lateness, ok, role, message)
         SELECT n, n, 'http.app', 'http://a.example', '/', now(), now(), 0,
             1, false, 'app', now(), 'key', now(), now(), now(), 'worker', now(), '0', false, 'app', {long}
         FROM generate_series(1, 300) AS n"
    );
    let targets = format!(
        "INSERT INTO awty_internal.target (job, target, blocked_until, note)
         SELECT 'http.app', 'http://' || n || '.example', 'infinity', {long} FROM generate_series(1, 300) AS n"
    );
    shop.cluster.execute("postgres", &[&ends, &attempts, &targets]);
    let calls = format!("/v1/schedules/{}/attempts", shop.text("SELECT id FROM awty_http.endpoint"));
    for list in ["/v1/history", &calls, "/v1/targets"] {
        let page = client.get(&format!("{list}?limit=500"));
        assert!(page.status == 200 && page.text.len() < 5_000_000, "{list}: {} bytes", page.text.len());
        assert!(page.header("link").contains("next"), "{list}");
        let items = pages(&client, &format!("{list}?limit=500"));
        assert!(items.iter().all(serde_json::Value::is_object), "{list}");
        let texts: BTreeSet<String> = items.iter().map(serde_json::Value::to_string).collect();
        assert!(items.len() >= 300 && texts.len() == items.len(), "{list}: {} of {} items", texts.len(), items.len());
    }
}
