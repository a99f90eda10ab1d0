use crate::client::{Client, encoded};
use crate::receiver::Receiver;
use crate::shop::{Gateway, Shop, until};
use serde_json::{Value, json};

const TEXTS: [&str; 9] = [
    "<script>alert(1)</script>",
    "'; DROP TABLE awty_http.endpoint; --",
    "two\r\nSet-Cookie: lines",
    "\u{202e}txt.exe",
    "\u{1b}[31mred\u{1b}[0m \u{7}",
    "../../../../etc/passwd",
    "%s%n{}{{secret:master-key}}${jndi:ldap://x}",
    "\u{fffd}\u{10ffff}\u{200b}é",
    "\"}],\"ok\":true,{\"",
];

fn after_calls(shop: &Shop, gateway: &Gateway, more: i64) -> u64 {
    let count = "SELECT count(*) FROM awty.attempt";
    let wanted = shop.text(count).parse::<i64>().unwrap() + more;
    shop.await_text(&format!("SELECT count(*) >= {wanted} FROM awty.attempt"), "true");
    gateway.memory()
}

#[test]
fn endpoints_of_the_worst_kind_neither_stop_the_gateway_nor_fill_its_memory() {
    // The endpoint `resting` answers with Retry-After, which pauses the endpoint's target.
    let (shop, receiver, resting) = (Shop::open(), Receiver::start(), Receiver::start());
    let gateway = shop.gateway("one");
    let of = |path: &str| if path.contains("Retry-After") { &resting } else { &receiver };
    let paths = [
        "/huge/200",
        "/huge/500",
        "/head",
        "/drip",
        "/garbage",
        "/chunks",
        "/short",
        "/reset",
        "/close",
        "/hang",
        "/last",
        "/status/302",
        "/status/100",
        "/status/999",
        "/header/503/Retry-After/99999999999999999999",
        "/header/200/Awty-Again/0_s",
        "/header/200/Awty-Again/-1_s",
        "/header/200/Awty-Again/soon",
        "/ok",
    ];
    for path in paths {
        let uri = of(path).uri(path);
        let sql = format!(
            "SELECT awty_http.schedule('{uri}', every => '1 s', jitter => '0', timeout => '500 ms', keep_response => true)"
        );
        shop.app(&sql);
    }
    shop.cluster.execute("postgres", &["SELECT awty.alter_target('http.app', concurrency => 100)"]);
    let (warm, later) = (after_calls(&shop, &gateway, 200), after_calls(&shop, &gateway, 400));
    println!("{warm} KiB, and {later} KiB after twice as many calls again");
    assert!(later < warm + warm / 4 + 4_096, "{warm} KiB have become {later} KiB");
    for path in paths {
        assert!(!of(path).seen(path).is_empty(), "{path} was never called");
    }
    assert_eq!(gateway.get("/livez").0, 200);
}

#[test]
fn hostile_texts_stay_texts_wherever_they_come_out() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    shop.cluster.execute("postgres", &["ALTER ROLE gateway NOINHERIT", "GRANT app TO gateway"]);
    let gateway = shop.gateway("one");
    let client = Client { address: gateway.address(), token: shop.token("app", "write") };
    for (number, text) in TEXTS.iter().enumerate() {
        let uri = receiver.uri(&format!("/status/500?{number}={}", encoded(text)));
        let path = format!("/v1/schedules?uri={}", encoded(&uri));
        let body = json!({"every": "1 s", "labels": [text], "description": text, "body_text": text, "retries": {"max_attempts": 1}});
        let made = client.ask("PUT", &path, &body.to_string());
        assert_eq!(made.status, 201, "{text:?}: {}", made.text);
        let found = made.json();
        assert_eq!((&found["labels"][0], &found["description"]), (&json!(text), &json!(text)));
        let header = json!({"every": "1 s", "headers": {"X-From": text}}).to_string();
        let with_header = client.ask(
            "PUT",
            &format!("/v1/schedules?uri={}", encoded(&receiver.uri(&format!("/note/{number}")))),
            &header,
        );
        assert!([201, 422].contains(&with_header.status), "{text:?}: {}", with_header.text);
        let name = client.ask("PUT", &path, &json!({"every": "1 s", "headers": {*text: "x"}}).to_string());
        assert_eq!(name.status, 422, "{text:?}: {}", name.text);
        let (id, note) = (found["id"].as_str().unwrap(), json!({"note": text}).to_string());
        assert!(client.ask("POST", &format!("/v1/schedules/{id}/pause"), &note).status < 300);
        assert_eq!(client.get(&path).json()["why"], json!(text));
        assert!(client.ask("POST", &format!("/v1/schedules/{id}/resume"), "").status < 300);
    }
    shop.await_text("SELECT count(DISTINCT entity_key) >= 9 FROM awty.attempt WHERE NOT ok", "true");
    let seen = |number: usize| receiver.seen(&format!("/note/{number}"));
    until("a call with a header", || if seen(0).is_empty() { Err("none".to_owned()) } else { Ok(()) });
    assert_eq!(seen(0)[0].headers["x-from"], TEXTS[0]);
    assert!(seen(6).is_empty(), "{:?}", seen(6));
    for schedule in client.get("/v1/schedules?limit=500").json()["items"].as_array().unwrap() {
        let answer = client.get(&format!("/v1/schedules/{}/attempts", schedule["id"].as_str().unwrap()));
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert!(answer.header("set-cookie").is_empty() && answer.header("content-type").contains("json"));
    }
    for line in gateway.log().lines() {
        assert!(serde_json::from_str::<Value>(line).is_ok(), "a log line is broken: {line}");
    }
    let metrics = gateway.get("/metrics").1;
    assert!(metrics.ends_with("# EOF\n") && !metrics.contains("script"), "{metrics}");
    assert_eq!(shop.text("SELECT count(*) > 0 FROM awty_http.endpoint"), "true");
}
