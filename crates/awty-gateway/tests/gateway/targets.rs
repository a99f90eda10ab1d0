use crate::client::{Client, encoded};
use crate::people::{self, is, open, pages, problem, until_answer};
use crate::receiver::Receiver;
use crate::shop;
use serde_json::json;

#[test]
fn a_target_is_limited_blocked_and_unblocked_by_its_tenant() {
    let (shop, gateway, app) = open();
    let receiver = Receiver::start();
    let tenant = people::client(&shop, &gateway, "tenant", "admin");
    let place = format!("/v1/targets/{}", encoded(&receiver.origin()));
    assert_eq!(problem(&tenant.get(&place)), is(404, "not-found"));
    let made = tenant.ask("POST", "/v1/schedules", &json!({"uri": receiver.uri("/ok"), "every": "1 s"}).to_string());
    let schedule = made.header("location");
    let before = tenant.get(&place);
    assert_eq!(
        (&before.json()["concurrency"], &before.json()["origin"]),
        (&json!(10), &json!(receiver.origin())),
        "{}",
        before.text
    );
    let limits = json!({"concurrency": 3, "rate": 2.5, "burst": 4}).to_string();
    assert_eq!(tenant.ask_with("PUT", &place, &limits, "If-Match: \"0-0\"\r\n").status, 412);
    let limited = tenant.ask_with("PUT", &place, &limits, &format!("If-Match: {}\r\n", before.header("etag")));
    assert_eq!(limited.status, 200, "{}", limited.text);
    assert_eq!(
        [&limited.json()["concurrency"], &limited.json()["rate"], &limited.json()["burst"]],
        [&json!(3), &json!(2.5), &json!(4)]
    );
    assert_eq!(
        tenant.ask_with("PUT", &place, &limits, &format!("If-Match: {}\r\n", before.header("etag"))).status,
        412
    );
    for round in 0..5 {
        let condition = format!("If-Match: {}\r\n", tenant.get(&place).header("etag"));
        let ask = |number: usize| {
            tenant
                .ask_with("PUT", &place, &json!({"concurrency": 10 * (round + 1) + number}).to_string(), &condition)
                .status
        };
        let mut statuses = std::thread::scope(|scope| {
            let all: Vec<_> = (0..3).map(|number| scope.spawn(move || ask(number))).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect::<Vec<_>>()
        });
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 412, 412], "round {round}");
    }
    let listed = pages(&tenant, "/v1/targets?limit=1");
    let named: Vec<&str> = listed.iter().filter_map(|target| target["origin"].as_str()).collect();
    assert_eq!((listed.len(), named), (2, vec![receiver.origin().as_str()]), "{listed:?}");
    let blocked =
        tenant.ask("POST", &format!("{place}/block"), "{\"blocked_until\": \"1 h\", \"note\": \"they move\"}");
    assert_eq!((blocked.status, &blocked.json()["state"]), (200, &json!("blocked")), "{}", blocked.text);
    assert!(blocked.json()["why"].as_str().unwrap().contains("they move"), "{}", blocked.text);
    let still = until_answer(&tenant, &schedule, |schedule| schedule["state"] == json!("blocked")).json();
    assert!(still["why"].as_str().unwrap().contains("they move"), "{still}");
    let free = tenant.ask("POST", &format!("{place}/unblock"), "");
    assert!(free.status == 200 && free.json()["state"] != json!("blocked"), "{}", free.text);
    let calls = receiver.seen("/ok").len();
    until_answer(&tenant, &schedule, |_| receiver.seen("/ok").len() > calls);
    assert_eq!(tenant.ask("POST", &format!("{place}/block"), "").json()["blocked_until"], json!("infinity"));
    assert_eq!(
        tenant.ask("POST", &format!("{place}/block"), "{\"blocked_until\": \"2099-01-01T00:00:00Z\"}").status,
        200
    );
    assert_eq!(tenant.ask("POST", &format!("{place}/unblock"), "").status, 200);
    assert_eq!(tenant.ask("PUT", &place, "{}").json()["concurrency"], json!(10));
    for body in ["{\"concurrency\": 0}", "{\"rate\": \"fast\"}", "{\"rate\": 0}", "{\"burst\": 1.5}", "{\"colour\": 1}"]
    {
        assert_eq!(problem(&tenant.ask("PUT", &place, body)), is(422, "invalid-field"), "{body}");
    }
    for body in ["{\"blocked_until\": \"soon\"}", "{\"blocked_until\": 5}", "{\"why\": \"x\"}"] {
        assert_eq!(problem(&tenant.ask("POST", &format!("{place}/block"), body)), is(422, "invalid-field"), "{body}");
    }
    assert_eq!(problem(&tenant.get("/v1/targets/nonsense")), is(422, "malformed-uri"));
    assert_eq!(problem(&tenant.get("/v1/targets/https%3A%2F%2Fa.example%2Fpath")), is(422, "malformed-uri"));
    assert_eq!(problem(&app.get(&place)), is(404, "not-found"));
    let writer = people::client(&shop, &gateway, "tenant", "write");
    assert_eq!(writer.get(&place).status, 200);
    shop.cluster.execute(
        "postgres",
        &["SELECT awty.allow('http.tenant', 'other')", "ALTER ROLE other SET awty_http.tenant = 'tenant'"],
    );
    let scheduler = people::client(&shop, &gateway, "other", "admin");
    for (method, path, body) in [("PUT", "", limits.as_str()), ("POST", "/block", ""), ("POST", "/unblock", "")] {
        assert_eq!(
            problem(&writer.ask(method, &format!("{place}{path}"), body)),
            is(403, "not-permitted"),
            "{method} {path}"
        );
        let answer = scheduler.ask(method, &format!("{place}{path}"), body);
        assert_eq!(problem(&answer), is(403, "not-permitted"), "{method} {path}");
    }
}

#[test]
fn a_target_that_asks_to_wait_is_left_alone_until_then() {
    let (shop, gateway, _client) = open();
    let receiver = Receiver::start();
    let tenant = people::client(&shop, &gateway, "tenant", "admin");
    let busy = json!({"uri": receiver.uri("/header/503/Retry-After/1000"), "after": "1 ms"}).to_string();
    assert_eq!(tenant.ask("POST", "/v1/schedules", &busy).status, 201);
    let place = format!("/v1/targets/{}", encoded(&receiver.origin()));
    let blocked = until_answer(&tenant, &place, |target| target["state"] == json!("blocked")).json();
    assert!(blocked["why"].as_str().unwrap().contains("503"), "{blocked}");
    let other = json!({"uri": receiver.uri("/ok"), "every": "1 s"}).to_string();
    let schedule = tenant.ask("POST", "/v1/schedules", &other).header("location");
    assert_eq!(tenant.get(&schedule).json()["state"], json!("blocked"));
    shop.await_text(
        "SELECT next_check_at < now() - interval '1 s' FROM awty.future_job WHERE entity_key = '/ok'",
        "true",
    );
    assert_eq!(receiver.seen("/ok").len(), 0);
    shop::until("the target in the metrics", || {
        let metrics = gateway.get("/metrics").1;
        if metrics.contains("awty_targets{state=\"blocked\"} 1\n") { Ok(()) } else { Err(metrics) }
    });
    assert_eq!(tenant.ask("POST", &format!("{place}/unblock"), "").status, 200);
    until_answer(&tenant, &schedule, |schedule| schedule["counts"]["ok"] != json!(0));
    shop::until("the outcome in the metrics", || {
        let metrics = gateway.get("/metrics").1;
        let of = |line: &&str| line.starts_with("awty_outcomes_total{job=\"http.tenant\",outcome=\"done\"}");
        let line = metrics.lines().find(of).unwrap_or_default().to_owned();
        if line.is_empty() || line.ends_with(" 0") { Err(metrics) } else { Ok(()) }
    });
}

#[test]
fn a_token_is_shown_once_and_can_be_dropped() {
    let (shop, gateway, writer) = open();
    for (method, path) in
        [("GET", "/v1/tokens"), ("POST", "/v1/tokens"), ("GET", "/v1/tokens/1"), ("DELETE", "/v1/tokens/1")]
    {
        assert_eq!(problem(&writer.ask(method, path, "{\"scope\": \"read\"}")), is(403, "not-permitted"), "{method}");
    }
    let admin = people::client(&shop, &gateway, "app", "admin");
    let made = admin.ask("POST", "/v1/tokens", "{\"scope\": \"read\", \"expires\": \"1 h\"}");
    assert_eq!((made.status, made.header("cache-control").as_str()), (201, "no-store"), "{}", made.text);
    let (token, place) = (made.json()["token"].as_str().unwrap().to_owned(), made.header("location"));
    assert_eq!((&made.json()["role"], &made.json()["scope"]), (&json!("app"), &json!("read")));
    let reader = Client { address: gateway.address(), token: token.clone() };
    assert_eq!(reader.get("/v1/schedules").status, 200);
    let kept = admin.get(&place);
    assert_eq!(
        (kept.status, kept.json().get("token"), kept.text.contains(&token[5..])),
        (200, None, false),
        "{}",
        kept.text
    );
    assert!(!gateway.log().contains(&token[5..]), "a token is in the log");
    let ids: Vec<_> = pages(&admin, "/v1/tokens?limit=1").iter().map(|token| token["id"].clone()).collect();
    assert!(ids.contains(&made.json()["id"]) && ids.len() >= 3, "{ids:?}");
    let other = people::client(&shop, &gateway, "other", "admin");
    assert_eq!(problem(&other.get(&place)), is(404, "not-found"));
    assert_eq!(problem(&other.ask("DELETE", &place, "")), is(404, "not-found"));
    assert!(pages(&other, "/v1/tokens").iter().all(|token| token["role"] == json!("other")));
    assert_eq!(
        problem(&other.ask("POST", "/v1/tokens", "{\"scope\": \"read\", \"role\": \"app\"}")),
        is(403, "not-permitted")
    );
    assert_eq!(
        problem(&other.ask("POST", "/v1/tokens", "{\"scope\": \"read\", \"role\": \"nobody\"}")),
        is(404, "not-found")
    );
    // PostgreSQL cuts names to 63 bytes. A name of 64 bytes must not be taken for the role whose name is its first 63
    // bytes.
    let name = "r".repeat(63);
    shop.cluster.execute("postgres", &[&format!("CREATE ROLE {name}"), &format!("GRANT {name} TO other")]);
    let of = |role: &str| other.ask("POST", "/v1/tokens", &json!({"scope": "read", "role": role}).to_string());
    assert_eq!(of(&name).status, 201);
    assert_eq!(problem(&of(&format!("{name}r"))), is(404, "not-found"));
    for body in [
        "{}",
        "{\"scope\": \"all\"}",
        "{\"scope\": \"read\", \"expires\": \"20 years\"}",
        "{\"scope\": \"read\", \"expires\": \"600 w\"}",
    ] {
        assert_eq!(problem(&admin.ask("POST", "/v1/tokens", body)), is(422, "invalid-field"), "{body}");
    }
    assert_eq!(admin.ask("DELETE", &place, "").status, 204);
    assert_eq!(problem(&admin.ask("DELETE", &place, "")), is(404, "not-found"));
    assert_eq!(problem(&reader.get("/v1/schedules")), is(401, "token-missing"));
    assert_eq!(problem(&admin.get("/v1/tokens/nonsense")), is(404, "not-found"));
}
