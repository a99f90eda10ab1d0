use crate::people::{is, open, problem};
use crate::receiver::Receiver;
use crate::shop::{Shop, until};
use crate::visitor::Browser;

/// Maximum memory of the gateway in KiB. Without the gateway's limits, one check of this test would take 140 MB.
const MOST: u64 = 120 * 1024;

#[test]
fn a_small_row_makes_no_large_request() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    shop.secret("app", "TOKEN", &"a".repeat(8_000));
    let file = shop.let_secret("app", "TOKEN", &receiver.origin());
    let gateway = shop.gateway_with("gateway", &["--config", &file]);
    let send = |path: &str, headers: &str| {
        let args =
            format!("jsonb_build_object('headers', {headers}, 'retries', jsonb_build_object('max_attempts', 1))");
        let (origin, job) = (receiver.origin(), shop.job());
        shop.app(&format!("SELECT awty.schedule('{origin}', '{path}#1', {job}, after => '0', args => {args})"));
    };
    let times = |count: u32| format!("jsonb_build_object('X-A', repeat('{{{{secret:TOKEN}}}}', {count}))");
    for number in 0..6 {
        send(&format!("/many/{number}"), &times(60_000));
    }
    send("/seventeen", &times(17));
    send("/nine", &times(9)); // 72,000 bytes
    send("/eight", &times(8));
    let seen = receiver.called("/eight", 1);
    assert_eq!(seen[0].headers["x-a"].len(), 64_000);
    shop.await_text("SELECT count(*) FROM awty.attempt WHERE message LIKE '%more than 16 references to secrets%'", "7");
    shop.await_text(
        "SELECT count(*) FROM awty.attempt WHERE message LIKE '%the headers have more than 65536 bytes%'",
        "1",
    );
    shop.await_text(&format!("SELECT count(*) FROM awty.future_job WHERE job = {}", shop.job()), "0");
    assert!(["/many/0", "/seventeen", "/nine"].iter().all(|path| receiver.seen(path).is_empty()));
    let most = gateway.most_memory();
    assert!(most < MOST, "it has held {most} KiB");
}

/// 6,000 short headers fit in 64 KiB. A list of such schedules would need fourteen times the memory of their text.
#[test]
fn more_headers_than_a_call_can_have_are_refused_when_they_are_written() {
    let shop = Shop::open();
    let with = |count: usize, function: &str| {
        let headers = format!("(SELECT jsonb_object_agg('x' || n, '') FROM generate_series(1, {count}) AS n)");
        let call = format!("SELECT awty_http.{function}, headers => {headers})");
        shop.cluster.client("postgres", "app").batch_execute(&call).err()
    };
    for function in ["schedule('http://a.example/', every => '1 h'", "send('http://a.example/'"] {
        assert!(with(1_000, function).is_none(), "{function}");
        let error = with(1_001, function).unwrap();
        let error = error.as_db_error().unwrap();
        assert_eq!((error.code().code(), error.hint()), ("54000", Some("Send fewer headers.")), "{}", error.message());
    }
}

#[test]
fn no_call_takes_longer_than_the_setting_max_timeout() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    let _gateway = shop.gateway_with("gateway", &["--max-timeout", "1 s"]);
    let uri = receiver.uri("/hang");
    shop.app(&format!(
        "SELECT awty_http.schedule('{uri}', after => '0', timeout => '15 min', retries => '{{\"max_attempts\": 1}}')"
    ));
    shop.await_text(
        "SELECT string_agg(message, ',') FROM awty.attempt",
        "timeout: no complete answer within 1s (sent, no answer)",
    );
}

/// The values of such a body would take 130 times the memory of its text.
#[test]
fn bodies_of_many_small_objects_take_little_memory() {
    let (_shop, gateway, client) = open();
    let nested = format!("{}0{},", "{\"\":".repeat(118), "}".repeat(118));
    let body = format!("{{\"uri\": \"http://127.0.0.1:1099/\", \"body\": [{}0]}}", nested.repeat(720));
    // On a busy machine, a statement may run into its timeout before it has read the body.
    let refusal = || match problem(&client.ask("POST", "/v1/sends", &body)) {
        (504, problem) => Err(problem),
        refused => Ok(refused),
    };
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| assert_eq!(until("a refusal", refusal), is(413, "too-large")));
        }
    });
    let most = gateway.most_memory();
    assert!(most < MOST, "it has held {most} KiB");
}

#[test]
fn a_refusal_shows_the_ends_of_a_long_text_only() {
    let (shop, gateway, _) = open();
    let browser = Browser::of(&shop, &gateway, "app", "write");
    let long = "\"".repeat(5_000);
    for (path, name) in [("/entity/hold", "until"), ("/zone", "zone")] {
        let refused = browser.post(path, &[("name", "a"), ("key", "b"), (name, &long)]);
        assert!(refused.status == 422 && refused.text.len() < 8_000, "{path}: {} bytes", refused.text.len());
    }
}

fn watch_by_long_expressions(shop: &Shop, mark: char, times: u32) {
    shop.cluster.execute("postgres", &["CREATE SCHEMA own AUTHORIZATION app"]);
    shop.app(&format!(
        "CREATE TABLE own.orders (id bigint PRIMARY KEY, at timestamptz NOT NULL, s text);
         SELECT awty.watch('own.orders', since => 'at', until => format('s = %L', repeat('{mark}', {times})), within => '1 s', rule => 'rule ' || n)
         FROM generate_series(1, 20) AS n"
    ));
}

/// A page shows the command that repairs a stopped rule. This command contains the rule's expressions, which can be
/// very long. The page must stay small.
#[test]
fn long_expressions_of_rules_make_no_large_view() {
    let (shop, gateway, _) = open();
    watch_by_long_expressions(&shop, '<', 90000);
    let browser = Browser::of(&shop, &gateway, "app", "read");
    let rules = browser.shows("/rules", &["rule 20", "…"]);
    assert!(rules.len() < 500_000, "{} bytes", rules.len());
    shop.cluster.execute(
        "postgres",
        &["ALTER EVENT TRIGGER awty_refuse_drop DISABLE", "ALTER TABLE own.orders DROP COLUMN s CASCADE"],
    );
    let why = browser.shows("/why", &["has stopped"]);
    assert!(why.len() < 500_000, "{} bytes", why.len());
}

/// The remedy of such a rule is a call of `awty.watch()` with its expressions. A page needs six bytes for a quotation
/// mark.
#[test]
fn long_remedies_make_no_large_view() {
    let (shop, gateway, _) = open();
    watch_by_long_expressions(&shop, '"', 9000);
    let drop =
        "SELECT format('DROP TRIGGER %I ON own.orders', tgname) FROM pg_trigger WHERE tgrelid = 'own.orders'::regclass";
    let drops: Vec<String> = {
        let rows = shop.cluster.superuser("postgres").query(drop, &[]).unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    };
    shop.app(&drops.join(";"));
    let browser = Browser::of(&shop, &gateway, "app", "read");
    let why = browser.shows("/why", &["has stopped"]);
    assert!(why.len() < 500_000, "{} bytes", why.len());
    let home = browser.shows("/", &["has stopped"]);
    assert!(home.len() < 50_000, "{} bytes", home.len());
}

/// A role writes 4,096 bytes as the message of a failure, and hundreds of findings repeat such messages.
#[test]
fn long_messages_make_no_large_view() {
    let (shop, gateway, _) = open();
    shop.app(
        "SELECT awty.register('own'), awty.schedule_many('t', array_agg(n::text), 'own', after => '0') FROM generate_series(1, 100) AS n",
    );
    shop.await_text("SELECT bool_and(next_check_at <= now())::text FROM awty.future_job WHERE job = 'own'", "true");
    shop.app(
        "SELECT awty.fail(lease, lpad((lease % 10)::text, 4096, '\"'), final => true) FROM awty.claim('{own}', 'worker', 100)",
    );
    let browser = Browser::of(&shop, &gateway, "app", "read");
    let why = browser.shows("/why", &["own"]);
    assert!(why.len() < 100_000, "{} bytes", why.len());
}

/// A tenant may claim its own calls, and store 1 MiB as the result of each.
#[test]
fn large_results_of_calls_make_no_large_view() {
    results_make_no_large_view("jsonb_build_object('note', repeat('a', 1000000))");
}

/// A result of less than 16 KiB may need more than a megabyte in the gateway if it is nested.
#[test]
fn nested_results_of_calls_make_no_large_view() {
    results_make_no_large_view(
        "jsonb_build_object('phases', ('[' || repeat(repeat('{\"\":', 100) || 'null' || repeat('}', 100) || ',', 25) || '0]')::jsonb)",
    );
}

fn results_make_no_large_view(result: &str) {
    let (shop, gateway, client) = open();
    shop.app(
        "SELECT awty_http.schedule('http://127.0.0.1:1099/' || n, every => '1 h') FROM generate_series(1, 120) AS n",
    );
    let attempts = format!(
        "INSERT INTO awty_internal.attempt (lease, id, job, entity_name, entity_key, first_check_at, next_check_at, check_count,
             attempt, held, scheduled_by, scheduled_at, key, leased_at, expires_at, deadline, worker, ended_at, lateness, ok, result, role)
         SELECT row_number() OVER (), row_number() OVER (), e.job, e.entity_name, e.entity_key, now(), now(), 0,
             1, false, 'app', now(), 'key', now(), now(), now(), 'worker', now(), '0', true, {result}, 'app'
         FROM awty_http.endpoint AS e CROSS JOIN generate_series(1, CASE e.entity_key WHEN '/1' THEN 120 ELSE 1 END) AS n"
    );
    shop.cluster.execute("postgres", &[&attempts]);
    let place = format!("/v1/schedules/{}", shop.text("SELECT id FROM awty_http.endpoint WHERE entity_key = '/1'"));
    for (path, call) in
        [("/v1/schedules?limit=500", "/items/7/last/at"), (&format!("{place}/attempts?limit=500"), "/items/7/at")]
    {
        let view = client.get(path);
        let items = view.json()["items"].as_array().map(Vec::len);
        assert!(items >= Some(120) && view.json().pointer(call).is_some(), "{path}: {}", view.text);
    }
    let most = gateway.most_memory();
    assert!(most < MOST, "it has held {most} KiB");
}
