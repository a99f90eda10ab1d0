use crate::client::{Client, encoded};
use crate::people::{self, is, open, pages, problem, until_answer};
use crate::receiver::Receiver;
use crate::shop;
use serde_json::{Value, json};

fn scheduled(client: &Client, body: &Value) -> String {
    let made = client.ask("POST", "/v1/schedules", &body.to_string());
    assert_eq!(made.status, 201, "{}", made.text);
    made.header("location")
}

fn times(client: &Client, path: &str) -> Vec<chrono::DateTime<chrono::FixedOffset>> {
    let answer = client.get(path);
    assert_eq!(answer.status, 200, "{}", answer.text);
    let items = answer.json()["items"].as_array().unwrap().clone();
    items.iter().map(|time| chrono::DateTime::parse_from_rfc3339(time.as_str().unwrap()).unwrap()).collect()
}

#[test]
fn the_next_calls_are_those_of_the_plan() {
    let (shop, gateway, client) = open();
    let place = scheduled(&client, &json!({"uri": "http://a.example/ten", "every": "10 min"}));
    let next = times(&client, &format!("{place}/next?count=5"));
    assert_eq!(next.len(), 5);
    assert_eq!(client.get(&place).json()["next_slot"], client.get(&format!("{place}/next")).json()["items"][0]);
    for pair in next.windows(2) {
        assert_eq!(pair[1] - pair[0], chrono::TimeDelta::minutes(10), "{next:?}");
    }
    let nine =
        scheduled(&client, &json!({"uri": "http://a.example/nine", "cron": "0 9 * * *", "zone": "Europe/Berlin"}));
    let next = times(&client, &format!("{nine}/next"));
    assert_eq!(next.len(), 10);
    assert!(
        next.iter().all(|time| ["07:00:00", "08:00:00"].contains(&time.to_utc().format("%T").to_string().as_str())),
        "{next:?}"
    );
    let once = scheduled(&client, &json!({"uri": "http://a.example/once", "after": "200 d"}));
    assert_eq!(times(&client, &format!("{once}/next?count=100")).len(), 1);
    assert_eq!(client.ask("POST", &format!("{place}/pause"), "").status, 200);
    assert_eq!(times(&client, &format!("{place}/next")).len(), 0, "what stands still is not called");
    for count in ["0", "101", "many"] {
        assert_eq!(problem(&client.get(&format!("{place}/next?count={count}"))), is(422, "invalid-field"));
    }
    let other = people::client(&shop, &gateway, "other", "admin");
    for path in ["next", "stats", "attempts"] {
        assert_eq!(problem(&other.get(&format!("{place}/{path}"))), is(404, "not-found"), "{path}");
        assert_eq!(problem(&client.get(&format!("/v1/schedules/s_none/{path}"))), is(404, "not-found"), "{path}");
    }
    assert_eq!(client.ask("DELETE", &place, "").status, 204);
    assert_eq!(problem(&client.get(&format!("{place}/next"))), is(410, "deleted"));
}

#[test]
fn statistics_say_what_calls_came_to() {
    let (_shop, _gateway, client) = open();
    let receiver = Receiver::start();
    let good = scheduled(&client, &json!({"uri": receiver.uri("/ok"), "every": "1 s"}));
    let bad = scheduled(&client, &json!({"uri": receiver.uri("/status/500"), "every": "1 s"}));
    until_answer(&client, &good, |schedule| schedule["counts"]["ok"].as_i64().unwrap() >= 3);
    let failing = until_answer(&client, &bad, |schedule| schedule["counts"]["failed"].as_i64().unwrap() >= 3).json();
    assert_eq!(failing["counts"]["ok"], json!(0));
    assert_eq!((&failing["last"]["status"], &failing["last"]["fault"]), (&json!(500), &json!("status")), "{failing}");
    assert!(failing["last"]["duration"].is_string() && failing["last"]["lateness"].is_string(), "{failing}");
    assert!(failing["failing_since"].is_string());
    for bucket in ["1s", "10s", "1m", "10m", "1h", "6h", "1d"] {
        let stats = client.get(&format!("{good}/stats?bucket={bucket}")).json();
        let points = stats["items"].as_array().unwrap();
        let sum: i64 = points.iter().map(|point| point["count"].as_i64().unwrap()).sum();
        assert!(sum >= 3 && points[0]["ok"] == points[0]["count"], "{bucket}: {stats}");
        assert!(
            points[0]["duration"]["p95"].is_string() && points[0]["lateness"]["max"].is_string(),
            "{bucket}: {stats}"
        );
    }
    let empty = client.get(&format!("{good}/stats?from=2026-01-01T00:00:00Z&to=2026-01-01T01:00:00Z"));
    assert_eq!((empty.status, &empty.json()["items"]), (200, &json!([])), "a gap is a gap");
    for query in [
        "bucket=2m",
        "bucket=nonsense",
        "from=nonsense",
        "bucket=1s&from=2026-01-01T00:00:00Z&to=2026-01-01T01:00:00Z",
        "from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z",
        "to=-262143-01-01T00:00:00Z",
        "x=1",
    ] {
        assert_eq!(problem(&client.get(&format!("{good}/stats?{query}"))), is(422, "invalid-field"), "{query}");
    }
    assert_eq!(client.ask("POST", &format!("{good}/pause"), "").status, 200);
    let quiet = || client.get(&good).json()["in_flight"] == json!(false);
    shop::until("the last call", || if quiet() { Ok(()) } else { Err("in flight".to_owned()) });
    let all = pages(&client, &format!("{good}/attempts?limit=500"));
    assert_eq!(pages(&client, &format!("{good}/attempts?limit=1")), all);
    assert!(all.len() >= 3 && all.windows(2).all(|pair| pair[0]["ended_at"].as_str() >= pair[1]["ended_at"].as_str()));
    assert!(all[0]["phases"]["total"].is_string() && all[0]["key"].as_str().unwrap().len() == 26, "{}", all[0]);
}

#[test]
fn slots_and_status_show_what_is_due_and_how_all_stands() {
    let (shop, gateway, client) = open();
    for number in 0..3 {
        let at = (awty_gateway::clock::now() + chrono::TimeDelta::minutes(20 + number / 2)).to_rfc3339();
        scheduled(&client, &json!({"uri": format!("http://a.example/{number}"), "at": at}));
    }
    let slots = client.get("/v1/slots").json()["items"].as_array().unwrap().clone();
    let ours: Vec<&Value> = slots.iter().filter(|slot| slot["job"] == json!("http.app")).collect();
    assert_eq!(ours.iter().map(|slot| slot["checks"].as_i64().unwrap()).sum::<i64>(), 3, "{slots:?}");
    assert_eq!(json!(pages(&client, "/v1/slots?limit=1")), json!(slots));
    assert_eq!(client.get("/v1/slots?from=2020-01-01T00:00:00Z").status, 200);
    for query in ["to=2020-01-01T00:00:00Z", "to=2099-01-01T00:00:00Z", "from=x", "limit=0", "after=x"] {
        assert_eq!(problem(&client.get(&format!("/v1/slots?{query}"))), is(422, "invalid-field"), "{query}");
    }
    let other = people::client(&shop, &gateway, "other", "read");
    assert_eq!(other.get("/v1/slots").json()["items"], json!([]));
    let status = client.get("/v1/status");
    let found = status.json();
    assert_eq!(
        [&found["slot"], &found["min_period"], &found["max_period"], &found["timeout"]],
        [&json!("1s"), &json!("1s"), &json!("52w 2d"), &json!("30s")],
        "{}",
        status.text
    );
    assert_eq!((&found["gateway"]["name"], &found["database"]["name"]), (&json!("one"), &json!("postgres")));
    assert!(found["findings"].as_array().unwrap().iter().all(|one| one["level"].is_string()), "{}", status.text);
    let receiver = Receiver::start();
    let hanging = json!({"uri": receiver.uri("/hang")}).to_string();
    assert_eq!(client.ask("POST", "/v1/sends", &hanging).status, 201);
    until_answer(&client, "/v1/status", |status| {
        status["gateways"][0]["name"] == json!("one") && status["gateways"][0]["in_flight"] == json!(1)
    });
    let uri = encoded(&receiver.uri("/hang"));
    assert_eq!(client.get(&format!("/v1/schedules?uri={uri}")).status, 404, "a send is no schedule");
}
