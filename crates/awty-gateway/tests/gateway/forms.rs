use crate::people::open;
use crate::shop::until;
use crate::visitor::{Browser, VIEWS};
use awty_testkit::receiver::{accept, answer, requests};

#[test]
fn a_person_signs_in_with_a_token_and_out() {
    let (shop, gateway, _) = open();
    let token = shop.token("app", "read");
    let nobody = Browser::of_nobody(&gateway);
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
    let nobody = Browser::of_nobody(&gateway);
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
    // If a user follows a link from another site, the browser sends no cookie. The gateway therefore answers with a
    // page that reloads itself, because the browser sends the cookie with this second request.
    let stranger = Browser { cookie: "Sec-Fetch-Site: cross-site\r\n".into(), ..Browser::of_nobody(&gateway) };
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
    browser.shows(&place, &["http://127.0.0.1:1099/a", "every 1h", "first", "Next calls", "curl --globoff -X GET"]);
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
    assert_eq!(browser.post("/targets/block", &block).status, 303);
    // Another role has more targets than the page shows.
    shop.cluster.execute("postgres", &["CREATE ROLE mallory", "GRANT USAGE ON SCHEMA awty TO mallory"]);
    shop.cluster.execute(
        "postgres",
        &["SET ROLE mallory; SELECT awty.register('aaa'); SELECT awty.allow('aaa', 'app', 'read');
           SELECT awty.alter_target('aaa', 't' || n, blocked_until => 'infinity') FROM generate_series(1, 20) AS n"],
    );
    browser.shows("/", &["Targets that get no calls", "they asked", "t17"]);
}

#[test]
fn a_redirect_offers_a_schedule_of_the_new_address() {
    let (shop, gateway, _) = open();
    let address = accept("127.0.0.1:0", |stream| {
        requests(stream, |_| answer(stream, "302", "Location: /new?a=1\r\n", "").map(|()| true))
    });
    shop.app(&format!(
        "SELECT awty_http.schedule('http://{address}/old', every => '1 s', jitter => '0', method => 'PUT')"
    ));
    let place = format!("/schedules/{}", shop.text("SELECT id FROM awty_http.endpoint"));
    let link = |browser: &Browser| {
        let page = until("a call", || {
            let page = browser.get(&place).text;
            if page.contains("href=\"/attempts/") { Ok(page) } else { Err(page) }
        });
        let attempt = page.split("href=\"").find(|part| part.starts_with("/attempts/")).unwrap();
        let page = browser.shows(&attempt.split('"').next().unwrap().replace("&amp;", "&"), &["It redirects to"]);
        let link = page.split("href=\"").find(|part| part.starts_with("/schedules/new?"));
        link.map(|link| link.split('"').next().unwrap().replace("&amp;", "&"))
    };
    let form = link(&Browser::of(&shop, &gateway, "app", "write")).expect("a link to the form");
    let uri = format!("value=\"http://{address}/new?a=1\"");
    Browser::of(&shop, &gateway, "app", "write")
        .shows(&form, &[&uri, "value=\"1s\"", "<option value=\"PUT\" selected>"]);
    assert_eq!(link(&Browser::of(&shop, &gateway, "app", "read")), None);
}

#[test]
fn an_unknown_address_has_a_view_for_people_and_a_problem_for_programs() {
    let (shop, gateway, _) = open();
    let browser = Browser::of(&shop, &gateway, "app", "read");
    let page = browser.client.ask_with("GET", "/nothing", "", "Accept: text/html,*/*\r\n");
    assert!(page.status == 404 && page.text.contains("<h1>Nothing was found</h1>"), "{}", page.text);
    assert!(page.header("content-security-policy").contains("default-src 'none'"), "{}", page.head);
    let problem = browser.get("/nothing");
    assert_eq!((problem.status, problem.problem().as_str()), (404, "not-found"));
}

#[test]
fn a_proxy_serves_the_page_below_a_path() {
    let (shop, gateway, _) = open();
    let browser = Browser::of(&shop, &gateway, "app", "write");
    let headers = |prefix: &str| format!("{}X-Forwarded-Prefix: {prefix}\r\n", browser.cookie);
    for view in VIEWS {
        let page = browser.client.ask_with("GET", view, "", &headers("/ops/awty")).text;
        let below = page.matches("href=\"/ops/awty/").count() + page.matches("action=\"/ops/awty/").count();
        assert_eq!(below, page.matches("href=\"/").count() + page.matches("action=\"/").count(), "{view}: {page}");
        assert!(below > 10 && page.ends_with("</html>"), "{view}: {page}");
    }
    let nobody = Browser::of_nobody(&gateway);
    let sent_away = nobody.client.ask_with("GET", "/jobs", "", "X-Forwarded-Prefix: /ops/awty/\r\n");
    assert_eq!(sent_away.header("location"), "/ops/awty/login?next=%2Fjobs");
    let long = nobody.client.ask("GET", &format!("/jobs?{}", "=".repeat(4_000)), "");
    assert_eq!(long.header("location"), "/login");
    let fields = [("next", "/jobs"), ("token", &shop.token("app", "read"))];
    let entered =
        nobody.post_from("/login", &fields, "Sec-Fetch-Site: same-origin\r\nX-Forwarded-Prefix: /ops/awty\r\n");
    assert_eq!(entered.header("location"), "/ops/awty/jobs");
    let elsewhere = browser.client.ask_with("GET", "/", "", &headers("//evil.example")).text;
    assert!(elsewhere.contains("href=\"/alerts\"") && !elsewhere.contains("evil"), "{elsewhere}");
}
