//! Who sees and changes what.

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
        let change = format!("UPDATE awty_http.endpoint SET description = 'mine' WHERE job = 'http.{stranger}'");
        assert_eq!(http.client(role).execute(&change, &[]).unwrap(), 0);
    }
    // The gateway sees both, and changes nothing but what an answer says.
    assert_eq!(http.ask("gateway", "SELECT count(*) FROM awty_http.endpoint"), "2");
    let mut gateway = http.client("gateway");
    assert_eq!(refused(&mut gateway, "UPDATE awty_http.endpoint SET method = 'GET'"), "42501");
    for role in ["gateway", "app"] {
        let deleted = http.client(role).execute("DELETE FROM awty_http.endpoint", &[]);
        assert_eq!(deleted.unwrap_err().code().unwrap().code(), "42501", "{role}");
    }
    let mut app = http.client("app");
    assert_eq!(refused(&mut app, "UPDATE awty_http.endpoint SET created_by = 'other'"), "42501");
    let foreign = "INSERT INTO awty_http.endpoint (id, job, uri, entity_name, entity_key, created_by)
        VALUES (awty_http_internal.id(1, 'http://x/'), 'http.other', 'http://x/', 'http://x', '/', 'app')";
    assert_eq!(app.batch_execute(foreign).unwrap_err().code().unwrap().code(), "42501");
}

/// A token is found by whoever has it, and its hash is nowhere to be read.
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
    // Nor is a role known that is gone.
    http.cluster.execute("postgres", &["CREATE ROLE gone"]);
    let token = http.ask("postgres", "SELECT awty_http.create_token('gone', 'read', '1 d')");
    assert_eq!(who(&token), "(gone,read,t)");
    http.cluster.execute("postgres", &["DROP ROLE gone"]);
    assert_eq!(who(&token), "");
}

/// Each public object says what it is.
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

/// A gateway on a standby knows tokens, and notes no use of them there.
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
