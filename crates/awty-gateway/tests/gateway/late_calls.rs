use crate::client::encoded;
use crate::people::open;
use crate::shop::Shop;
use crate::visitor::Browser;

/// Adds a call of the endpoint whose URI ends in `path`. `slot` and `at` are SQL expressions.
fn add_call(shop: &Shop, path: &str, slot: &str, at: &str) {
    let call = format!(
        "INSERT INTO awty_internal.attempt (lease, id, job, entity_name, entity_key, first_check_at, next_check_at, check_count, attempt, held, scheduled_by,
             scheduled_at, key, leased_at, expires_at, deadline, worker, ended_at, lateness, ok, result, role)
         SELECT nextval('awty.future_job_id_seq'), 1, e.job, e.entity_name, e.entity_key, {slot}, {slot}, 1, 1, false, 'app', {slot}, 'k', {at}, {at}, {at}, 'one',
             {at} + interval '20 ms', '1 s', true, '{{\"status\": 200}}', 'app'
         FROM awty_http_internal.endpoint AS e WHERE e.uri LIKE '%/{path}'"
    );
    shop.cluster.execute("postgres", &[&call]);
}

#[test]
fn a_late_call_says_what_was_stopped_meanwhile() {
    let (shop, gateway, _) = open();
    shop.app(
        "SELECT awty.pause('http.app');
         SELECT awty_http.schedule(uri, every => '5 s') FROM unnest('{http://127.0.0.1:1099/ten,http://127.0.0.1:1099/near,http://127.0.0.1:1098/far}'::text[]) AS uri",
    );
    let postgres = |sql: &str| shop.cluster.execute("postgres", &[sql]);
    postgres("UPDATE awty_http_internal.endpoint SET created_at = now() - interval '1 day'");
    let called = |path: &str, slot: &str, at: &str| add_call(&shop, path, slot, at);
    let (slot, at) =
        ("(date_trunc('hour', now()) - interval '1 hour')", "(date_trunc('hour', now()) - interval '3565 s')");
    let browser = Browser::of(&shop, &gateway, "app", "read");
    let life = "/entity?name=http%3A%2F%2F127.0.0.1%3A1099&key=%2Ften";
    let schedule = format!("/schedules/{}", shop.text("SELECT id FROM awty_http.endpoint WHERE uri LIKE '%/ten'"));
    browser.shows(life, &["No call has ended"]);
    called("ten", slot, at);
    let meanwhile = "(date_trunc('hour', now()) - interval '3590 s')";
    for (path, sentence) in [
        (None, "No other endpoint was called meanwhile, so all calls had stopped"),
        (Some("far"), "Endpoints of other targets were called meanwhile, and none of this target"),
        (Some("near"), "Other endpoints of its target were called meanwhile, so this schedule itself"),
    ] {
        if let Some(path) = path {
            called(path, meanwhile, meanwhile);
        }
        for view in [life, &schedule] {
            let page = browser.shows(view, &["35 s late", " came 35 s late. ", sentence]);
            let place = |text: &str| page.find(text).unwrap_or(usize::MAX);
            assert!(place(sentence) < place("<svg").min(place("Last calls")), "{view}: the cause is not first: {page}");
        }
    }
    // Another endpoint of the job was called during the delay. Therefore the job was not paused, and the page must not
    // name a pause of the job.
    postgres(&format!("UPDATE awty.job SET resumed_at = {at} - interval '2 s'"));
    postgres(&format!("UPDATE awty_http_internal.endpoint SET changed_at = {at} - interval '1 s'"));
    browser.shows(&schedule, &[" came 35 s late. ", "The schedule was paused or changed until"]);
    postgres(&format!("DELETE FROM awty_internal.attempt WHERE leased_at = {meanwhile}"));
    browser.shows(&schedule, &[" came 35 s late. ", "Its job was paused until"]);
}

const SLOT: &str = "(date_trunc('hour', now()) - interval '1 hour')";
const URI: &str = "http://127.0.0.1:1099/ten";

/// Writes a time as the page's form sends it.
fn asked(shop: &Shop, time: &str) -> String {
    shop.text(&format!("SELECT to_char({time} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI')"))
}

/// Schedules an endpoint that existed yesterday. It is not called during the test.
fn schedule(shop: &Shop) -> String {
    shop.app(&format!(
        "SELECT awty_http.schedule('{URI}', every => '1 min', jitter => '0', starts => now() + interval '1 day')"
    ));
    let old = "UPDATE awty_http_internal.endpoint SET created_at = now() - interval '1 day', changed_at = now() - interval '1 day', starts = NULL";
    shop.cluster.execute("postgres", &[old]);
    shop.text("SELECT id FROM awty_http.endpoint")
}

#[test]
fn a_late_or_missing_call_names_the_block_of_its_target() {
    let (shop, gateway, _) = open();
    let id = schedule(&shop);
    shop.app("SELECT awty.alter_target('http.app', 'http://127.0.0.1:1099', blocked_until => 'infinity', note => 'maintenance')");
    shop.app("SELECT awty.alter_target('http.app', 'http://127.0.0.1:1099', blocked_until => '-infinity')");
    let blocked = |from: &str, until: &str| {
        let block = format!(
            "UPDATE awty_internal.target SET blocked_at = {SLOT} + interval '{from}', blocked_until = {SLOT} + interval '{until}' WHERE target <> ''"
        );
        shop.cluster.execute("postgres", &[&block]);
    };
    let called = |slot: &str, at: &str| {
        add_call(&shop, "ten", &format!("{SLOT} + interval '{slot}'"), &format!("{SLOT} + interval '{at}'"));
    };
    let browser = Browser::of(&shop, &gateway, "app", "read");
    let (view, then) = (format!("/schedules/{id}"), asked(&shop, SLOT));
    let past = format!("{view}?at={}", encoded(&then));
    let (block, by) = ("The target http://127.0.0.1:1099 was blocked from ", " by app: “maintenance”.");
    called("-1 min", "-1 min");
    called("0", "35 s");
    blocked("-50 s", "34 s");
    for place in ["/entity?name=http%3A%2F%2F127.0.0.1%3A1099&key=%2Ften", &view, &past] {
        browser.shows(place, &["35 s late", block, by]);
    }
    blocked("5 s", "34 s");
    browser.shows(&past, &[block, by]);
    blocked("20 s", "34 s");
    browser.shows(&past, &["The target http://127.0.0.1:1099 was blocked until ", by]);
    for (from, until) in [("-50 s", "0"), ("20 s", "22 s"), ("-50 s", "10 min")] {
        blocked(from, until);
        let page = browser.shows(&past, &["35 s late"]);
        assert!(!page.contains(" was blocked "), "from {from} until {until}: {page}");
    }
    shop.cluster.execute("postgres", &[&format!("DELETE FROM awty_internal.attempt WHERE first_check_at = {SLOT}")]);
    called("5 min", "5 min 2 s");
    blocked("-50 s", "5 min");
    browser.shows(&past, &["</span> No.</span> The call before was at ", block, by]);
    blocked("-50 s", "-10 s");
    assert!(!browser.shows(&past, &["</span> No.</span>"]).contains(" was blocked "), "the block had ended before");
    let stops = format!("SELECT awty_http_internal.stops('{id}', '-infinity') IS NULL");
    let hidden: bool = shop.cluster.client("postgres", "tenant").query_one(&stops, &[]).unwrap().get(0);
    assert!(hidden, "another tenant reads the block");
}

#[test]
fn a_missed_call_is_found_in_two_steps_from_each_view() {
    let (shop, gateway, _) = open();
    let id = schedule(&shop);
    let browser = Browser::of(&shop, &gateway, "app", "read");
    let why = browser.shows("/why", &["This view is about now.", "action=\"/entity\"", "name=\"q\"", "name=\"at\""]);
    assert!(why.find("This view is about now.") < why.find("From the server to a run"), "{why}");
    browser.shows("/", &["Was an endpoint not called earlier?", "href=\"/why\""]);
    let then = asked(&shop, SLOT);
    let found = browser.get(&format!("/entity?q={}&at={}", encoded(URI), encoded(&then)));
    let past = format!("/schedules/{id}?at={}", then.replace(':', "%3A"));
    assert_eq!((found.status, found.header("location")), (303, past));
    browser.shows(&found.header("location"), &["Was it called at ", "</span> No.</span>"]);
    let life = browser.get(&format!("/entity?q={}", encoded(URI))).header("location");
    browser.shows(&life, &[&format!("action=\"/schedules/{id}\""), "name=\"at\""]);
    let unknown = browser.get("/entity?q=http%3A%2F%2F127.0.0.1%3A1099%2Fnone&at=2026-11-26T10%3A00");
    assert!(unknown.header("location").starts_with("/entity?name="), "{}", unknown.text);
}

#[test]
fn a_paused_schedule_says_since_when_and_by_whom() {
    let (shop, gateway, _) = open();
    let id = schedule(&shop);
    let browser = Browser::of(&shop, &gateway, "app", "write");
    let view = format!("/schedules/{id}");
    let by = || shop.text("SELECT held_by::text || coalesce(' ' || note, '') FROM awty_internal.hold");
    assert_eq!(browser.post(&format!("{view}/pause"), &[("note", "lunch; SELECT awty.adopt(); --")]).status, 303);
    assert_eq!(by(), "app lunch; SELECT awty.adopt(); --");
    let note =
        " by app: &quot;lunch; SELECT awty.adopt(); --&quot;</p><pre class=\"command\"><code>SELECT awty.release(";
    browser.shows(&view, &["the check is held since ", note]);
    let earlier = format!("UPDATE awty_internal.hold SET held_at = {SLOT} - interval '20 s'");
    shop.cluster.execute("postgres", &[&earlier]);
    let then = asked(&shop, SLOT);
    let sentence = "This schedule is paused since ";
    browser.shows(
        &format!("{view}?at={}", encoded(&then)),
        &["</span> No.</span>", sentence, " by app: “lunch; SELECT awty.adopt(); --”."],
    );
    assert_eq!(browser.post(&format!("{view}/resume"), &[]).status, 303);
    assert!(!browser.shows(&view, &[]).contains("held since"), "the schedule is not paused");
    shop.app(&format!(
        "SELECT awty_http.schedule('{URI}', every => '1 h', starts => now() + interval '1 day', paused => true)"
    ));
    assert_eq!(by(), "app");
}
