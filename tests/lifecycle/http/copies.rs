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
    let all = "SELECT (SELECT string_agg(e::text, '') FROM awty_http.endpoint AS e) || (SELECT string_agg(j.job || j.registered_at, '' ORDER BY j.job) FROM awty.job AS j)
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

const ROWS: &str = "SELECT string_agg(concat(c.oid::regclass, ' ', (xpath('/row/n/text()', query_to_xml(
        format('SELECT count(*) AS n FROM %s', c.oid::regclass), false, true, '')))[1]), ', ' ORDER BY c.oid::regclass::text)
    FROM pg_extension AS e CROSS JOIN LATERAL unnest(e.extconfig) AS t (oid) JOIN pg_class AS c ON c.oid = t.oid
    WHERE c.relkind IN ('r', 'p')";

#[test]
fn whoever_may_dump_has_every_row_of_every_table() {
    let http = Http::open();
    http.cluster.execute(
        "postgres",
        &[
            "CREATE ROLE landlord LOGIN",
            "ALTER DATABASE postgres OWNER TO landlord",
            "CREATE ROLE backup LOGIN IN ROLE pg_read_all_data",
        ],
    );
    for sql in [
        "SELECT awty_http.schedule('https://a.example.com/x', '1 h', labels => '{a,b}')",
        "SELECT awty_http.send('https://a.example.com/y', key => 'k')",
        "SELECT awty_http.create_token('app', 'read', '1 d')",
        "SELECT awty.alter_target('http.app', 'https://a.example.com', concurrency => 3)",
        "CREATE TABLE app.orders (id bigint PRIMARY KEY, at timestamptz NOT NULL, s text)",
        "SELECT awty.watch('app.orders', since => 'at', until => $$s = 'y'$$, within => '1 s')",
        "INSERT INTO app.orders VALUES (1, now() - interval '1 h')",
        "GRANT USAGE ON SCHEMA app TO landlord",
        "GRANT SELECT ON ALL TABLES IN SCHEMA app TO landlord",
    ] {
        http.cluster.client("postgres", "app").batch_execute(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
    let lease = http.claim()[0];
    http.ask("gateway", &format!("SELECT awty.complete({lease})"));
    http.cluster.await_sql("postgres", "the alert", "SELECT count(*) = 1 FROM awty.alert");
    http.cluster.execute("postgres", &["SELECT awty_http_internal.roll_up(now() + interval '1 hour')"]);
    http.cluster.execute("postgres", &["ALTER SYSTEM SET awty.enabled = off", "SELECT pg_reload_conf()"]);
    http.cluster.await_sql("postgres", "the workers to leave", "SELECT NOT enabled AND workers = 0 FROM awty.status");
    let source = http.cluster.psql("postgres", ROWS);
    for table in [
        "awty.alert 1",
        "awty.rule 1",
        "awty_internal.rule_function 3",
        "awty_http.token 1",
        "awty_http_internal.sent 1",
        "awty_http_internal.content 1",
    ] {
        assert!(source.contains(table), "{table} is not in {source}");
    }
    for (role, option) in
        [("postgres", "--verbose"), ("landlord", "--enable-row-security"), ("backup", "--enable-row-security")]
    {
        let script = dump(&http.cluster, &["-U", role, option]);
        http.cluster.execute("postgres", &["CREATE DATABASE copy"]);
        restore(&http.cluster, "copy", &script);
        assert_eq!(http.cluster.psql("copy", ROWS), source, "by {role}");
        http.cluster.execute("copy", &["SELECT awty.adopt()"]);
        assert!(!http.cluster.value::<bool>("copy", "SELECT database_held FROM awty.status"));
        http.cluster.execute("postgres", &["DROP DATABASE copy WITH (FORCE)"]);
    }
}

/// In another cluster, a dropped role's OID may belong to a different role.
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
        "INSERT INTO awty_http.stat SELECT s.id, '1 hour', date_trunc('hour', now()), 1, 1, 0, 0, 0, 0, '0', NULL, NULL,
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
    assert_eq!(http.cluster.psql("copy", rows).trim(), format!("{app} {leaver}|app leaver|2|4"));
}

#[test]
fn the_extension_can_be_dropped_and_made_again() {
    let http = Http::open();
    http.ask("app", "SELECT awty_http.schedule('https://a.example.com/x', '1 h')");
    http.cluster.execute("postgres", &["DROP EXTENSION awty_http"]);
    let left = "SELECT string_agg(nspname, ' ') FROM pg_namespace WHERE nspname LIKE 'awty_http%'";
    assert_eq!(http.cluster.psql("postgres", left).trim(), "");
    let jobs = "SELECT string_agg(job, ' ' ORDER BY job) FROM awty.job";
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
        &["DROP EXTENSION awty_http", "SELECT awty.unregister(job) FROM awty.job", "DROP EXTENSION awty"],
    );
}
