use crate::client::encoded;
use crate::people::{client, open};
use crate::receiver::Receiver;
use crate::shop::{Shop, until};
use awty_testkit::postgres::Client;
use std::io::Write;
use std::net::TcpStream;

/// A change of limits must not use an advisory lock, because every role can take and keep one.
#[test]
fn no_advisory_lock_holds_up_a_change_of_limits() {
    let (shop, gateway, _app) = open();
    let tenant = client(&shop, &gateway, "tenant", "admin");
    let mut stranger = shop.cluster.client("postgres", "other");
    let key = "hashtextextended('limits of a target http.tenant https://api.example.com', 0)";
    stranger.batch_execute(&format!("SELECT pg_advisory_lock({key})")).unwrap();
    let place = format!("/v1/targets/{}", encoded("https://api.example.com"));
    let limited = tenant.ask_once("PUT", &place, "{\"concurrency\": 3}", "");
    assert_eq!(limited.status, 200, "{}", limited.text);
}

#[test]
fn who_takes_the_name_of_a_job_gets_no_secret_of_the_former_tenant() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    shop.add_tenant("bob");
    shop.secret("app", "TOKEN", "t0p\n");
    let file = shop.let_secret("app", "TOKEN", &receiver.origin());
    let gateway = shop.gateway_with("gateway", &["--config", &file]);
    let plan = "every => '1 s', jitter => '0', headers => '{\"X\": \"own\"}'";
    shop.app(&format!("SELECT awty_http.schedule('{}', {plan})", receiver.uri("/ok")));
    receiver.called("/ok", 1);
    let mut postgres = shop.cluster.superuser("postgres");
    let headers = "{\"headers\": {\"X\": \"{{secret:TOKEN}}\"}}";
    let (origin, jobs) = (receiver.origin(), "http.app");
    postgres
        .batch_execute(&format!(
            "BEGIN; SELECT awty_http.drop_tenant('app'); SET LOCAL ROLE bob;
             SELECT awty.register('{jobs}', heartbeat => '15 s', max_attempts => 0);
             SELECT awty.schedule('{origin}', '/loot', '{jobs}', after => '0', args => '{headers}');
             SELECT awty.schedule('{origin}', '/ok', '{jobs}', after => '0'); COMMIT"
        ))
        .unwrap();
    let before = receiver.seen("/ok").len();
    until("the gateway to have claimed bob's checks, or to leave them alone", || {
        let ended =
            shop.text("SELECT count(*) FROM awty.attempt WHERE job = 'http.app' AND scheduled_by::text = 'bob'");
        let looks = gateway.log().matches("these jobs are claimed").count();
        if ended == "2" || looks > 1 { Ok(()) } else { Err(format!("{ended} {}", gateway.log())) }
    });
    assert!(receiver.seen("/loot").is_empty(), "{:?}", receiver.seen("/loot")[0].headers);
    assert_eq!(receiver.seen("/ok").len(), before);
}

#[test]
fn a_list_reads_no_schedule_of_another_tenant() {
    let (shop, _gateway, app) = open();
    let many = "INSERT INTO awty_http_internal.endpoint (id, job, uri, entity_name, entity_key, every, created_by)
        SELECT 's_' || md5(n::text), 'http.tenant', 'https://many.example/' || n, 'https://many.example', '/' || n, '1 h', 'tenant'::regrole
        FROM generate_series(1, 20000) AS n";
    for uri in ["https://a.example/1", "https://a.example/2", "https://b.example/3"] {
        shop.app(&format!("SELECT awty_http.schedule('{uri}', every => '1 h', labels => '{{x}}')"));
    }
    shop.cluster.execute("postgres", &[many, "ANALYZE"]);
    let reads = "SELECT pg_stat_force_next_flush()::text || sum(seq_tup_read + idx_tup_fetch) FROM pg_stat_all_tables
        WHERE relid = 'awty_http_internal.endpoint'::regclass";
    let before: i64 = shop.text(reads).parse().unwrap();
    for (filter, found) in
        [("", 3), ("?limit=2", 2), ("?origin=https%3A%2F%2Fa.example", 2), ("?label=x", 3), ("?q=b.example", 1)]
    {
        let list = app.get(&format!("/v1/schedules{filter}"));
        assert_eq!(list.json()["items"].as_array().map(Vec::len), Some(found), "{filter}: {}", list.text);
    }
    until("the statistics of the gateway's sessions", || {
        let after: i64 = shop.text(reads).parse().unwrap();
        if after > before { Ok(()) } else { Err(after.to_string()) }
    });
    let after: i64 = shop.text(reads).parse().unwrap();
    assert!(after - before < 5_000, "{} rows were read", after - before);
}

/// In a database with encoding SQL_ASCII, a text can contain bytes that the server cannot send as UTF-8.
#[test]
fn a_row_that_is_no_utf_8_stops_no_other_tenant() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    shop.add_tenant("bob");
    let bytes = |sql: &[&str]| shop.cluster.execute("bytes", sql);
    shop.cluster.execute("postgres", &["CREATE DATABASE bytes TEMPLATE template0 ENCODING 'SQL_ASCII' LOCALE 'C'"]);
    bytes(&[
        "CREATE EXTENSION awty CASCADE",
        "CREATE EXTENSION awty_http",
        "GRANT USAGE ON SCHEMA awty, awty_http TO app, bob, gateway",
        "SELECT awty_http.add_tenant('app'), awty_http.add_tenant('bob')",
    ]);
    let role = |name: &str| -> Client {
        let mut client = shop.cluster.client("bytes", name);
        client.batch_execute("SET client_encoding = 'SQL_ASCII'; SET statement_timeout = '1min'").unwrap();
        client
    };
    let broken = "convert_from('\\xff', 'SQL_ASCII')";
    let uri = receiver.uri("/bad");
    for call in [
        format!("schedule('{uri}', '1 s', body_text => {broken})"),
        format!("schedule('{uri}', '1 s', headers => jsonb_build_object('X', {broken}))"),
        format!("schedule('{uri}', '1 s', description => {broken})"),
        format!("schedule('{uri}', '1 s', labels => ARRAY[{broken}])"),
        format!("send('{uri}', to_jsonb({broken}))"),
        format!("send('{uri}', key => {broken})"),
    ] {
        let refusal = role("bob").batch_execute(&format!("SELECT awty_http.{call}")).expect_err(&call);
        assert_eq!(refusal.code().unwrap().code(), "22021", "{call}: {refusal:?}");
    }
    let gateway = shop.gateway_at(&shop.url("gateway").replace("/postgres?", "/bytes?"), "one");
    let schedule = format!("SELECT awty_http.schedule('{}', every => '1 s', jitter => '0')", receiver.uri("/ok"));
    role("app").batch_execute(&schedule).unwrap();
    receiver.called("/ok", 1);
    // A row that the gateway cannot read must not stop the calls of other tenants.
    let (origin, text) = (receiver.origin(), format!("'{}'", receiver.origin()));
    let schedule = |key: &str, args: &str| {
        format!("SELECT awty.schedule({text}, {key}, 'http.bob', after => '0', args => {args})")
    };
    role("bob").batch_execute(&format!("SELECT awty.alter_target('http.bob', {broken}, concurrency => 1)")).unwrap();
    bytes(&[&format!(
        "INSERT INTO awty_http_internal.content VALUES ('http.bob', '{origin}', '/bad', jsonb_build_object('body_text', {broken}))"
    )]);
    role("bob").batch_execute(&schedule("'/bad'", "'{}'")).unwrap();
    let aside = "awty_gateway_jobs_set_aside_total 1\n";
    until("the job to be set aside", || {
        let figures = gateway.get("/metrics").1;
        if figures.contains(aside) { Ok(()) } else { Err(figures) }
    });
    receiver.called("/ok", receiver.seen("/ok").len() + 3);
    for sql in [schedule(&format!("'/key' || {broken}"), "'{}'"), schedule("'/args'", &format!("to_jsonb({broken})"))] {
        role("bob").batch_execute(&sql).unwrap();
    }
    receiver.called("/ok", receiver.seen("/ok").len() + 3);
    let (status, figures) = gateway.get("/metrics");
    assert!(status == 200 && figures.contains("awty_pending{job=\"http.app\"}"), "{figures}");
}

/// A client that hangs up while the gateway looks up its token must not cost a connection to the database.
#[test]
fn bogus_tokens_of_clients_that_hang_up_open_no_sessions() {
    let (shop, gateway, app) = open();
    assert_eq!(app.get("/v1/schedules").status, 200);
    let mut holder = shop.cluster.superuser("postgres");
    holder.batch_execute("BEGIN; LOCK TABLE awty_http.token IN ACCESS EXCLUSIVE MODE").unwrap();
    for number in 0..40 {
        let mut client = TcpStream::connect(gateway.address()).unwrap();
        let bogus = format!("Authorization: Bearer awty_{number:043}");
        write!(client, "GET /v1/schedules HTTP/1.1\r\nHost: x\r\n{bogus}\r\n\r\n").unwrap();
        for _ in 0..10 {
            assert_eq!(gateway.get("/livez").0, 200); // the gateway looks the token up meanwhile
        }
    }
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'gateway' AND wait_event_type = 'Lock'";
    assert_eq!(shop.text(waiting), "2", "each look-up that its client ended has left a session");
    holder.batch_execute("ROLLBACK").unwrap();
    assert_eq!(app.get("/v1/schedules").status, 200);
}

/// A client that hangs up while the gateway reads figures must not cost a connection to the database.
#[test]
fn scrapes_of_clients_that_hang_up_open_no_sessions() {
    let (shop, gateway, _app) = open();
    until("readiness", || if gateway.get("/readyz").0 == 200 { Ok(()) } else { Err(gateway.get("/readyz").1) });
    let mut holder = shop.cluster.superuser("postgres");
    holder.batch_execute("BEGIN; LOCK TABLE awty_http_internal.endpoint IN ACCESS EXCLUSIVE MODE").unwrap();
    let waiting = "SELECT count(*) FROM pg_stat_activity
        WHERE usename = 'gateway' AND wait_event_type = 'Lock' AND query ~ 'failing_since'";
    let (address, mut most) = (gateway.address_of_metrics(), String::new());
    for _ in 0..20 {
        let mut client = TcpStream::connect(&address).unwrap();
        write!(client, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        for _ in 0..10 {
            assert_eq!(gateway.get("/livez").0, 200); // the gateway reads figures meanwhile
        }
        most = most.max(shop.text(waiting));
    }
    assert_eq!(most, "1", "each scrape that its client ended has left a session");
    holder.batch_execute("ROLLBACK").unwrap();
    let figures = || gateway.get("/metrics").1;
    until("figures", || if figures().contains("awty_pending{job=\"http.app\"}") { Ok(()) } else { Err(figures()) });
}
