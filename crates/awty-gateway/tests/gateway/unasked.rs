//! A role gives another role rights that the other role did not ask for.

use crate::client::encoded;
use crate::people::{client, open, pages};
use crate::shop::Shop;
use crate::visitor::watch;
use awty_gateway::db::views;
use serde_json::Value;

/// Gives the role `app` the right to read rows of the role `aaa`. In each list, these rows would come first by the
/// order of names or times.
fn give_rights(shop: &Shop) {
    shop.add_tenant("aaa");
    shop.cluster.execute("postgres", &["GRANT CREATE ON SCHEMA public TO aaa"]);
    watch(shop);
    shop.app(
        "CREATE FUNCTION tidy() RETURNS void LANGUAGE plpgsql AS $$ BEGIN IF to_regclass('broken') IS NOT NULL THEN RAISE 'no'; END IF; END $$;
         SELECT awty.register('tidy', 'tidy', max_attempts => 1), awty.repeat('tidy', every => '1 s');
         SELECT awty.register('mine'), awty.schedule('user', '1', 'mine', after => '1 day')",
    );
    let own =
        "awty_http.schedule('http://127.0.0.1:1099/own', every => '20 hours', starts => now() + interval '10 hours')";
    shop.app(&format!("SELECT {own}, awty.alter_target('http.app', 'http://z.example', blocked_until => 'infinity')"));
    let mut hostile = shop.cluster.client("postgres", "aaa");
    let rows = format!(
        "CREATE TABLE aa (id bigint PRIMARY KEY, status text NOT NULL DEFAULT 'NEW', due timestamptz NOT NULL);
         SELECT awty.watch('aa', until => $$status <> 'NEW'$$, due => 'due', existing => 'all');
         CREATE FUNCTION fails() RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$;
         SELECT awty.register('fails', 'fails', max_attempts => 1), awty.repeat('fails', every => '1 s');
         SELECT awty.register('A'), awty.schedule('user', '0', 'A', after => '1 day');
         SELECT {own}, awty.alter_target('http.aaa', 'http://a.example', blocked_until => 'infinity');
         SELECT awty.allow(job, 'app', 'read') FROM unnest('{{A,aa,fails,http.aaa}}'::text[]) AS job"
    );
    hostile.batch_execute(&rows).unwrap();
    shop.await_text("SELECT last_success_at IS NOT NULL FROM awty.job_status WHERE job = 'tidy'", "true");
    shop.app("CREATE TABLE broken ()");
    let failed = "SELECT bool_and(last_failure_at IS NOT NULL) FROM awty.job_status WHERE job IN ('fails', 'tidy')";
    shop.await_text(failed, "true");
    shop.app("SELECT awty.pause('mine')");
    hostile.batch_execute("SELECT awty.pause('A')").unwrap();
    shop.cluster.execute("postgres", &["ALTER SYSTEM SET awty.enabled = off", "SELECT pg_reload_conf()"]);
    shop.await_text("SELECT enabled FROM awty.status", "false");
    shop.cluster.execute(
        "postgres",
        &[
            "INSERT INTO awty.alert (rule, entity_name, entity_key, level, due_at, cleared_at, role)
             SELECT r.rule, r.rule, '100', 1, CASE WHEN r.rule = 'aa' THEN '2020-01-01' ELSE now() END, c.at, r.role
             FROM awty.rule AS r, (VALUES (NULL), (now() + interval '1 min')) AS c (at)",
            "UPDATE awty.alert SET cleared_at = now() WHERE rule = 'orders' AND cleared_at IS NOT NULL",
            "INSERT INTO awty.future_job (job, entity_name, entity_key, first_check_at, next_check_at, scheduled_by, scheduled_at)
             SELECT r.rule, r.rule, '200', now(), now() + CASE WHEN r.rule = 'aa' THEN interval '1 min' ELSE interval '30 min' END, r.role, now()
             FROM awty.rule AS r",
            "UPDATE awty.future_job SET attempt = 1, next_check_at = CASE job WHEN 'A' THEN '2100-01-01 00:10+00' ELSE '2100-01-01 00:30+00' END::timestamptz
             WHERE job IN ('A', 'mine')",
            "INSERT INTO awty_internal.check_stat (check_id, runs, run_time, failed_at)
             SELECT id, 1, '1 s', CASE job WHEN 'A' THEN now() ELSE '2020-01-01' END FROM awty.future_job WHERE job IN ('A', 'mine')",
            "UPDATE awty_http_internal.endpoint SET failing_since = CASE job WHEN 'http.aaa' THEN '2020-01-01' ELSE now() END",
        ],
    );
}

#[test]
fn unasked_rights_push_no_row_of_the_visitor_off_a_list() {
    let shop = Shop::open();
    give_rights(&shop);
    let id = shop.text("SELECT id FROM awty_http.endpoint WHERE job = 'http.app'");
    let cases: [(&str, &str, &[&str], &str); 13] = [
        ("jobs", views::JOBS, &["1"], "\"job\":\"http.app\""),
        ("rules", views::RULES, &["1"], "\"rule\":\"orders\""),
        ("late rows", views::OPEN, &["1", "1"], "\"rule\":\"orders\""),
        ("alerts", views::OPEN, &["0", "1"], "\"rule\":\"orders\""),
        ("cleared", views::CLEARED, &["1"], "\"rule\":\"orders\""),
        ("soon", views::SOON, &["1"], "\"rule\":\"orders\""),
        ("failing", views::FAILING, &["1"], "\"job\":\"mine\""),
        ("endpoints", views::ENDPOINTS, &["1"], &id),
        ("behind", views::BEHIND, &["1", "'1 s'"], "\"job\":\"tidy\""),
        ("named", views::NAMED, &["'user'", "1"], "\"job\":\"mine\""),
        ("in a slot", views::IN_SLOT, &["'2100-01-01 00:00+00'", "'1 hour'", "1"], "\"job\":\"mine\""),
        ("schedule", views::SCHEDULE_OF, &["'http://127.0.0.1:1099'", "'/own'"], &id),
        ("stops", views::STOPS, &[], "\"paused\":\"mine\""),
    ];
    let mut app = shop.cluster.client("postgres", "app");
    let mut first = |sql: &str, values: &[&str]| -> String {
        let filled = values
            .iter()
            .enumerate()
            .fold(sql.to_owned(), |sql, (n, value)| sql.replace(&format!("${}", n + 1), value));
        let rows = app.query(&filled, &[]).unwrap_or_else(|error| panic!("{filled}: {error:?}"));
        rows.first().map(|row| row.get::<_, Value>(0).to_string()).unwrap_or_default()
    };
    let found = cases.map(|(name, sql, values, own)| (name, first(sql, values), own));
    let pushed_off: Vec<_> = found.iter().filter(|(_, row, own)| !row.contains(own)).collect();
    assert!(pushed_off.is_empty(), "{pushed_off:#?}");
    let stops = first(views::STOPS, &[]);
    assert!(stops.contains("http://z.example"), "{stops}");
}

#[test]
fn a_list_of_schedules_begins_with_those_of_the_client() {
    let (shop, gateway, app) = open();
    let many = "SELECT count(awty_http.schedule('http://127.0.0.1:1099/' || n, every => '20 hours', starts => now() + interval '10 hours'))
        FROM generate_series(1, 60) AS n";
    shop.cluster.client("postgres", "tenant").batch_execute(many).unwrap();
    let schedule = "SELECT awty_http.schedule('http://127.0.0.1:1098/own', every => '20 hours')";
    shop.app(schedule);
    let id = shop.text("SELECT id FROM awty_http.endpoint WHERE job = 'http.app'");
    assert_eq!(app.get("/v1/schedules").header("link"), "");
    let unasked = "SELECT awty.allow('http.tenant', r, 'read') FROM unnest('{app,other}'::text[]) AS r";
    shop.cluster.client("postgres", "tenant").batch_execute(unasked).unwrap();
    let first = app.get("/v1/schedules").json();
    let uris: Vec<_> = first["items"].as_array().unwrap().iter().map(|one| one["uri"].as_str().unwrap()).collect();
    assert_eq!(uris, ["http://127.0.0.1:1098/own"]);
    shop.app("SELECT awty.allow('http.app', 'other', 'read')");
    for role in ["app", "other"] {
        let client = client(&shop, &gateway, role, "read");
        let mut ids: Vec<_> =
            pages(&client, "/v1/schedules?limit=7").iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 61, "{role}");
    }
    let other = client(&shop, &gateway, "other", "read");
    let uris = || -> Vec<Value> {
        other.get("/v1/schedules").json()["items"].as_array().unwrap().iter().map(|one| one["uri"].clone()).collect()
    };
    assert_eq!(uris().len(), 50);
    let own = "http://127.0.0.1:1098/own";
    shop.cluster.client("postgres", "tenant").batch_execute(schedule).unwrap();
    let found = other.get(&format!("/v1/schedules?uri={}", encoded(own)));
    assert_eq!(found.json()["id"].as_str().unwrap_or_default(), id, "{}", found.text);
    let history = other.get(&format!("/v1/history?uri={}", encoded(own)));
    assert_eq!(history.json()["schedule"]["id"].as_str().unwrap_or_default(), id, "{}", history.text);
    shop.cluster.execute("postgres", &["ALTER ROLE other SET awty_http.tenant = 'app'"]);
    assert_eq!(uris(), [own], "the schedules of the chosen tenant");
}
