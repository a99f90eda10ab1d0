use super::{Http, refused};

#[test]
fn tenants_do_not_see_one_another() {
    let http = Http::open();
    for role in ["app", "other"] {
        http.ask(role, &format!("SELECT awty_http.schedule('https://api.example.com/{role}', '1 h')"));
        http.ask(role, "SELECT awty_http.send('https://api.example.com/send', key => 'k')");
        http.ask(role, &format!("SELECT awty_http.create_token('{role}', 'write', '1 d')"));
    }
    for (role, stranger) in [("app", "other"), ("other", "app")] {
        assert_eq!(http.ask(role, "SELECT uri FROM awty_http.endpoint"), format!("https://api.example.com/{role}"));
        assert_eq!(http.ask(role, "SELECT count(*) FROM awty_http.token"), "1");
        assert_eq!(http.ask(role, "SELECT count(*) FROM awty_http_internal.sent"), "1");
        assert_eq!(http.ask(role, "SELECT count(*) FROM awty.future_job"), "2");
        assert_eq!(
            http.ask(role, &format!("SELECT awty_http.unschedule('https://api.example.com/{stranger}')")),
            "false"
        );
        let id = http.ask(stranger, "SELECT id FROM awty_http.endpoint");
        assert_eq!(http.ask(role, &format!("SELECT awty_http_internal.pause('{id}')")), "false");
        assert_eq!(http.ask(role, &format!("SELECT awty_http_internal.resume('{id}')")), "false");
        assert_eq!(http.ask(role, &format!("SELECT awty_http_internal.lock('{id}')")), "");
        http.ask(role, &format!("SELECT awty_http_internal.answered('{id}', false, now())"));
        http.ask(role, &format!("SELECT awty_http_internal.asked('{id}', 'stop', '')"));
        assert_eq!(
            http.ask(
                stranger,
                "SELECT (failing_since IS NULL) || ' ' || (verdict IS NULL) || ' ' || paused FROM awty_http.endpoint"
            ),
            "true true false"
        );
    }
    assert_eq!(http.ask("gateway", "SELECT count(*) FROM awty_http.endpoint"), "2");
}

#[test]
fn readers_see_no_header_values_and_no_bodies() {
    let http = Http::open();
    let how = "'https://api.example.com/x', '{\"card\": \"s3cret\"}', headers => '{\"X-Pass\": \"s3cret\"}'";
    http.ask("app", "SELECT awty_http.schedule('https://api.example.com/x', '1 h', body_text => 's3cret', headers => '{\"X-Pass\": \"s3cret\"}')");
    http.ask("app", &format!("SELECT awty_http.send({how}), awty_http.send({how}, key => 'k')"));
    http.cluster.execute(
        "postgres",
        &[
            "CREATE ROLE mon LOGIN",
            "GRANT USAGE ON SCHEMA awty, awty_http TO mon",
            "SELECT awty.allow('http.app', 'mon', 'read')",
        ],
    );
    let request = "SELECT request ->> 'method' || (request ->> 'headers') FROM awty_http.endpoint";
    assert_eq!(http.ask("app", request), "POST{\"X-Pass\": \"s3cret\"}");
    assert_eq!(http.ask("mon", request), "POST{\"X-Pass\": \"•••\"}");
    assert_eq!(http.ask("mon", "SELECT request ? 'body_text' FROM awty_http.endpoint"), "false");
    assert_eq!(http.ask("mon", "SELECT count(*) FROM awty.future_job"), "3");
    http.claim();
    http.ask("gateway", "SELECT awty.fail(lease, 'no', final => true) FROM awty.lease");
    for table in [
        "awty_http.endpoint",
        "awty_http_internal.schedule_status",
        "awty_http_internal.send_status",
        "awty_http_internal.endpoint",
        "awty_http_internal.content",
        "awty_http_internal.sent",
        "awty_http_internal.problem",
        "awty.future_job",
        "awty.future_job_history",
        "awty.attempt",
    ] {
        let seen = format!("SELECT count(*) FROM {table} AS t WHERE t::text LIKE '%s3cret%'");
        assert_eq!(http.ask("mon", &seen), "0", "{table}");
    }
    let seen = "SELECT count(*) FROM awty_http_internal.content AS t WHERE t::text LIKE '%s3cret%'";
    assert_eq!(http.ask("app", seen), "3");
}

#[test]
fn a_role_has_a_thousand_tokens_at_most() {
    let http = Http::open();
    let some = |count: i32| {
        format!("SELECT count(awty_http.create_token('app', 'read', '1 d')) FROM generate_series(1, {count})")
    };
    assert_eq!(http.ask("app", &some(1000)), "1000");
    assert_eq!(refused(&mut http.client("app"), &some(1)), "54000");
    http.ask("other", "SELECT awty_http.create_token('other', 'read', '1 d')");
    http.ask("app", "SELECT awty_http.drop_token(min(id)) FROM awty_http.token");
    assert_eq!(http.ask("app", &some(1)), "1");
}

#[test]
fn a_token_is_known_by_its_hash_only() {
    let http = Http::open();
    let token = http.ask("app", "SELECT awty_http.create_token('app', 'read', '1 d')");
    assert!(token.len() == 48 && token.starts_with("awty_"), "{token}");
    let who = |token: &str| {
        http.ask(
            "gateway",
            &format!("SELECT (role, scope, expires_at > now()) FROM awty_http_internal.token_of(sha256('{token}'))"),
        )
    };
    assert_eq!(who(&token), "(app,read,t)");
    assert_eq!(who("awty_x"), "");
    assert_eq!(http.ask("app", "SELECT last_used_at IS NOT NULL FROM awty_http.token"), "true");
    let mut app = http.client("app");
    assert_eq!(app.batch_execute("SELECT hash FROM awty_http.token").unwrap_err().code().unwrap().code(), "42501");
    assert_eq!(http.ask("gateway", "SELECT count(*) FROM awty_http.token"), "0");
    http.ask("app", "SELECT awty_http.drop_token(id) FROM awty_http.token");
    assert_eq!(who(&token), "");
    http.cluster.execute("postgres", &["CREATE ROLE gone"]);
    let token = http.ask("postgres", "SELECT awty_http.create_token('gone', 'read', '1 d')");
    assert_eq!(who(&token), "(gone,read,t)");
    http.cluster.execute("postgres", &["DROP ROLE gone"]);
    assert_eq!(who(&token), "");
}

#[test]
fn every_object_has_a_comment() {
    let http = Http::open();
    let bare = "SELECT pg_describe_object(classid, objid, 0) FROM pg_depend
        WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e' AND classid <> 'pg_type'::regclass
          AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'awty_http') AND obj_description(objid, classid::regclass::name) IS NULL
        UNION ALL
        SELECT attrelid::regclass || '.' || attname FROM pg_attribute JOIN pg_class AS c ON c.oid = attrelid
        WHERE relnamespace IN ('awty_http'::regnamespace, 'awty_http_internal'::regnamespace) AND relkind = 'r' AND attnum > 0
          AND col_description(attrelid, attnum) IS NULL";
    assert_eq!(http.cluster.psql("postgres", bare).trim(), "");
}

#[test]
fn a_token_is_known_on_a_standby() {
    let http = Http::open();
    let token = http.ask("app", "SELECT awty_http.create_token('app', 'read', '1 d')");
    let standby = http.cluster.standby();
    let known = format!("SELECT concat_ws(' ', role, scope) FROM awty_http_internal.token_of(sha256('{token}'))");
    assert_eq!(standby.psql("postgres", &known).trim(), "app read");
    assert_eq!(http.cluster.psql("postgres", &known).trim(), "app read");
    let used = "SELECT count(*) = 1 FROM awty_http.token WHERE last_used_at IS NOT NULL";
    http.cluster.await_sql("postgres", "the use to be noted", used);
}

#[test]
fn the_hours_of_a_calendar_are_shown_by_no_repetition_of_another_role() {
    let http = Http::open();
    http.ask("app", "SELECT awty.create_calendar('hours', '{mon-sun 09:00-10:00}', 'UTC'), awty.register('tick')");
    http.ask("app", "SELECT awty.repeat('tick', every => '1 h', calendar => 'hours')");
    let next = "SELECT count(*) FROM awty_http_internal.next_repetition('tick', 'job', 'tick', now())";
    assert_eq!((http.ask("app", next), http.ask("other", next)), ("1".into(), "0".into()));
    let arguments = "SELECT count(*) FROM pg_proc WHERE pronamespace = 'awty_http_internal'::regnamespace
         AND 'calendar' = ANY (proargnames) AND has_function_privilege('other', oid, 'EXECUTE')";
    assert_eq!(http.ask("other", arguments), "0");
}
