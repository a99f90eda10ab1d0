use crate::people::open;
use crate::shop::Shop;
use crate::visitor::Browser;
use awty_testkit::Cluster;

#[test]
fn a_send_that_fails_and_a_call_that_waits_are_in_the_headline() {
    let (shop, gateway, _) = open();
    let browser = Browser::of(&shop, &gateway, "app", "write");
    shop.app("SELECT awty_http.send('http://127.0.0.1:1099/order', '{\"order\": 1}')");
    browser.comes_to_show("/", &["1 thing fails", "attempt 1 failed: ", "http://127.0.0.1:1099"]);
    shop.await_text("SELECT count(*) FROM awty.future_job_history WHERE outcome = 'failed'", "1");
    browser.shows("/", &["Not yet: 1 check has ended with a problem in the last hour.", "href=\"/history\""]);
    // A call to a blocked target waits instead of failing.
    shop.app("SELECT awty_http.schedule('http://127.0.0.1:1098/waits', every => '1 s', jitter => '0', paused => true)");
    shop.app("SELECT awty.alter_target('http.app', 'http://127.0.0.1:1098', blocked_until => 'infinity')");
    shop.app(
        "SELECT awty_http.schedule('http://127.0.0.1:1098/waits', every => '1 s', jitter => '0', paused => false)",
    );
    browser.comes_to_show("/", &["http://127.0.0.1:1098/waits", "for longer than its own period", "fail"]);
}

#[test]
fn a_job_whose_last_success_is_older_than_its_period_fails() {
    let (shop, gateway, _) = open();
    shop.cluster.execute("postgres", &["GRANT CREATE ON SCHEMA public TO app"]);
    shop.app("CREATE FUNCTION tidy() RETURNS void LANGUAGE plpgsql AS $$ BEGIN IF to_regclass('broken') IS NOT NULL THEN RAISE 'no'; END IF; END $$");
    shop.app("SELECT awty.register('tidy', 'tidy', max_attempts => 1); SELECT awty.repeat('tidy', every => '1 s')");
    shop.await_text("SELECT last_success_at IS NOT NULL FROM awty.job_status WHERE job = 'tidy'", "true");
    let browser = Browser::of(&shop, &gateway, "app", "read");
    assert!(!browser.shows("/", &[]).contains("it repeats every"));
    shop.app("CREATE TABLE broken ()");
    browser.comes_to_show("/", &["it repeats every 1 s", "1 thing fails"]);
    shop.app("SELECT awty.pause('tidy')");
    assert!(!browser.shows("/", &[]).contains("it repeats every"), "a paused job is not behind");
}

#[test]
fn a_cron_expression_has_a_period_too() {
    let shop = Shop::open_on(Cluster::builder().with_movable_clock());
    let gateway = shop.gateway("one");
    let postgres = |sql: &str| shop.cluster.execute("postgres", &[sql]);
    let browser = Browser::of(&shop, &gateway, "app", "read");
    shop.app("SELECT awty.alter_target('http.app', 'http://127.0.0.1:1098', blocked_until => 'infinity')");
    shop.app("SELECT awty_http.schedule('http://127.0.0.1:1098/nightly', cron => '0 3 * * *', zone => 'UTC')");
    let due = |age: &str| {
        postgres(&format!(
            "UPDATE awty.future_job SET next_check_at = now() - interval '{age}' WHERE entity_key = '/nightly'"
        ))
    };
    due("20 s");
    assert!(!browser.shows("/", &[]).contains("for longer than its own period"));
    due("2 days");
    browser.shows(
        "/",
        &[
            "1 thing fails",
            "http://127.0.0.1:1098/nightly",
            "its call is late since then, for longer than its own period",
        ],
    );
    shop.app("SELECT awty_http.unschedule('http://127.0.0.1:1098/nightly')");
    postgres("GRANT CREATE ON SCHEMA public TO app");
    shop.app("CREATE FUNCTION tidy() RETURNS void LANGUAGE sql AS ''");
    shop.app("SELECT awty.create_calendar('leap', '{mon-sun 00:00-24:00}', 'UTC', closed => ARRAY(SELECT d::date FROM generate_series(now() - interval '9 days', now() + interval '9 days', '1 day') AS d))");
    shop.app("SELECT awty.register('tidy', 'tidy'); SELECT awty.repeat('tidy', cron => '0 3 * * *', zone => 'UTC')");
    shop.app(
        "SELECT awty.register('shut', 'tidy'); SELECT awty.repeat('shut', cron => '0 3 * * *', zone => 'UTC', calendar => 'leap')",
    );
    shop.app("SELECT awty.schedule('job', 'once', job, after => '0') FROM unnest('{tidy,shut}'::text[]) AS job");
    shop.await_text("SELECT count(last_success_at) FROM awty.job_status WHERE job IN ('tidy', 'shut')", "2");
    assert!(!browser.shows("/", &[]).contains("it repeats at"));
    postgres("ALTER SYSTEM SET awty.enabled = off");
    postgres("SELECT pg_reload_conf()");
    browser.comes_to_show("/", &["awty.enabled is off"]);
    shop.cluster.set_clock(2 * 86_400);
    let text = "it repeats at 0 3 * * *, and it has not succeeded since its last planned time";
    let page = browser.comes_to_show("/", &["1 thing fails", text]);
    assert!(!page.contains("href=\"/jobs#shut\""), "its calendar was closed: {page}");
}

#[test]
fn what_comes_has_the_open_hours_of_calendars() {
    let (shop, gateway, _) = open();
    shop.app("SELECT awty.create_calendar('always', '{mon-sun 00:00-24:00}', 'UTC')");
    shop.app("SELECT awty.create_calendar('unused', '{mon-sun 00:00-24:00}', 'UTC')");
    shop.app("SELECT awty.register('mail'); SELECT awty.repeat('mail', every => '10 min', calendar => 'always')");
    let browser = Browser::of(&shop, &gateway, "app", "read");
    for view in ["/", "/slots", "/slots?ahead=1d"] {
        let texts = ["open: always", "<g class=\"band\"><rect x=\"0\" y=\"0.0\"", "The heaviest time begins at"];
        let page = browser.comes_to_show(view, &texts);
        assert!(!page.contains("unused"), "{view}");
    }
    browser.comes_to_show("/slots", &["The heaviest five minutes", "data-label=\"Open\"><div>always</div>"]);
    browser.comes_to_show("/slots?ahead=1d", &["The heaviest hours"]);
}

#[test]
fn too_many_checks_for_a_chart_are_named_and_not_counted() {
    let (shop, gateway, _) = open();
    shop.app("SELECT awty.register('many')");
    shop.app("SELECT awty.schedule_many('e', array_agg(n::text), 'many', after => '10 min') FROM generate_series(1, 20001) AS n");
    let browser = Browser::of(&shop, &gateway, "app", "read");
    for view in ["/", "/slots"] {
        browser.shows(
            view,
            &[
                "Counting the checks of this time takes too long for this page.",
                "awty.forecast('1 hour', '5 minutes');",
            ],
        );
    }
    shop.app("SELECT awty.cancel('e', '1', 'many')");
    browser.comes_to_show("/slots", &["20\u{202f}000 checks are due."]);
}

#[test]
fn plans_of_others_hide_no_other_part_of_a_view() {
    let (shop, gateway, _) = open();
    let mut other = shop.cluster.client("postgres", "other");
    let plans = "SELECT awty.create_calendar('always', '{mon-sun 00:00-24:00}', 'UTC'); SELECT awty.register('many');
         SELECT count(awty.repeat('many', every => '1 s', zone => 'UTC', entity_name => 'e', entity_key => n::text, calendar => 'always',
             starts => now() + interval '1 min' + n * interval '1 ms')) FROM generate_series(1, 4000) AS n;
         SELECT awty.allow('many', 'app', 'read')";
    other.batch_execute(plans).unwrap();
    let browser = Browser::of(&shop, &gateway, "app", "read");
    for view in ["/", "/slots"] {
        browser.shows(view, &["Counting the checks of this time takes too long for this page."]);
    }
}

#[test]
fn a_period_of_thousands_of_years_breaks_no_view_of_another_role() {
    let (shop, gateway, _) = open();
    shop.cluster.execute("postgres", &["GRANT CREATE ON SCHEMA public TO other"]);
    let mut other = shop.cluster.client("postgres", "other");
    let plan =
        "CREATE FUNCTION yearly() RETURNS void LANGUAGE sql AS 'SELECT'; SELECT awty.register('yearly', 'yearly');
        SELECT awty.repeat('yearly', every => '100 years', zone => 'UTC'); SELECT awty.allow('yearly', 'app', 'read')";
    other.batch_execute(plan).unwrap();
    for every in ["101 years", "36526 days", "876600 hours 1 us", "178956970 years"] {
        let longer = format!("SELECT awty.repeat('yearly', every => '{every}', zone => 'UTC')");
        let refused = other.batch_execute(&longer).unwrap_err();
        let told = refused.as_db_error().map(|error| error.message().to_owned());
        assert_eq!(told.as_deref(), Some("argument \"every\" must not be longer than 36525 days"), "{every}");
    }
    shop.app("SELECT awty_http.schedule('http://127.0.0.1:1098/waits', every => '24 hours')");
    shop.app("SELECT awty.alter_target('http.app', 'http://127.0.0.1:1098', blocked_until => 'infinity')");
    // Writes periods above the limit directly into the tables, as a version without the limit may have stored them.
    shop.cluster.execute(
        "postgres",
        &[
            "UPDATE awty_internal.repetition SET every = '10000 years'",
            "UPDATE awty_http_internal.endpoint SET every = '10000 years'",
            "UPDATE awty.future_job SET next_check_at = now() - interval '1 minute' WHERE job = 'http.app'",
        ],
    );
    Browser::of(&shop, &gateway, "app", "read").shows("/", &[]);
}

#[test]
fn a_person_chooses_the_zone_of_times() {
    let (shop, gateway, _) = open();
    shop.app("SELECT awty_http.schedule('http://127.0.0.1:1099/a', every => '1 h')");
    let browser = Browser::of(&shop, &gateway, "app", "read");
    let place = format!("/schedules/{}", shop.text("SELECT id FROM awty_http.endpoint"));
    browser.shows(&place, &[" UTC</time>", "id=\"times-in\" name=\"zone\" value=\"UTC\""]);
    let chosen = browser.post("/zone", &[("zone", "asia/kolkata"), ("back", &place)]);
    assert_eq!((chosen.status, chosen.header("location")), (303, place.clone()));
    assert_eq!(chosen.header("set-cookie"), "zone=Asia/Kolkata; Path=/; Max-Age=31622400; HttpOnly; SameSite=Strict");
    let cookie = browser.cookie.replace("\r\n", "; zone=Asia/Kolkata\r\n");
    let browser = Browser { cookie, ..browser };
    let page = browser.shows(&place, &[" IST</time>", "value=\"Asia/Kolkata\""]);
    assert!(!page.contains(" UTC</time>"), "{page}");
    browser.shows("/?reload=10", &["Times are in Asia/Kolkata."]);
    let wrong = browser.post("/zone", &[("zone", "Nowhere/<b>")]);
    assert!(wrong.status == 422 && wrong.text.contains("Nowhere/&lt;b&gt;"), "{}", wrong.text);
}

#[test]
fn a_link_to_the_numbers_of_an_endpoint_stays() {
    let (shop, gateway, _) = open();
    shop.app("SELECT awty_http.schedule('http://127.0.0.1:1099/a', every => '1 s', jitter => '0')");
    shop.await_text("SELECT count(*) > 0 FROM awty.attempt", "true");
    let browser = Browser::of(&shop, &gateway, "app", "read");
    let place = format!("/schedules/{}", shop.text("SELECT id FROM awty_http.endpoint"));
    let page = browser.shows(&place, &["Last calls", "Link to these numbers"]);
    let link = page.split("href=\"").find(|part| part.contains("&amp;until=")).unwrap();
    let link = link.split('"').next().unwrap().replace("&amp;", "&");
    browser.shows(&link, &["Last calls", "Outcomes", "Not up to now."]);
    let before = browser
        .shows(&format!("{place}?until=2020-01-01T10%3A00%3A00Z"), &["Not up to now.", "No call ended in this time."]);
    assert!(!before.contains("<table"), "calls after the end are shown: {before}");
    assert_eq!(browser.get(&format!("{place}?until=then")).status, 404);
}

#[test]
fn the_last_full_hour_has_its_calls_and_their_lateness() {
    let (shop, gateway, _) = open();
    let browser = Browser::of(&shop, &gateway, "app", "read");
    assert!(!browser.shows("/", &[]).contains("Calls in the hour from"));
    // Writes statistics for the last hour and for the present hour, because a new hour may begin during the test.
    shop.cluster.execute(
        "postgres",
        &["INSERT INTO awty_http.stat (id, width, bucket, count, ok, dropped, caught_up, implausible, left_out, lateness_sum, lateness_min,
               lateness_max, lateness_steps, duration_sum, duration_steps, job, caught_up_max)
           SELECT 'http.app', '1 hour', date_trunc('hour', now(), 'UTC') - interval '1 hour' * n, 1204, 1200, 1, 2, 0, 0, '10 s', '1 ms',
               '900 ms', '{0,0,1100}'::bigint[] || array_fill(0::bigint, ARRAY[7]) || 103::bigint || array_fill(0::bigint, ARRAY[13]), '10 s',
               array_fill(0::bigint, ARRAY[24]), 'http.app', '35 s'
           FROM generate_series(0, 1) AS n"],
    );
    browser.shows(
        "/",
        &[
            "Calls in the hour from",
            "1\u{202f}200 succeeded, 3 failed, 1 dropped",
            "half up to 3 ms, 95 % up to",
            "all up to 900 ms; 2 calls were caught up after a stop, up to 35 s late",
        ],
    );
}
