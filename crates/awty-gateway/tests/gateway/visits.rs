use crate::browser::{ALL, H1, Room, WHERE};
use crate::client::encoded;
use crate::shop::until;
use awty_testkit::receiver::{accept, answer, requests};

pub fn an_empty_database_says_what_to_do(room: &mut Room) {
    room.sign_in("app", "read");
    for (view, told) in [
        ("/", "No table is watched yet"),
        ("/alerts", "Nothing is late."),
        ("/rules", "SELECT awty.watch("),
        ("/jobs", "http.app"),
        ("/schedules", "SELECT awty_http.schedule("),
        ("/slots", "No check is due in this time."),
        ("/history", "No check has ended with a problem"),
        ("/targets", "all targets together"),
        ("/tokens", "awty-gateway token create"),
        ("/why", "SELECT awty.schedule("),
    ] {
        until(view, || {
            room.go(view);
            if room.all().contains(told) { Ok(()) } else { Err(room.all()) }
        });
    }
    room.go("/");
    assert_eq!(room.chromium.text(H1), "Yes. All is well.");
    room.chromium.picture("empty");
}

pub fn what_stops_is_found_and_started_again(room: &mut Room) {
    room.sign_in("app", "write");
    room.shop.app("SELECT awty_http.schedule('http://127.0.0.1:1099/stops', every => '1 s', jitter => '0')");
    room.go("/jobs");
    room.chromium.send("form[action='/jobs/pause']:has(input[value='http.app'])", &[("note", "a day off")]);
    assert!(room.all().contains("paused “a day off”"), "{}", room.all());
    until("the reason", || {
        room.go("/");
        if room.all().contains("something is stopped") { Ok(()) } else { Err(room.all()) }
    });
    room.go("/why");
    assert_eq!(room.chromium.text(H1), "This is in the way.");
    assert!(room.all().contains("SELECT awty.resume('http.app');"), "{}", room.all());
    room.chromium.picture("why");
    room.go("/jobs");
    room.chromium.send("form[action='/jobs/resume']", &[]);
    assert!(!room.all().contains("a day off"), "{}", room.all());
    room.shop.app("SELECT awty_http.unschedule('http://127.0.0.1:1099/stops')");
}

pub fn hostile_answers_are_text(room: &mut Room) {
    let evil = "<script>document.title = 'evil'</script><img src=x onerror=alert(1)>\u{202e}";
    let body = format!("{evil}{}", "x".repeat(1_000_000));
    let address = accept("127.0.0.1:0", move |stream| {
        let headers = "Location: javascript:alert(1)\r\nX-Evil: <script>\r\n";
        requests(stream, |_| answer(stream, "302", headers, &body).map(|()| true))
    });
    let uri = format!("http://{address}/%3Cscript%3E?%E2%80%AE%22%27");
    let mut client = room.shop.cluster.client("postgres", "app");
    let sql = "SELECT awty_http.schedule($1, every => '1 s', jitter => '0', keep_response => true, headers => jsonb_build_object('X-Key', $2::text, 'X-A', '<b>'))";
    client.execute(sql, &[&uri, &evil]).unwrap();
    let known = "SELECT id FROM awty_http.endpoint WHERE uri LIKE '%script%'";
    let place = format!("/schedules/{}", room.shop.text(known));
    room.sign_in("app", "read");
    until("a call", || {
        room.go(&place);
        if room.all().contains("302") { Ok(()) } else { Err(room.all()) }
    });
    let attempt = room.chromium.text("document.querySelector('a[href^=\"/attempts/\"]').getAttribute('href')");
    room.go(&attempt);
    let all = room.all();
    assert!(all.contains("javascript:alert(1)") && all.contains("This call failed."), "{all}");
    assert!(all.contains("X-A") && all.contains("<b>"), "the headers of the request: {all}");
    room.chromium.picture("attempt");
    for view in ["/", "/schedules", "/history", &place, &attempt] {
        room.go(view);
        let made = "document.querySelectorAll('script, img, main b b, a[href^=\"javascript\"]').length";
        assert_eq!(room.chromium.value(made), 0, "{view}");
        assert!(!room.chromium.text("document.title").contains("evil"), "{view}");
    }
    client.execute("SELECT awty_http.unschedule($1)", &[&uri]).unwrap();
}

pub fn another_tenant_finds_nothing(room: &mut Room) {
    room.shop.app("SELECT awty_http.schedule('http://127.0.0.1:1099/mine', every => '1 h')");
    let known = "SELECT id FROM awty_http.endpoint WHERE uri LIKE '%/mine'";
    let place = format!("/schedules/{}", room.shop.text(known));
    room.sign_in("tenant", "admin");
    for view in ["/", "/schedules", "/slots", "/history?show=all", "/targets", "/alerts", "/rules", "/tokens"] {
        room.go(view);
        assert!(!room.all().contains("/mine") && !room.all().contains("orders 1"), "{view}: {}", room.all());
    }
    for view in [place.clone(), format!("{place}/edit"), format!("{place}/delete")] {
        room.go(&view);
        assert!(!room.all().contains("/mine"), "{view}: {}", room.all());
        assert_eq!(room.chromium.value("performance.getEntriesByType('navigation')[0].responseStatus"), 404, "{view}");
    }
    room.chromium.picture("not-found");
}

/// The page refuses another site's form because of `Sec-Fetch-Site`, before it looks for a cookie.
pub fn another_site_changes_nothing(room: &mut Room) {
    room.sign_in("app", "write");
    let form = format!(
        "<!DOCTYPE html><form method=post action='{}'><input name=job value=http.app></form><iframe src='{}'></iframe>",
        room.page("/jobs/pause"),
        room.page("/")
    );
    let address = accept("127.0.0.1:0", move |stream| {
        requests(stream, |_| answer(stream, "200", "Content-Type: text/html\r\n", &form).map(|()| true))
    });
    room.chromium.go(&format!("http://localhost:{}/", address.port()));
    // Chromium logs an error when the awty page refuses to be shown in a frame.
    let refused = std::mem::take(&mut room.chromium.errors);
    assert!(refused.iter().any(|error| error.contains("frame")), "{refused:?}");
    room.chromium.send("form", &[]);
    assert!(room.all().contains("This form was sent by another site, so nothing was changed."), "{}", room.all());
    room.chromium.picture("refused");
    assert_eq!(room.shop.text("SELECT paused FROM awty.job WHERE job = 'http.app'"), "false");
    room.go("/");
    assert_eq!(room.chromium.text(WHERE), "/", "the person is still signed in");
}

pub fn a_view_is_found_and_set_up(room: &mut Room) {
    room.sign_in("app", "read");
    let uri = "http://127.0.0.1:1099/mine";
    room.chromium.send("form[role='search']", &[("q", uri)]);
    assert!(
        room.chromium.text("location.search").ends_with(&format!("key={}", encoded("/mine"))),
        "the life of the URI"
    );
    assert!(room.all().contains("The schedule of this URI"), "{}", room.all());
    room.chromium.send("form[action='/zone']", &[("zone", "Asia/Kolkata")]);
    assert!(room.all().contains(" IST"), "{}", room.all());
    room.chromium.send("form[action='/zone']", &[("zone", "UTC")]);
    let reload = room
        .chromium
        .text("[...document.links].find(link => link.innerText.startsWith('Reload every')).getAttribute('href')");
    assert!(reload.ends_with("&reload=10"), "{reload}");
    room.go(&reload);
    assert_eq!(room.chromium.text("document.querySelector('meta[http-equiv=refresh]').content"), "10");
    room.go("/slots");
    assert!(room.chromium.text(ALL).contains("The heaviest time begins at"), "{}", room.all());
    room.chromium.picture("slots");
    let key = |kind: &str| serde_json::json!({"type": kind, "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9});
    room.chromium.command("Input.dispatchKeyEvent", key("keyDown"));
    room.chromium.command("Input.dispatchKeyEvent", key("keyUp"));
    assert_eq!(room.chromium.text("document.activeElement.innerText"), "Skip to the content");
}
