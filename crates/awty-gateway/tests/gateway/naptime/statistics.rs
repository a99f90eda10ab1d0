use crate::people::{self, is, open, problem, until_answer};
use crate::receiver::Receiver;
use serde_json::json;

#[test]
fn statistics_are_by_time_from_a_second_to_a_day_and_never_too_many() {
    let (_shop, _gateway, client) = open();
    let receiver = Receiver::start();
    let body = json!({"uri": receiver.uri("/ok"), "every": "1 s"}).to_string();
    let place = client.ask("POST", "/v1/schedules", &body).header("location");
    until_answer(&client, &place, |schedule| schedule["counts"]["ok"].as_i64().unwrap() >= 2);
    for bucket in ["1 s", "10 s", "1 min", "10 min", "1 h", "6 h", "1 d"] {
        let stats = client.get(&format!("{place}/stats?bucket={}", bucket.replace(' ', "%20")));
        let points = stats.json()["items"].as_array().unwrap().clone();
        assert!(
            points.iter().map(|point| point["count"].as_i64().unwrap()).sum::<i64>() >= 2,
            "{bucket}: {}",
            stats.text
        );
    }
    let day = client.get(&format!("{place}/stats?bucket=1s&from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z"));
    assert_eq!(problem(&day), is(422, "invalid-field"));
    assert!(day.text.contains("360"), "{}", day.text);
}

#[test]
fn values_are_cleaned_and_what_no_clock_can_explain_is_counted_apart() {
    let (shop, first, client) = open();
    shop.cluster.execute("postgres", &["SELECT awty.pause('http.app')"]);
    let body = json!({"uri": "http://a.example/x", "after": "1 ms"}).to_string();
    let place = client.ask("POST", "/v1/schedules", &body).header("location");
    drop(first);
    shop.cluster.execute("postgres", &["SELECT awty.resume('http.app')"]);
    let worker = shop.cluster.client("postgres", "gateway");
    let mut worker = worker;
    crate::shop::until("a lease", || {
        let complete = "SELECT awty.complete(l.lease, result => '{\"lateness\": -5, \"duration\": 1e8}') FROM awty.claim('{http.app}', 'w') AS l";
        let done = worker.query(complete, &[]).unwrap();
        if done.len() == 1 { Ok(()) } else { Err("none".to_owned()) }
    });
    let second = shop.gateway("two");
    let client = people::client(&shop, &second, "app", "read");
    let stats = client.get(&format!("{place}/stats?bucket=1h")).json();
    let point = &stats["items"][0];
    assert_eq!((&point["count"], &point["implausible"]), (&json!(1), &json!(2)), "{stats}");
    assert_eq!((&point["lateness"]["max"], &point["duration"]["p50"]), (&json!(null), &json!(null)), "{stats}");
}

#[test]
fn the_history_and_the_statistics_of_a_deleted_endpoint_stay_and_nothing_else_does() {
    let (shop, _gateway, client) = open();
    let receiver = Receiver::start();
    let body = json!({"uri": receiver.uri("/status/500"), "every": "1 s"}).to_string();
    let place = client.ask("POST", "/v1/schedules", &body).header("location");
    until_answer(&client, &place, |schedule| schedule["counts"]["failed"].as_i64().unwrap() >= 2);
    assert_eq!(client.ask("DELETE", &place, "").status, 204);
    let gone = client.get(&place);
    assert_eq!(problem(&gone), is(410, "deleted"));
    let history = client.get(gone.json()["history"].as_str().unwrap()).json();
    assert!(history["schedule"]["deleted_at"].is_string(), "{history}");
    assert!(history["schedule"]["counts"]["failed"].as_i64().unwrap() >= 2, "{history}");
    assert_eq!(shop.text("SELECT count(*) FROM awty.future_job WHERE job = 'http.app'"), "0");
    assert_eq!(shop.text("SELECT count(*) FROM awty.repetition WHERE job = 'http.app'"), "0");
}
