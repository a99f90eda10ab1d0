use crate::people::open;
use crate::visitor::Browser;

#[test]
fn calls_of_a_time_of_the_day_are_found_later() {
    let (shop, gateway, _) = open();
    let browser = Browser::of(&shop, &gateway, "app", "read");
    shop.app("SELECT awty_http.schedule('http://127.0.0.1:1099/a', every => '1 h')");
    let id = shop.text("SELECT id FROM awty_http.endpoint");
    // Adds one call per minute for the last hour. Only the call 40 minutes ago was late, by 45 s.
    let calls = "INSERT INTO awty_internal.attempt
        SELECT n, n, 'http.app', 'http://127.0.0.1:1099', '/a', t.slot, t.slot, 0, 1, false, 'app'::regrole, t.slot, 'key', t.at, t.at, t.at,
            'gateway', t.at + interval '50 ms', '0', true, NULL, NULL, '{\"status\": 200}', 'app'::regrole
        FROM generate_series(1, 60) AS n, LATERAL (SELECT date_trunc('minute', now()) - n * interval '1 min' AS slot) AS s,
            LATERAL (SELECT s.slot, s.slot + CASE WHEN n = 40 THEN interval '45 s' ELSE '0' END AS at) AS t";
    shop.cluster.execute("postgres", &[calls]);
    let page = browser.shows(&format!("/schedules/{id}"), &["Earlier calls", "type=\"datetime-local\""]);
    assert!(!page.contains("came 45 s late"), "{page}");
    let link = page.split("href=\"").find(|part| part.contains("until=") && part.contains(">Earlier calls<")).unwrap();
    browser.shows(&link.split('"').next().unwrap().replace("&amp;", "&"), &["Not up to now", "Earlier calls"]);
    let then = shop.text("SELECT to_char(now() AT TIME ZONE 'UTC' - interval '38 min', 'YYYY-MM-DD\"T\"HH24:MI')");
    browser.shows(&format!("/schedules/{id}?bucket=1m&until={then}"), &["Not up to now", "came 45 s late"]);
    assert_eq!(browser.get(&format!("/schedules/{id}?until=yesterday")).status, 404);
    // The form asks about one minute.
    shop.cluster.execute("postgres", &["UPDATE awty_http_internal.endpoint SET every = '1 min', jitter = '0', created_at = now() - interval '1 day'"]);
    shop.cluster.execute("postgres", &["DELETE FROM awty_internal.attempt WHERE lease BETWEEN 20 AND 25"]);
    let minute = |ago: u32| {
        shop.text(&format!("SELECT to_char(date_trunc('minute', (SELECT max(leased_at) FROM awty_internal.attempt WHERE worker = 'gateway')) AT TIME ZONE 'UTC' - interval '{ago} min', 'YYYY-MM-DD\"T\"HH24:MI')"))
    };
    for (ago, texts) in [
        (4, &["</span> Yes.</span> It was called at "][..]),
        (
            21,
            &[
                "</span> No.</span> The call before was at ",
                "The next call was at ",
                "no call for 6 min",
                "No other endpoint is called so often",
            ],
        ),
    ] {
        let page = browser.shows(
            &format!("/schedules/{id}?at={}", minute(ago)),
            &[&["Was it called at ", "Calls around "], texts].concat(),
        );
        assert!(page.find("Was it called at ") < page.find("<svg"), "the answer is not first: {page}");
    }
    browser.shows(&format!("/schedules/{id}?at=2020-01-01T10%3A00"), &["It was created at "]);
    assert_eq!(browser.get(&format!("/schedules/{id}?at=yesterday")).status, 404);
}

/// A session of the gateway that is idle reads new settings only with its next statement.
#[test]
fn a_late_call_names_the_end_of_a_stop_by_settings() {
    let (shop, gateway, _) = open();
    let browser = Browser::of(&shop, &gateway, "app", "read");
    shop.app("SELECT awty_http.schedule('http://127.0.0.1:1099/a', every => '1 s', jitter => '0')");
    let id = shop.text("SELECT id FROM awty_http.endpoint");
    let place = format!("/schedules/{id}");
    browser.comes_to_show(&place, &["Last calls", "href=\"/attempts/"]);
    let enable = |value: &str| {
        let set = format!("ALTER SYSTEM SET awty.enabled = {value}");
        shop.cluster.execute("postgres", &[&set, "SELECT pg_reload_conf()"]);
    };
    enable("off");
    let late = "SELECT count(*) > 0 FROM awty.future_job WHERE next_check_at < now() - interval '12 s'";
    shop.await_text(late, "true");
    enable("on");
    shop.await_text("SELECT count(*) > 0 FROM awty.attempt AS a WHERE a.lateness > interval '10 s'", "true");
    let page = browser.shows(&place, &["The newest late call:"]);
    assert!(page.contains("Calls began again when the database server read its settings"), "{page}");
}
