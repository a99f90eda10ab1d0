use crate::client::encoded;
use crate::people::open;
use crate::shop::until;
use crate::visitor::{Browser, watch};

#[test]
fn each_view_of_an_empty_database_says_what_to_do() {
    let (shop, gateway, _) = open();
    let browser = Browser::of(&shop, &gateway, "app", "read");
    browser.shows(
        "/",
        &[
            "Yes. All is well.",
            "<title>awty</title>",
            "No table is watched yet",
            "Signed in as <b>app</b>",
            "The database took ",
        ],
    );
    browser.shows("/alerts", &["Nothing is late."]);
    browser.shows("/rules", &["SELECT awty.watch("]);
    browser.shows("/schedules", &["SELECT awty_http.schedule("]);
    browser.shows("/slots", &["No check is due in this time."]);
    browser.shows("/history", &["No check has ended with a problem"]);
    browser.shows("/targets", &["all targets together"]);
    browser.shows("/tokens", &["A token of scope admin"]);
    browser.shows("/entity?q=orders", &["No check is pending for this name."]);
    browser.shows("/entity?name=orders&key=42", &["SELECT * FROM awty.explain('orders', '42');"]);
}

#[test]
fn a_late_row_is_taken_and_given_back() {
    let (shop, gateway, _) = open();
    watch(&shop);
    let browser = Browser::of(&shop, &gateway, "app", "write");
    browser.shows(
        "/",
        &["<title>1 late · awty</title>", "Not yet: 1 row is late.", "name=orders&amp;key=1", "name=orders&amp;key=2"],
    );
    browser.shows("/rules", &["due", "orders", "0.0 %"]);
    let of = [("name", "orders"), ("key", "1"), ("job", "orders"), ("back", "/alerts")];
    let held = browser.post("/entity/hold", &[&of[..], &[("note", "asked <b>Ann</b>"), ("until", "2 h")]].concat());
    assert_eq!((held.status, held.header("location")), (303, "/alerts".to_owned()), "{}", held.text);
    assert_eq!(shop.text("SELECT held_by || ': ' || note FROM awty.late"), "app: asked <b>Ann</b>");
    assert_eq!(shop.text("SELECT held_until > now() + interval '110 min' FROM awty.late"), "true");
    browser.shows("/alerts", &["asked &lt;b&gt;Ann&lt;/b&gt;", "Release", "1 late · Alerts · awty"]);
    assert_eq!(browser.post("/entity/release", &of).status, 303);
    assert_eq!(shop.text("SELECT held_by FROM awty.late"), "");
    browser.shows("/entity?name=orders&key=1", &["What was", "Alerts"]);
    let wrong = browser.post("/entity/hold", &[&of[..], &[("until", "2")]].concat());
    assert!(wrong.status == 422 && wrong.text.contains("2 s or 2 min"), "{}", wrong.text);
    let reader = Browser::of(&shop, &gateway, "app", "read");
    assert_eq!(reader.post("/entity/hold", &of).status, 403);
    shop.app("UPDATE orders SET status = 'SENT' WHERE id = 1");
    browser.shows("/alerts", &["Nothing is late.", "No longer late"]);
}

#[test]
fn a_call_that_fails_is_found_with_its_reason() {
    let (shop, gateway, _) = open();
    shop.app("SELECT awty_http.schedule('http://127.0.0.1:1099/closed', every => '1 s', jitter => '0', retries => '{\"max_attempts\": 1}')");
    let browser = Browser::of(&shop, &gateway, "app", "write");
    shop.await_text("SELECT count(*) > 1 FROM awty_http_internal.problem", "true");
    // No more calls fail, because awty also warns of a call that has failed ten times.
    shop.app(
        "SELECT awty_http.schedule('http://127.0.0.1:1099/closed', every => '1 h', retries => '{\"max_attempts\": 1}')",
    );
    shop.await_text("SELECT count(*) FROM awty.lease", "0");
    browser.shows("/", &["Not yet: 1 thing fails.", "http://127.0.0.1:1099/closed", "What fails"]);
    browser.shows("/history", &["✕", "Call again", "http://127.0.0.1:1099"]);
    let found = browser.get("/entity?q=http%3A%2F%2F127.0.0.1%3A1099%2Fclosed").header("location");
    let life = browser.shows(&found, &["The schedule of this URI"]);
    let place = life.split("href=\"").find(|part| part.starts_with("/schedules/s_")).unwrap();
    let place = place.split('"').next().unwrap().to_owned();
    let page = browser.shows(&place, &["Outcomes", "Lateness", "Duration", "<svg", "Last calls", "The numbers"]);
    for bucket in ["1s", "10s", "1m", "10m", "1h", "6h", "1d"] {
        browser.shows(&format!("{place}?bucket={bucket}"), &["The last "]);
    }
    let attempt = page.split("href=\"").find(|part| part.starts_with("/attempts/")).unwrap();
    let attempt = attempt.split('"').next().unwrap().replace("&amp;", "&");
    browser.shows(&attempt, &["This call failed.", "no answer came, because of"]);
    let id = shop.text("SELECT max(id) FROM awty_http_internal.problem");
    assert_eq!(browser.post(&format!("/history/{id}/retry"), &[]).status, 303);
}

#[test]
fn another_tenant_sees_and_changes_nothing() {
    let (shop, gateway, _) = open();
    watch(&shop);
    shop.app("SELECT awty_http.schedule('http://127.0.0.1:1099/mine', every => '1 h')");
    let place = format!("/schedules/{}", shop.text("SELECT id FROM awty_http.endpoint"));
    let stranger = Browser::of(&shop, &gateway, "tenant", "admin");
    stranger.shows("/", &["Yes. All is well."]);
    for view in
        ["/alerts", "/rules", "/history", "/history?show=all", "/schedules", "/slots", "/entity?name=orders&key=1"]
    {
        let text = stranger.shows(view, &[]);
        assert!(!text.contains("127.0.0.1:1099/mine") && !text.contains("key=2"), "{view}: {text}");
    }
    assert_eq!(stranger.get(&place).status, 404);
    assert_eq!(stranger.post(&format!("{place}/delete"), &[]).status, 404);
    let of = [("name", "orders"), ("key", "1"), ("job", "orders")];
    assert!([403, 404].contains(&stranger.post("/entity/hold", &of).status));
    assert_eq!(shop.text("SELECT held_by FROM awty.late"), "");
    assert!([403, 404].contains(&stranger.post("/jobs/pause", &[("job", "orders")]).status));
}

#[test]
fn hostile_names_are_text() {
    let (shop, gateway, _) = open();
    let evil = "<script>alert(1)</script>\"'>\u{202e}";
    shop.cluster.execute("postgres", &["GRANT CREATE ON SCHEMA public TO app"]);
    shop.app("CREATE FUNCTION wait(awty.future_job) RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION '<img src=x onerror=alert(1)>'; END $$");
    let mut client = shop.cluster.client("postgres", "app");
    client.execute("SELECT awty.register($1, 'wait', max_attempts => 1)", &[&evil]).unwrap();
    client.execute("SELECT awty.schedule($1, $1, $1, after => '1 hour')", &[&evil]).unwrap();
    client.execute("SELECT awty.schedule($1, 'failed', $1, after => '0')", &[&evil]).unwrap();
    client
        .execute("SELECT awty_http.schedule('http://127.0.0.1:1099/x', every => '1 h', description => $1)", &[&evil])
        .unwrap();
    shop.await_text("SELECT count(*) FROM awty.future_job_history WHERE outcome = 'failed'", "1");
    let browser = Browser::of(&shop, &gateway, "app", "write");
    let entity = format!("/entity?name={0}&key={0}", encoded(evil));
    let search = format!("/entity?q={}", encoded(&evil.replace(' ', "")));
    let place = format!("/schedules/{}", shop.text("SELECT id FROM awty_http.endpoint"));
    for view in ["/", "/jobs", "/history", "/schedules", "/slots", "/why", &entity, &search, &place] {
        let text = browser.shows(view, &[]);
        assert!(!text.contains("<script") && !text.contains("<img"), "{view}: {text}");
    }
    browser.shows("/history", &["&lt;img src=x onerror=alert(1)&gt;"]);
    browser.shows("/jobs", &["&lt;script&gt;alert(1)&lt;/script&gt;&quot;"]);
    assert_eq!(browser.post("/jobs/pause", &[("job", evil), ("note", evil)]).status, 303);
    browser.shows("/jobs", &["paused"]);
}

#[test]
fn each_cause_of_silence_has_its_sentence() {
    let (shop, gateway, _) = open();
    let browser = Browser::of(&shop, &gateway, "app", "write");
    until("the gateway's first claim", || {
        let page = browser.get("/why").text;
        if page.contains("Nothing is in the way.") { Ok(()) } else { Err(page) }
    });
    shop.app("SELECT awty_http.schedule('http://127.0.0.1:1099/x', every => '1 s')");
    browser.post("/jobs/pause", &[("job", "http.app"), ("note", "a day off")]);
    let page = until("the paused job", || {
        let page = browser.get("/why").text;
        if page.contains("Something is stopped:") { Ok(page) } else { Err(page) }
    });
    assert!(page.contains("a day off"), "{page}");
    assert_eq!(page.matches("SELECT awty.resume(").count(), 1, "the pause is told once: {page}");
    shop.cluster.execute("postgres", &["ALTER SYSTEM SET awty.enabled = off", "SELECT pg_reload_conf()"]);
    until("awty to be off", || {
        let page = browser.get("/why").text;
        if page.contains("ALTER SYSTEM SET awty.enabled = on") { Ok(()) } else { Err(page) }
    });
    shop.cluster.execute("postgres", &["ALTER SYSTEM RESET awty.enabled", "SELECT pg_reload_conf()"]);
}

#[test]
fn the_page_says_that_the_database_is_away() {
    let (mut shop, gateway, _) = open();
    let browser = Browser::of(&shop, &gateway, "app", "read");
    shop.cluster.stop(awty_testkit::Stop::Fast);
    let page = browser.get("/");
    assert!(
        page.status == 503 && page.text.contains("Calls and checks that are due wait"),
        "{}: {}",
        page.status,
        page.text
    );
    shop.cluster.start();
    until("the page to be back", || {
        let page = browser.get("/");
        if page.status == 200 { Ok(()) } else { Err(page.text) }
    });
}
