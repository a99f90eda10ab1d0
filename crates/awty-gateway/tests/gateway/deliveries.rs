use crate::receiver::Receiver;
use crate::shop::{Shop, until};
use awty_core::uri::id;
use awty_gateway::deliver::sign::signature;
use awty_gateway::deliver::sign::signing_key;
use awty_testkit::Stop;

#[test]
fn a_schedule_is_called_signed_and_booked() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    shop.secret("app", "TOKEN", "t0p\n");
    let file = shop.let_secret("app", "TOKEN", &receiver.origin());
    let gateway = shop.gateway_with("gateway", &["--config", &file]);
    let uri = receiver.uri("/ok");
    shop.app(&format!(
        "SELECT awty_http.schedule('{uri}', every => '1 s', method => 'PUT', body => '{{\"a\": 1}}',
         headers => '{{\"Authorization\": \"Bearer {{{{secret:TOKEN}}}}\"}}')"
    ));
    let seen = receiver.called("/ok", 2);
    let header = |name: &str| seen[0].headers[name].as_str();
    assert_eq!(
        (seen[0].method.as_str(), header("authorization"), header("awty-attempt")),
        ("PUT", "Bearer t0p", "1/3")
    );
    assert_eq!(header("awty-schedule"), shop.text(&format!("SELECT id FROM awty_http.endpoint WHERE uri = '{uri}'")));
    let tenant = shop.text("SELECT number FROM awty_http.tenant").parse().unwrap();
    let key = signing_key(&shop.master_key(), tenant, &id(tenant, &uri));
    let stamp = header("webhook-timestamp").parse().unwrap();
    assert_eq!(header("webhook-signature"), signature(&key, header("webhook-id"), stamp, &seen[0].body));
    assert_ne!(header("webhook-id"), seen[1].headers["webhook-id"]);
    shop.await_text(
        "SELECT count(*) >= 2 FROM awty.attempt WHERE ok AND worker = 'other' AND result ->> 'status' = '200'",
        "true",
    );
    shop.await_text("SELECT min((result ->> 'lateness')::float) >= 0 FROM awty.attempt", "true");
    assert_eq!(gateway.get("/livez").0, 200);
    until("the gateway to be ready", || {
        Some(gateway.get("/readyz")).filter(|ready| ready.0 == 200).ok_or_else(|| gateway.get("/readyz").1)
    });
    let metrics = gateway.get("/metrics").1;
    assert!(metrics.contains("awty_gateway_deliveries_total{outcome=\"ok\",status_class=\"2xx\"}"), "{metrics}");
    assert!(metrics.contains("awty_pending{job=\"http.app\"} ") && metrics.ends_with("# EOF\n"), "{metrics}");
    assert!(!gateway.log().contains("t0p") && !metrics.contains("127.0.0.1"), "a secret or a URI has come out");
}

#[test]
fn what_fails_is_called_again_with_the_same_key() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    let _gateway = shop.gateway("one");
    let schedule = |path: &str| {
        format!(
            "SELECT awty_http.schedule('{}', after => '0', retries => '{{\"first_delay\": \"1 s\"}}')",
            receiver.uri(path)
        )
    };
    shop.app(&schedule("/flaky"));
    shop.app(&schedule("/status/404"));
    let seen = receiver.called("/flaky", 2);
    assert_eq!(seen[0].headers["webhook-id"], seen[1].headers["webhook-id"]);
    assert_eq!(seen[0].headers["awty-slot"], seen[1].headers["awty-slot"]);
    assert_eq!((seen[0].headers["awty-attempt"].as_str(), seen[1].headers["awty-attempt"].as_str()), ("1/3", "2/3"));
    shop.await_text("SELECT count(*) FROM awty.future_job WHERE job = 'http.app'", "0");
    assert_eq!(receiver.seen("/status/404").len(), 1);
    let attempts = "SELECT string_agg(message || ' ' || (result ->> 'body'), ',' ORDER BY ended_at) FROM awty.attempt WHERE NOT ok";
    shop.await_text(attempts, "404 Not Found said\\u{0}so");
    let failing = "SELECT string_agg(entity_key, ',') FROM awty_http.endpoint WHERE failing_since IS NOT NULL";
    shop.await_text(failing, "/status/404");
}

#[test]
fn a_check_that_says_nothing_of_its_call_is_no_call() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    let _gateway = shop.gateway("one");
    shop.app(&format!("SELECT awty.schedule('{}', '/ok', 'http.app', after => '0')", receiver.origin()));
    shop.await_text(
        "SELECT string_agg(message, ',') FROM awty.attempt",
        "request: this gateway sees no schedule of that URI",
    );
    assert_eq!(receiver.seen("/ok").len(), 0);
}

#[test]
fn an_endpoint_stops_its_calls_asks_again_or_is_gone() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    let _gateway = shop.gateway("one");
    for path in ["/header/200/Awty-Stop/it_was_paid", "/header/410/X/y", "/header/200/Awty-Again/1_s"] {
        shop.app(&format!(
            "SELECT awty_http.schedule('{}', every => '1 h', starts => now() + '30 min')",
            receiver.uri(path)
        ));
        shop.app(&format!("SELECT awty.check_now('{}', '{path}', 'http.app')", receiver.origin()));
    }
    let checks = |key: &str| {
        format!("SELECT string_agg(held::text, ',') FROM awty.future_job WHERE entity_key LIKE '/header/{key}%'")
    };
    shop.await_text(&checks("410"), "true");
    shop.await_text(&checks("200/Awty-Stop"), "");
    let note = "SELECT verdict_note FROM awty_http.endpoint WHERE verdict = ";
    shop.await_text(&format!("{note}'stop'"), "it was paid");
    shop.await_text(&format!("{note}'hold'"), "the endpoint answered that it is gone");
    let again = receiver.called("/header/200/Awty-Again/1_s", 3);
    assert_eq!((again[0].headers["awty-count"].as_str(), again[2].headers["awty-count"].as_str()), ("0", "2"));
    assert_eq!(receiver.seen("/header/410/X/y").len(), 1);
}

#[test]
fn a_send_goes_once_with_its_transaction() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    let _gateway = shop.gateway("one");
    let uri = receiver.uri("/ok");
    shop.app(&format!("BEGIN; SELECT awty_http.send('{uri}', '{{\"n\": 1}}'); ROLLBACK"));
    shop.app(&format!("SELECT awty_http.send('{uri}', '{{\"n\": 2}}', 'order-7'); SELECT awty_http.send('{uri}', '{{\"n\": 2}}', 'order-7')"));
    shop.await_text("SELECT count(*) FROM awty.attempt WHERE ok", "1");
    let seen = receiver.called("/ok", 1);
    assert_eq!((seen.len(), String::from_utf8_lossy(&seen[0].body).replace(' ', "").as_str()), (1, "{\"n\":2}"));
}

#[test]
fn a_killed_gateways_calls_are_repeated_by_another_with_their_keys() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    shop.cluster.execute("postgres", &["SELECT awty.alter('http.app', heartbeat => '2 s')"]);
    let one = shop.gateway("one");
    shop.app(&format!("SELECT awty_http.send('{}')", receiver.uri("/hang")));
    receiver.called("/hang", 1);
    let _two = shop.gateway("two");
    one.signal("KILL");
    let seen = receiver.called("/hang", 2);
    assert_eq!(seen[0].headers["webhook-id"], seen[1].headers["webhook-id"]);
    shop.await_text("SELECT string_agg(DISTINCT worker, ',') FROM awty.lease", "two");
}

#[test]
fn a_stopping_gateway_ends_what_has_begun_and_claims_no_more() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    let mut gateway = shop.gateway("one");
    shop.app(&format!("SELECT awty_http.send('{}')", receiver.uri("/slow")));
    receiver.called("/slow", 1);
    gateway.signal("TERM");
    assert_eq!(gateway.ended(), Some(0));
    assert_eq!(shop.text("SELECT string_agg(ok::text, ',') FROM awty.attempt"), "true");
    assert_eq!(shop.text("SELECT count(*) FROM awty.lease"), "0");
}

#[test]
fn a_database_that_comes_back_finds_the_answers_waiting() {
    let (mut shop, receiver) = (Shop::open(), Receiver::start());
    let gateway = shop.gateway("one");
    shop.app(&format!("SELECT awty_http.send('{}')", receiver.uri("/slow")));
    receiver.called("/slow", 1);
    // The gateway flushed its claim to disk before the call, so the claim survives the server's stop.
    shop.cluster.stop(Stop::Fast);
    until("readiness to end", || if gateway.get("/readyz").0 == 503 { Ok(()) } else { Err("ready".to_owned()) });
    assert_eq!(gateway.get("/livez").0, 200);
    shop.cluster.start();
    shop.await_text("SELECT count(*) FROM awty.attempt WHERE ok", "1");
    until(
        "readiness to return",
        || if gateway.get("/readyz").0 == 200 { Ok(()) } else { Err(gateway.get("/readyz").1) },
    );
    assert_eq!(receiver.seen("/slow").len(), 1);
}

#[test]
fn a_role_above_row_security_is_refused() {
    let shop = Shop::open();
    let mut gateway = shop.gateway_with("postgres", &[]);
    assert_eq!(gateway.ended(), Some(1));
    until("the reason", || if gateway.log().contains("superuser") { Ok(()) } else { Err(gateway.log()) });
}

#[test]
fn a_role_that_may_not_claim_says_what_to_do() {
    let shop = Shop::open();
    shop.cluster
        .execute("postgres", &["CREATE ROLE stranger LOGIN", "GRANT USAGE ON SCHEMA awty, awty_http TO stranger"]);
    let gateway = shop.gateway_with("stranger", &[]);
    until("the reason", || {
        let (status, body) = gateway.get("/readyz");
        if status == 503 && body.contains("GRANT <role> TO stranger;") { Ok(()) } else { Err(body) }
    });
}
