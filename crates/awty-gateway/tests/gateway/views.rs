//! Tests the page over HTTP: signing in, what each view shows, the forms, and what strangers get.

use crate::client::{Answer, Client, encoded};
use crate::people::{client, open};
use crate::shop::{Gateway, Shop, until};

const VIEWS: [&str; 10] =
    ["/", "/alerts", "/rules", "/jobs", "/schedules", "/schedules/new", "/slots", "/history", "/targets", "/why"];

/// A browser that is signed in by its cookie.
pub struct Browser {
    client: Client,
    cookie: String,
}

impl Browser {
    pub fn of(shop: &Shop, gateway: &Gateway, role: &str, scope: &str) -> Self {
        let Client { address, token } = client(shop, gateway, role, scope);
        Browser { client: Client { address, token: String::new() }, cookie: format!("Cookie: awty={token}\r\n") }
    }

    pub fn get(&self, path: &str) -> Answer {
        self.client.ask_with("GET", path, "", &self.cookie)
    }

    pub fn post(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        self.post_from(path, fields, "Sec-Fetch-Site: same-origin\r\n")
    }

    fn post_from(&self, path: &str, fields: &[(&str, &str)], headers: &str) -> Answer {
        let body: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        let headers = format!("{}{headers}Content-Type: application/x-www-form-urlencoded\r\n", self.cookie);
        self.client.ask_with("POST", path, &body.join("&"), &headers)
    }

    #[track_caller]
    fn shows(&self, path: &str, texts: &[&str]) -> String {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        for text in texts {
            assert!(answer.text.contains(text), "{path} has no {text}: {}", answer.text);
        }
        answer.text
    }
}

/// Order 1 is late, and order 2 will be late within the hour.
pub fn watch(shop: &Shop) {
    shop.cluster.execute("postgres", &["GRANT CREATE ON SCHEMA public TO app"]);
    shop.app(
        "CREATE TABLE orders (id bigint PRIMARY KEY, status text NOT NULL DEFAULT 'NEW', due timestamptz NOT NULL)",
    );
    shop.app("SELECT awty.watch('orders', until => $$status <> 'NEW'$$, due => 'due', existing => 'all')");
    shop.app("INSERT INTO orders VALUES (1, 'NEW', now() + interval '1 s'), (2, 'NEW', now() + interval '20 min')");
    shop.await_text("SELECT count(*) FROM awty.late", "1");
}

#[test]
fn a_person_signs_in_with_a_token_and_out() {
    let (shop, gateway, _) = open();
    let token = shop.token("app", "read");
    let nobody = Browser { client: Client { address: gateway.address(), token: String::new() }, cookie: String::new() };
    for view in VIEWS {
        let answer = nobody.get(view);
        assert_eq!(answer.status, 303, "{view}");
        assert!(answer.header("location").starts_with("/login"), "{view}");
    }
    let page = nobody.get("/login?next=%2Falerts");
    assert!(page.status == 200 && page.text.contains("value=\"/alerts\""), "{}", page.text);
    let wrong = nobody.post("/login", &[("token", &format!("awty_{}", "x".repeat(43))), ("next", "/")]);
    assert!(wrong.status == 401 && wrong.text.contains("This token is not known."), "{}", wrong.text);
    assert_eq!(wrong.header("set-cookie"), "");
    let right = nobody.post("/login", &[("token", &token), ("next", "/alerts")]);
    assert_eq!((right.status, right.header("location")), (303, "/alerts".to_owned()));
    assert_eq!(right.header("set-cookie"), format!("awty={token}; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict"));
    let elsewhere = nobody.post("/login", &[("token", &token), ("next", "//evil.example")]);
    assert_eq!(elsewhere.header("location"), "/");
    let out = nobody.post("/logout", &[]);
    assert!(out.status == 303 && out.header("set-cookie").starts_with("awty=; Path=/; Max-Age=0;"));
}

#[test]
fn the_cookie_needs_tls_behind_a_proxy() {
    let (shop, _gateway, _) = open();
    let gateway = shop.gateway_with("gateway", &["--behind-proxy", "true"]);
    let token = shop.token("app", "read");
    let nobody = Browser { client: Client { address: gateway.address(), token: String::new() }, cookie: String::new() };
    let cookie = nobody.post("/login", &[("token", &token)]).header("set-cookie");
    assert!(cookie.starts_with("__Host-awty=awty_") && cookie.ends_with("; Secure"), "{cookie}");
}

#[test]
fn a_form_of_another_site_changes_nothing() {
    let (shop, gateway, _) = open();
    let browser = Browser::of(&shop, &gateway, "app", "write");
    let job = [("job", "http.app")];
    for headers in [
        "",
        "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-site\r\n",
        "Origin: https://evil.example\r\n",
        "Origin: null\r\n",
    ] {
        assert_eq!(browser.post_from("/jobs/pause", &job, headers).status, 403, "{headers}");
    }
    assert_eq!(shop.text("SELECT paused FROM awty.job WHERE job = 'http.app'"), "false");
    assert_eq!(browser.post_from("/jobs/pause", &job, "Origin: http://x\r\n").status, 303);
    assert_eq!(shop.text("SELECT paused FROM awty.job WHERE job = 'http.app'"), "true");
    // A browser sends no Strict cookie with a link of another site, so the page loads itself once more.
    let stranger = Browser {
        client: Client { address: gateway.address(), token: String::new() },
        cookie: "Sec-Fetch-Site: cross-site\r\n".into(),
    };
    assert!(stranger.get("/alerts").text.contains("<meta http-equiv=\"refresh\" content=\"0\">"));
}

#[test]
fn no_answer_is_stored_framed_or_runs_a_script() {
    let (shop, gateway, _) = open();
    let browser = Browser::of(&shop, &gateway, "app", "admin");
    for view in VIEWS.into_iter().chain(["/login", "/tokens", "/entity?q=orders+42", "/schedules/s_nothing"]) {
        let answer = browser.get(view);
        assert!(
            answer.header("content-security-policy").starts_with("default-src 'none'; style-src 'self';"),
            "{view}"
        );
        assert!(answer.header("content-security-policy").contains("frame-ancestors 'none'"), "{view}");
        assert_eq!(answer.header("x-frame-options"), "DENY", "{view}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{view}");
        assert_eq!(answer.header("cache-control"), "no-store", "{view}");
        let page = answer.text.to_lowercase();
        for inline in ["<script", "style=", "onclick", "javascript:"] {
            assert!(!page.contains(inline), "{view} has {inline}");
        }
    }
    let style = browser.get("/awty.css");
    assert!(style.status == 200 && style.header("content-type").starts_with("text/css"));
}

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
fn a_schedule_is_made_changed_paused_and_deleted() {
    let (shop, gateway, _) = open();
    let browser = Browser::of(&shop, &gateway, "app", "write");
    let wrong =
        browser.post("/schedules/new", &[("uri", "http://127.0.0.1:1099/a"), ("every", "10"), ("method", "POST")]);
    assert!(wrong.status == 422 && wrong.text.contains("write 10 s or 10 min"), "{}", wrong.text);
    assert!(
        wrong.text.contains("value=\"http://127.0.0.1:1099/a\"") && wrong.text.contains("value=\"10\""),
        "the typed text stays"
    );
    let fields = [("uri", "http://127.0.0.1:1099/a"), ("every", "1 h"), ("method", "GET"), ("description", "first")];
    let made = browser.post("/schedules/new", &fields);
    assert_eq!(made.status, 303, "{}", made.text);
    let place = made.header("location");
    browser.shows(&place, &["http://127.0.0.1:1099/a", "every 1h", "first", "Next calls", "curl -X GET"]);
    let twice = browser.post("/schedules/new", &fields);
    assert!(twice.status == 422 && twice.text.contains("aria-invalid"), "{}", twice.text);
    shop.app("SELECT awty_http.schedule('http://127.0.0.1:1099/a', every => '1 h', method => 'GET', headers => '{\"X-Secret\": \"s3cret\"}')");
    assert!(!browser.shows(&place, &["•••"]).contains("s3cret"));
    let changed = browser.post(
        &format!("{place}/edit"),
        &[("uri", "http://127.0.0.1:1099/a"), ("every", "2 h"), ("method", "GET"), ("body_text", "")],
    );
    assert_eq!(changed.status, 303, "{}", changed.text);
    assert_eq!(
        shop.text("SELECT every || ' ' || (request -> 'headers' ->> 'X-Secret') FROM awty_http.endpoint"),
        "02:00:00 s3cret"
    );
    assert_eq!(browser.post(&format!("{place}/pause"), &[("note", "a <i>day</i>")]).status, 303);
    browser.shows(&place, &["paused", "a &lt;i&gt;day&lt;/i&gt;"]);
    assert_eq!(browser.post(&format!("{place}/resume"), &[]).status, 303);
    browser.shows("/schedules?state=active&text=1099%2Fa", &["http://127.0.0.1:1099/a"]);
    browser.shows(&format!("{place}/delete"), &["Delete this schedule?"]);
    let reader = Browser::of(&shop, &gateway, "app", "read");
    assert_eq!(reader.post(&format!("{place}/delete"), &[]).status, 403);
    assert_eq!(browser.post(&format!("{place}/delete"), &[]).status, 303);
    browser.shows("/schedules?state=ended", &["http://127.0.0.1:1099/a"]);
}

#[test]
fn a_call_that_fails_is_found_with_its_reason() {
    let (shop, gateway, _) = open();
    shop.app("SELECT awty_http.schedule('http://127.0.0.1:1099/closed', every => '1 s', jitter => '0', retries => '{\"max_attempts\": 1}')");
    let browser = Browser::of(&shop, &gateway, "app", "write");
    shop.await_text("SELECT count(*) > 1 FROM awty_http_internal.problem", "true");
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
fn tokens_and_targets_have_their_forms() {
    let (shop, gateway, _) = open();
    shop.app("SELECT awty_http.schedule('http://127.0.0.1:1099/x', every => '1 h')");
    let browser = Browser::of(&shop, &gateway, "app", "admin");
    let made = browser.post("/tokens", &[("scope", "read"), ("expires", "1 d")]);
    assert!(made.status == 200 && made.text.contains("It is shown only now"), "{}", made.text);
    let token = made.text.split("awty_").nth(1).unwrap().split('<').next().unwrap();
    assert_eq!(token.len(), 43);
    let id = shop.text("SELECT max(id) FROM awty_http.token");
    assert_eq!(browser.post(&format!("/tokens/{id}/delete"), &[]).status, 303);
    assert_eq!(shop.text(&format!("SELECT count(*) FROM awty_http.token WHERE id = {id}")), "0");
    let block = [("origin", "http://127.0.0.1:1099"), ("until", "10 min"), ("note", "they asked")];
    assert_eq!(browser.post("/targets/block", &block).status, 303);
    browser.shows("/targets", &["they asked", "Unblock"]);
    browser.shows("/", &["Targets that get no calls", "they asked"]);
    assert_eq!(browser.post("/targets/unblock", &block[..1]).status, 303);
    assert!(!browser.shows("/", &[]).contains("Targets that get no calls"));
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
        if page.contains("is paused while checks are due") { Ok(page) } else { Err(page) }
    });
    assert!(page.contains("a day off") && page.contains("SELECT awty.resume("), "{page}");
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
