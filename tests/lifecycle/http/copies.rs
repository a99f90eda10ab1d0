//! A dump and its restoration, and the end of the extension.

use super::Http;
use crate::dump::{dump, restore};

#[test]
fn a_dump_has_all_of_it_and_sends_nothing_before_it_is_adopted() {
    let http = Http::open();
    http.ask("app", "SELECT awty_http.schedule('https://a.example.com/x', '1 h', labels => '{a,b}')");
    http.ask("app", "SELECT awty_http.send('https://a.example.com/y', key => 'k')");
    let token = http.ask("app", "SELECT awty_http.create_token('app', 'read', '1 d')");
    let lease = http.claim()[0];
    http.ask("gateway", &format!("SELECT awty.complete({lease})"));
    http.cluster.execute("postgres", &["SELECT awty_http_internal.roll_up(now() + interval '1 hour')"]);
    let script = dump(&http.cluster, &[]);
    http.cluster.execute("postgres", &["CREATE DATABASE copy"]);
    restore(&http.cluster, "copy", &script);
    let all = "SELECT (SELECT string_agg(e::text, '') FROM awty_http.endpoint AS e) || (SELECT string_agg(j.name || j.registered_at, '' ORDER BY j.name) FROM awty.job AS j)
        || (SELECT string_agg(n::text, '' ORDER BY n) FROM awty_http.tenant AS n) || (SELECT string_agg(t.hash::text, '') FROM awty_http.token AS t) || (SELECT string_agg(s.key, '') FROM awty_http_internal.sent AS s)
        || (SELECT string_agg(t::text, '') FROM awty_internal.target AS t)";
    assert_eq!(http.cluster.psql("copy", all), http.cluster.psql("postgres", all));
    let mut gateway = http.cluster.client("copy", "gateway");
    let claim = "SELECT FROM awty.claim('{http.app}', 'gateway', 100)";
    http.ask("app", "SELECT awty_http.send('https://a.example.com/z')");
    assert!(gateway.query(claim, &[]).unwrap().is_empty());
    http.cluster.execute("copy", &["SELECT awty.adopt()"]);
    let mut app = http.cluster.client("copy", "app");
    app.batch_execute("SELECT awty_http.send('https://a.example.com/y', key => 'k')").unwrap();
    let again = app.query("SELECT FROM awty.future_job WHERE entity_key LIKE '/y%'", &[]).unwrap();
    assert!(again.is_empty(), "the copy knows what was sent");
    app.batch_execute("SELECT awty_http.send('https://a.example.com/z', after => '0')").unwrap();
    http.cluster.await_that("a claim in the copy", awty_testkit::PATIENCE, || {
        if gateway.query(claim, &[]).unwrap().is_empty() { Err("nothing".into()) } else { Ok(()) }
    });
    let who = format!("SELECT role FROM awty_http_internal.token_of(sha256('{token}'))");
    assert_eq!(http.cluster.psql("copy", &who).trim(), "app");
}

/// A role that is gone is a number in a dump, which another cluster takes for whoever has that number there.
#[test]
fn what_belongs_to_a_role_that_is_gone_is_in_no_dump() {
    let http = Http::open();
    http.cluster.execute(
        "postgres",
        &[
            "CREATE ROLE gone LOGIN",
            "CREATE ROLE leaver LOGIN",
            "GRANT USAGE ON SCHEMA awty, awty_http TO gone, leaver",
            "SELECT awty_http.add_tenant('gone')",
            "GRANT app TO leaver",
        ],
    );
    for (role, token_of) in [("app", "app"), ("gone", "gone"), ("leaver", "app")] {
        let uri = format!("https://a.example.com/{role}");
        http.ask(role, &format!("SELECT awty_http.schedule('{uri}', '1 h')"));
        http.ask(role, &format!("SELECT awty_http.send('{uri}', key => '{role}')"));
        http.ask(role, &format!("SELECT awty_http.create_token('{token_of}', 'read', '1 d')"));
    }
    let counted =
        "INSERT INTO awty_http.stat SELECT s.id, '1 hour', date_trunc('hour', now()), 1, 1, 0, 0, 0, '0', NULL, NULL,
        array_fill(0, '{24}'), '0', NULL, NULL, array_fill(0, '{24}'), s.job
        FROM (SELECT id, job FROM awty_http.endpoint UNION ALL SELECT job, job FROM awty_http.tenant) AS s";
    http.cluster.execute("postgres", &[counted, "DROP OWNED BY gone, leaver", "DROP ROLE gone, leaver"]);
    let rows = "SELECT (SELECT string_agg(uri, ' ' ORDER BY uri) FROM awty_http.endpoint),
        (SELECT string_agg(key, ' ' ORDER BY key) FROM awty_http_internal.sent),
        (SELECT count(*) FROM awty_http.token), (SELECT count(DISTINCT id) FROM awty_http.stat)";
    let (app, leaver) = ("https://a.example.com/app", "https://a.example.com/leaver");
    let all = format!("{app} https://a.example.com/gone {leaver}|app gone leaver|3|6");
    assert_eq!(http.cluster.psql("postgres", rows).trim(), all);
    let script = dump(&http.cluster, &[]);
    http.cluster.execute("postgres", &["CREATE DATABASE copy"]);
    restore(&http.cluster, "copy", &script);
    // What the leaver has made is others', and stays.
    assert_eq!(http.cluster.psql("copy", rows).trim(), format!("{app} {leaver}|app leaver|2|4"));
}

#[test]
fn the_extension_can_be_dropped_and_made_again() {
    let http = Http::open();
    http.ask("app", "SELECT awty_http.schedule('https://a.example.com/x', '1 h')");
    http.cluster.execute("postgres", &["DROP EXTENSION awty_http"]);
    let left = "SELECT string_agg(nspname, ' ') FROM pg_namespace WHERE nspname LIKE 'awty_http%'";
    assert_eq!(http.cluster.psql("postgres", left).trim(), "");
    // The jobs and their checks stay: they are awty's.
    let jobs = "SELECT string_agg(name, ' ' ORDER BY name) FROM awty.job";
    assert_eq!(http.cluster.psql("postgres", jobs).trim(), "awty_http.roll_up http.app http.other");
    let found = http.cluster.psql("postgres", "SELECT finding || ': ' || detail FROM awty.doctor()");
    assert!(found.contains("the function of job \"awty_http.roll_up\" cannot be called"), "{found}");
    http.cluster.execute(
        "postgres",
        &["CREATE EXTENSION awty_http", "GRANT USAGE ON SCHEMA awty_http TO app", "SELECT awty_http.add_tenant('app')"],
    );
    http.ask("app", "SELECT awty_http.schedule('https://a.example.com/x', '1 h')");
    assert_eq!(http.ask("app", "SELECT count(*) FROM awty.future_job"), "1");
    http.cluster.execute(
        "postgres",
        &["DROP EXTENSION awty_http", "SELECT awty.unregister(name) FROM awty.job", "DROP EXTENSION awty"],
    );
}
