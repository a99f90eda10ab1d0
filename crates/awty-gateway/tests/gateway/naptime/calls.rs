use super::at;
use crate::people::{self, open, until_answer};
use crate::receiver::Receiver;
use crate::shop::until;
use serde_json::json;

#[test]
fn a_call_ends_at_the_timeout_of_its_schedule_or_of_the_gateway() {
    let (shop, first, _client) = open();
    drop(first);
    let gateway = shop.gateway_with("gateway", &["--timeout", "1 s"]);
    let client = people::client(&shop, &gateway, "app", "write");
    let receiver = Receiver::start();
    for (path, timeout) in [("/hang", json!(null)), ("/hang/own", json!("300 ms")), ("/slow", json!("30 s"))] {
        let body =
            json!({"uri": receiver.uri(path), "after": "0.001 s", "timeout": timeout, "retries": {"max_attempts": 1}});
        let made = client.ask("POST", "/v1/schedules", &body.to_string());
        assert_eq!(made.status, 201, "{}", made.text);
        let done = until_answer(&client, &made.header("location"), |schedule| schedule["last"].is_object()).json();
        let expected = if path == "/slow" { (json!(200), json!(null)) } else { (json!(null), json!("timeout")) };
        assert_eq!((done["last"]["status"].clone(), done["last"]["fault"].clone()), expected, "{path}: {done}");
    }
}

#[test]
fn endpoints_that_hang_take_no_thread_and_hold_up_no_other() {
    let (shop, gateway, client) = open();
    let (hanging, good) = (Receiver::start(), Receiver::start());
    shop.cluster.execute("postgres", &["SELECT awty.alter_target('http.app', concurrency => 1000)"]);
    let before = gateway.threads();
    shop.app(&format!(
        "SELECT awty_http.schedule('{}' || n, every => '1 s', timeout => '10 min') FROM generate_series(1, 200) AS n",
        hanging.uri("/hang/")
    ));
    until("200 calls that hang", || {
        let busy = shop.text("SELECT count(*) FROM awty.lease");
        if busy.parse::<usize>().unwrap() >= 200 { Ok(()) } else { Err(busy) }
    });
    assert!(gateway.threads() <= before + 8, "{} threads for 200 calls, {before} before", gateway.threads());
    for number in 0..20 {
        assert_eq!(client.ask("PUT", &at(&good.uri(&format!("/ok/{number}")), "1 s"), "").status, 201);
    }
    for number in 0..20 {
        until(&format!("three calls of number {number}"), || {
            let calls = good.seen(&format!("/ok/{number}")).len();
            if calls >= 3 { Ok(()) } else { Err(format!("{calls}")) }
        });
    }
    assert_eq!(shop.text("SELECT count(*) >= 200 FROM awty.lease WHERE entity_key LIKE '/hang/%'"), "true");
}

#[test]
fn no_more_calls_are_in_flight_than_configured() {
    let (shop, first, _client) = open();
    drop(first);
    let gateway = shop.gateway_with("gateway", &["--max-in-flight", "8"]);
    let receiver = Receiver::start();
    let sends = format!("SELECT awty_http.send('{}' || n) FROM generate_series(1, 50) AS n", receiver.uri("/hang/"));
    let calls = |count: usize| {
        until(&format!("{count} calls"), || {
            if receiver.open() >= count { Ok(()) } else { Err(receiver.open().to_string()) }
        });
    };
    shop.app(&sends);
    calls(2);
    assert_eq!(shop.text("SELECT count(*) FROM awty.lease"), "2");
    shop.cluster.client("postgres", "tenant").batch_execute(&sends).unwrap();
    calls(4);
    assert_eq!(shop.text("SELECT count(*) FROM awty.lease"), "4");
    assert_eq!((receiver.open(), gateway.get("/livez").0), (4, 200));
}

#[test]
fn a_late_call_is_made_or_dropped_as_its_schedule_says() {
    let (shop, first, client) = open();
    let receiver = Receiver::start();
    shop.cluster.execute("postgres", &["SELECT awty.pause('http.app')"]);
    let place = |path: &str, lateness: &str| {
        let body = json!({"uri": receiver.uri(path), "after": "1 s", "max_lateness": if lateness.is_empty() { json!(null) } else { json!(lateness) }});
        client.ask("POST", "/v1/schedules", &body.to_string()).header("location")
    };
    let (late, dropped) = (place("/behind", ""), place("/dropped", "500 ms"));
    drop(first);
    shop.await_text(
        "SELECT bool_and(next_check_at < clock_timestamp() - interval '2 s') FROM awty.future_job WHERE job = 'http.app'",
        "true",
    );
    shop.cluster.execute("postgres", &["SELECT awty.resume('http.app')"]);
    let gateway = shop.gateway("two");
    let client = people::client(&shop, &gateway, "app", "read");
    let made = until_answer(&client, &late, |schedule| schedule["counts"]["ok"] == json!(1)).json();
    assert!(made["last"]["lateness"].as_str().unwrap().contains('s'), "{made}");
    let left = until_answer(&client, &dropped, |schedule| schedule["counts"]["dropped"] == json!(1)).json();
    assert_eq!((&left["last"]["fault"], &left["failing_since"]), (&json!("dropped"), &json!(null)), "{left}");
    let attempts = client.get(&format!("{dropped}/attempts")).json();
    assert!(attempts["items"][0]["message"].as_str().unwrap().starts_with("dropped: "), "{attempts}");
    assert_eq!((receiver.seen("/behind").len(), receiver.seen("/dropped").len()), (1, 0));
}

#[test]
fn what_an_endpoint_answers_decides_whether_it_is_called_again() {
    let (_shop, _gateway, client) = open();
    let receiver = Receiver::start();
    for (path, calls, ok) in [
        ("/ok", 1, true),
        ("/status/404", 1, false),
        ("/status/302", 1, false),
        ("/status/500", 2, false),
        ("/flaky", 2, true),
    ] {
        let body =
            json!({"uri": receiver.uri(path), "after": "1 ms", "retries": {"max_attempts": 2, "first_delay": "1 s"}});
        let made = client.ask("POST", "/v1/schedules", &body.to_string());
        let place = made.header("location");
        until_answer(&client, &place, |schedule| schedule["state"] == json!("ended"));
        let attempts = client.get(&format!("{place}/attempts")).json();
        assert_eq!(
            (attempts["items"].as_array().unwrap().len(), &attempts["items"][0]["ok"]),
            (calls, &json!(ok)),
            "{path}: {attempts}"
        );
        assert_eq!(receiver.seen(path).len(), calls, "{path}");
        let keys: std::collections::BTreeSet<String> =
            receiver.seen(path).iter().map(|seen| seen.headers["webhook-id"].clone()).collect();
        assert_eq!(keys.len(), 1, "all attempts have one key");
    }
    let failing: Vec<_> =
        people::pages(&client, "/v1/schedules?failing=true&limit=1").iter().map(|one| one["uri"].clone()).collect();
    assert_eq!(failing.len(), 3, "{failing:?}");
}

#[test]
fn an_endpoint_that_is_gone_is_held_until_a_person_resumes_it() {
    let (_shop, _gateway, client) = open();
    let receiver = Receiver::start();
    let body = json!({"uri": receiver.uri("/status/410"), "every": "1 s"}).to_string();
    let place = client.ask("POST", "/v1/schedules", &body).header("location");
    let held = until_answer(&client, &place, |schedule| schedule["state"] == json!("held")).json();
    assert_eq!(
        (&held["why"], &held["next_slot"]),
        (&json!("the endpoint answered that it is gone"), &json!(null)),
        "{held}"
    );
    assert_eq!(client.get("/v1/schedules?state=held").json()["items"][0]["id"], held["id"]);
    let calls = receiver.seen("/status/410").len();
    let resumed = client.ask("POST", &format!("{place}/resume"), "").json();
    assert_eq!((&resumed["state"], &resumed["why"]), (&json!("active"), &json!(null)), "{resumed}");
    until_answer(&client, &place, |_| receiver.seen("/status/410").len() > calls);
}

#[test]
fn a_period_does_not_drift() {
    let (shop, _gateway, client) = open();
    let receiver = Receiver::start();
    let made = client.ask(
        "POST",
        "/v1/schedules",
        &json!({"uri": receiver.uri("/slow"), "every": "2 s", "jitter": null}).to_string(),
    );
    let place = made.header("location");
    until_answer(&client, &place, |schedule| schedule["counts"]["ok"].as_i64().unwrap() >= 3);
    let seconds = shop.text("SELECT bool_and(extract(epoch FROM first_check_at)::numeric % 2 = (SELECT extract(epoch FROM min(first_check_at))::numeric % 2 FROM awty.attempt)) FROM awty.attempt");
    assert_eq!(seconds, "true");
}
