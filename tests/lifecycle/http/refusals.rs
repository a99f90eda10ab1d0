use super::{Http, refused};
use awty_testkit::postgres::error::SqlState;

#[test]
fn each_refusal_has_its_sqlstate_and_a_hint() {
    let http = Http::open();
    let mut app = http.client("app");
    let uris = [
        "ftp://x/",
        "x",
        "http://u:p@x/",
        "http://x/#a",
        "http://x/a b",
        "http://x/ä",
        "http://x/../a",
        "http://x/%2E%2e/a",
        "http://x:99999/",
        "http://x:0/",
        "http://x:22/",
        "http://127.0.0.1:22/",
        "http:///a",
        "http://x\\y/",
        "http://%78/",
        "http://x/a{b}",
        "http://x/a?b=\"c\"",
        "http://x/a?b=''c",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f.0.0.1/",
        "http://127.0.0.1./",
        "http://127.0.0.256/",
        "http://127.0.0.01/",
        "http://[::0:1]/",
        "http://[::ffff:7f00:1]/",
        "http://[1:2]/",
    ];
    for uri in uris {
        assert_eq!(refused(&mut app, &format!("SELECT awty_http.schedule('{uri}', '1 h')")), "22023", "{uri}");
    }
    let hint = app.batch_execute("SELECT awty_http.schedule('http://x/`a?b={`<', '1 h')").unwrap_err();
    assert_eq!(hint.as_db_error().unwrap().hint(), Some("Write it as 'http://x/%60a?b={`%3C'."));
    let hint = app.batch_execute("SELECT awty_http.send('http://x:22/')").unwrap_err();
    assert_eq!(hint.as_db_error().unwrap().hint(), Some("Use 80, 443, or 1024 and above."));
    for uri in [
        "http://127.0.0.1/",
        "http://255.250.199.10:80/",
        "http://[2001:DB8::1]/",
        "http://1.example/",
        "http://1.0xg/",
    ] {
        app.batch_execute(&format!("SELECT awty_http.schedule('{uri}', '1 h')")).unwrap();
    }
    let good = "'http://x/a?b={c}`d', '1 h', body_base64 => E'AAE=\\n', headers => '{\"Te-x\": \"ü\"}'";
    app.batch_execute(&format!("SELECT awty_http.schedule({good})")).unwrap();
    let long = format!("http://x/{}", "a".repeat(1100));
    assert_eq!(refused(&mut app, &format!("SELECT awty_http.schedule('{long}', '1 h')")), "54000");
    assert_eq!(refused(&mut app, "SELECT awty_http.schedule(NULL, '1 h')"), "22004");
    let fields = [
        "",
        "every => '1 h', after => '1 h'",
        "after => '1 h', catch_up => '178000000 years'",
        "after => '1 h', catch_up => '-1 s'",
        "at => now(), jitter => '400 days'",
        "every => '0'",
        "every => '1 h', method => 'TRACE'",
        "every => '1 h', headers => '[]'",
        "every => '1 h', headers => '{\"a\": 1}'",
        "every => '1 h', headers => '{\"a\": [\"b\"]}'",
        "every => '1 h', body => '1', body_text => '2'",
        "every => '1 h', timeout => '16 min'",
        "every => '1 h', connect_timeout => '1 ms'",
        "every => '1 h', timeout => '5000000 years -1800000000 days 1 min'",
        "every => '1 h', connect_timeout => '-5000000 years 1800000000 days 1 min'",
        "every => '1 h', retries => '{\"first_delay\": \"-5000000 years 1800000000 days 1 min\"}'",
        "every => '1 h', retries => '{\"max_delay\": \"5000000 years -1800000000 days 1 hour\"}'",
        "every => '1 h', max_lateness => '-5000000 years 1800000000 days 1 min'",
        "every => '1 h', retries => '[]'",
        "every => '1 h', retries => '{\"x\": 1}'",
        "every => '1 h', retries => '{\"max_attempts\": 0}'",
        "every => '1 h', retries => '{\"first_delay\": \"2 days\"}'",
        "every => '1 h', max_lateness => '0'",
        "every => '1 h', headers => '{\"Host\": \"x\"}'",
        "every => '1 h', headers => '{\"x-A\": \"b\", \"Proxy-Authorization\": \"x\"}'",
        "every => '1 h', headers => '{\"a b\": \"x\"}'",
        "every => '1 h', headers => '{\"a\": \"x\\ny\"}'",
        "every => '1 h', body_base64 => 'AB=='",
        "every => '1 h', max_lateness => '36526 days'",
        "every => '1 h', success => 'ok'",
        "every => '1 h', success => '404,299-200'",
        "every => '1 h', labels => array_fill('a'::text, '{21}')",
        "cron => '0 25 * * *', zone => 'UTC'",
        "cron => '0 9 * * *'",
        "cron => repeat('* ', 600), zone => 'UTC'",
        "at => now(), zone => repeat('a', 256)",
        "at => 'infinity'",
        "every => '1 h', ends => 'infinity'",
    ];
    let endless = ["every => 'infinity'", "after => 'infinity'", "at => now(), jitter => 'infinity'"];
    let has_endless_lengths: bool =
        http.cluster.value("postgres", "SELECT current_setting('server_version_num')::integer >= 170000");
    for field in fields.iter().chain(has_endless_lengths.then_some(&endless).into_iter().flatten()) {
        let comma = if field.is_empty() { "" } else { ", " };
        assert_eq!(
            refused(&mut app, &format!("SELECT awty_http.schedule('http://x/'{comma}{field})")),
            "22023",
            "{field}"
        );
    }
    let large = "SELECT awty_http.schedule('http://x/', '1 h', body_text => repeat('a', 300000))";
    assert_eq!(refused(&mut app, large), "54000");
    let large = "SELECT awty_http.schedule('http://x/', '1 h', headers => jsonb_build_object('a', repeat('a', 70000)))";
    assert_eq!(refused(&mut app, large), "54000");
    app.batch_execute("SELECT awty_http.schedule('http://x/', '1 h')").unwrap();
    assert_eq!(refused(&mut app, "SELECT awty_http.schedule('http://x/', '2 h', \"replace\" => false)"), "42710");
    let sends = [
        ("'http://x/', at => now(), after => '1 s'", "22023"),
        ("'http://x/', method => 'x'", "22023"),
        ("'http://x/', headers => '1'", "22023"),
        ("'http://x/', headers => '{\"Content-Length\": \"1\"}'", "22023"),
        ("'http://x/', headers => '{\"a\": 1}'", "22023"),
        ("'http://x/', headers => '{\"a\": [\"b\"]}'", "22023"),
        ("'http://x/', headers => jsonb_build_object('a', repeat('a', 70000))", "54000"),
        ("'http://x/', key => 'k', at => 'infinity'", "22023"),
        ("'http://x/', key => ''", "22023"),
        ("'http://x/', to_jsonb(repeat('a', 300000))", "54000"),
        ("'x'", "22023"),
        ("'http://x:22/'", "22023"),
    ];
    for (send, code) in sends {
        assert_eq!(refused(&mut app, &format!("SELECT awty_http.send({send})")), code, "{send}");
    }
    let tokens = [
        ("'nobody', 'read', '1 d'", "42704"),
        ("'other', 'read', '1 d'", "42501"),
        ("'app', 'all', '1 d'", "22023"),
        ("'app', 'read', '0'", "22023"),
        ("'app', 'read', '3661 days'", "22023"),
        ("'app', 'read', '300000 years'", "22023"),
        ("'app', 'read', '120000 months -3599999 days'", "22023"),
        ("'app', 'read', '-1000 months 30001 days'", "22023"),
        ("'app', 'read', NULL", "22023"),
    ];
    for (token, code) in tokens {
        assert_eq!(refused(&mut app, &format!("SELECT awty_http.create_token({token})")), code, "{token}");
    }
    assert_eq!(refused(&mut app, "SELECT awty_http.drop_token(42)"), "42704");
    assert_eq!(refused(&mut app, "SELECT awty_http.add_tenant('other')"), "42501");
    let mut gateway = http.client("gateway");
    assert_eq!(refused(&mut gateway, "SELECT awty_http.schedule('http://x/', '1 h')"), "42501");
    // An ordinary role must not be able to lock the shared tables, because a lock would stop the calls of all roles.
    for table in ["endpoint", "content", "sent"]
        .map(|table| format!("awty_http_internal.{table}"))
        .into_iter()
        .chain(["awty_http.token", "awty_http.stat"].map(str::to_owned))
    {
        for mode in ["SHARE", "SHARE ROW EXCLUSIVE", "EXCLUSIVE", "ACCESS EXCLUSIVE"] {
            let lock = format!("BEGIN; LOCK TABLE {table} IN {mode} MODE NOWAIT");
            let error = app.batch_execute(&lock).expect_err(&lock);
            assert_eq!(error.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "{lock}: {error:?}");
            app.batch_execute("ROLLBACK").unwrap();
        }
    }
}

#[test]
fn sizes_are_counted_in_bytes() {
    let http = Http::open();
    let mut app = http.client("app");
    app.batch_execute("SET bytea_output = 'escape'; SELECT awty_http.schedule('http://x/', '1 h', body_base64 => encode(decode(repeat('00', 200000), 'hex'), 'base64'))").unwrap();
    let id = http.ask("app", "SELECT id FROM awty_http.endpoint");
    assert_eq!(refused(&mut app, &format!("SELECT awty_http_internal.pause('{id}', repeat('a', 1025))")), "54000");
}

/// Each claim reads the body as JSON, with six bytes for each control character.
#[test]
fn a_body_counts_as_its_json() {
    let http = Http::open();
    let schedule = |body: &str| format!("SELECT awty_http.schedule('http://a/', '1 h', body_text => {body})");
    assert_eq!(refused(&mut http.client("app"), &schedule("repeat(chr(1), 262144)")), "54000");
    http.ask("app", &schedule("repeat('x', 262144)"));
}
