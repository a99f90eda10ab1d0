//! Whose rows are whose, when jobs change hands and when somebody writes rows past the functions.

use super::{Http, refused};

const URI: &str = "https://api.example.com/tick";

/// Rows of a tenant whose job is gone stay its own, whoever registers a job of that name.
#[test]
fn who_takes_a_free_name_takes_nothing_with_it() {
    let http = Http::open();
    let schedule = format!("SELECT awty_http.schedule('{URI}', '1 s', headers => '{{\"X-Key\": \"secret\"}}')");
    http.ask("app", &schedule);
    http.ask("app", &format!("SELECT awty_http.send('{URI}', key => 'k')"));
    http.claim();
    http.ask("gateway", "SELECT awty.complete(lease) FROM awty.lease");
    http.cluster.execute("postgres", &["SELECT awty_http_internal.roll_up(now() + interval '1 hour')"]);
    assert_eq!(http.ask("app", "SELECT count(*) FROM awty_http.stat WHERE id = 'http.app'"), "2");
    http.ask("app", "SELECT awty.unregister('http.app')");
    http.ask("other", "SELECT awty.register('http.app')");
    let theft = "UPDATE awty_http.endpoint SET role = (SELECT role FROM awty.job WHERE name = 'http.app')";
    assert_eq!(http.client("other").execute(theft, &[]).unwrap(), 0);
    for table in ["awty_http.endpoint", "awty_http_internal.sent", "awty_http.stat"] {
        assert_eq!(http.ask("other", &format!("SELECT count(*) FROM {table}")), "0", "{table}");
    }
    assert_eq!(http.ask("app", "SELECT count(*) FROM awty_http.endpoint"), "1");
    // Once the name is free again, all of it is there, and the schedule goes on.
    http.ask("other", "SELECT awty.unregister('http.app')");
    http.ask("app", "SELECT awty_http.add_tenant('app')");
    http.ask("app", &schedule);
    assert_eq!(http.ask("app", "SELECT count(*) FROM awty.repetition"), "1");
}

/// A job that is given another role keeps its schedules, its keys and its statistics.
#[test]
fn what_belongs_to_a_job_goes_with_it_to_another_role() {
    let http = Http::open();
    http.ask("app", &format!("SELECT awty_http.schedule('{URI}', '1 s')"));
    http.ask("app", &format!("SELECT awty_http.send('{URI}', key => 'k')"));
    http.claim();
    http.ask("gateway", "SELECT awty.complete(lease) FROM awty.lease");
    http.cluster.execute(
        "postgres",
        &[
            "SELECT awty_http_internal.roll_up(now() + interval '1 hour')",
            "CREATE ROLE heir LOGIN",
            "GRANT USAGE ON SCHEMA awty, awty_http TO heir",
            "SELECT awty.alter('http.app', run_as => 'heir')",
        ],
    );
    for role in ["heir", "gateway"] {
        assert_eq!(http.ask(role, "SELECT uri FROM awty_http.endpoint"), URI, "{role}");
    }
    assert_eq!(http.ask("heir", "SELECT count(*) FROM awty_http_internal.sent"), "1");
    assert_eq!(http.ask("heir", "SELECT count(*) FROM awty_http.stat WHERE id = 'http.app'"), "2");
    assert_eq!(http.ask("app", "SELECT count(*) FROM awty_http.endpoint"), "0");
}

/// A job of any name does not open the statistics of an endpoint.
#[test]
fn a_job_that_bears_the_id_of_an_endpoint_shows_nothing() {
    let http = Http::open();
    http.ask("app", &format!("SELECT awty_http.schedule('{URI}', '1 s')"));
    let lease = http.claim()[0];
    http.ask("gateway", &format!("SELECT awty.complete({lease})"));
    http.cluster.execute("postgres", &["SELECT awty_http_internal.roll_up(now() + interval '1 hour')"]);
    http.ask("other", &format!("SELECT awty.register(awty_http_internal.id('http.app', '{URI}'))"));
    assert_eq!(http.ask("other", "SELECT count(*) FROM awty_http.stat"), "0");
}

/// The function that cancels with the owner's rights does so for one table only, and nobody else may make a trigger of it.
#[test]
fn what_runs_with_the_owners_rights_looks_where_it_runs() {
    let http = Http::open();
    http.ask("app", &format!("SELECT awty_http.schedule('{URI}', '1 h')"));
    http.cluster.execute(
        "postgres",
        &[
            "DROP EXTENSION awty_http",
            "ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO other",
            "CREATE EXTENSION awty_http",
            "GRANT CREATE ON SCHEMA public TO other",
        ],
    );
    let mut other = http.client("other");
    other.batch_execute("CREATE TABLE public.forged (entity_name text, entity_key text, job text, verdict text, verdict_note text); INSERT INTO public.forged VALUES ('https://api.example.com', '/tick', 'http.app', 'stop', '')").unwrap();
    let trigger = "CREATE TRIGGER t AFTER UPDATE ON public.forged FOR EACH ROW EXECUTE FUNCTION awty_http_internal.endpoint_asks()";
    assert_eq!(other.batch_execute(trigger).unwrap_err().code().unwrap().code(), "42501");
    http.cluster.execute("postgres", &[trigger]);
    assert_eq!(refused(&mut other, "UPDATE public.forged SET verdict = 'stop'"), "42501");
    assert_eq!(http.ask("app", "SELECT count(*) FROM awty.future_job"), "1");
}

/// Rows that are written past the functions say the truth of who wrote them, and of their URI.
#[test]
fn a_forged_row_is_refused() {
    let http = Http::open();
    http.cluster.execute(
        "postgres",
        &[
            "CREATE ROLE a LOGIN",
            "CREATE ROLE b LOGIN",
            "GRANT USAGE ON SCHEMA awty, awty_http TO a, b",
            "SELECT awty.allow('http', 'a'), awty.allow('http', 'b')",
        ],
    );
    let mut a = http.client("a");
    let insert = |name: &str, key: &str, role: &str, by: &str| {
        format!(
            "INSERT INTO awty_http.endpoint (id, job, uri, entity_name, entity_key, role, created_by) VALUES
             (awty_http_internal.id('http', '{name}{key}'), 'http', '{name}{key}', '{name}', '{key}', {role}, '{by}')"
        )
    };
    let of_job = "(SELECT role FROM awty.job WHERE name = 'http')";
    let forged = [
        insert("https://api.example.com", "/tick", "'a'", "a"),
        insert("https://api.example.com", "/tick", of_job, "b"),
        insert("https://api.example.co", "m/tick", of_job, "a"),
        insert("HTTPS://api.example.com", "/tick", of_job, "a"),
        "INSERT INTO awty_http.token (hash, role, scope, expires_at, created_by) VALUES (sha256('x'), 'a', 'read', now(), 'b')".into(),
    ];
    for sql in &forged {
        assert_eq!(a.batch_execute(sql).unwrap_err().code().unwrap().code(), "42501", "{sql}");
    }
    let endless = "INSERT INTO awty_http.token (hash, role, scope, expires_at, created_by) VALUES (sha256('x'), 'a', 'read', 'infinity', 'a')";
    assert_eq!(a.batch_execute(endless).unwrap_err().code().unwrap().code(), "23514");
    a.batch_execute(&insert("https://api.example.com", "/tick", of_job, "a")).unwrap();
    let split = "UPDATE awty_http.endpoint SET entity_name = 'https://api.example.co', entity_key = 'm/tick'";
    assert_eq!(refused(&mut a, split), "42501");
    // What the other has written, it shares.
    http.ask("b", &format!("SELECT awty_http.schedule('{URI}', '1 h')"));
    assert_eq!(http.ask("b", &format!("SELECT awty_http.unschedule('{URI}')")), "true");
    // A right that is taken away takes the rows along.
    http.ask("a", "SELECT awty_http.schedule('https://api.example.com/a', '1 h')");
    http.cluster.execute("postgres", &["SELECT awty.disallow('http', 'a')"]);
    assert_eq!(http.ask("a", "SELECT count(*) FROM awty_http.endpoint"), "0");
    assert_eq!(refused(&mut a, &format!("SELECT awty_http.send('{URI}', key => 'k')")), "42501");
    assert_eq!(refused(&mut a, &format!("SELECT awty_http.schedule('{URI}', '1 h')")), "42501");
}

/// A row that is there and cannot be seen is no success.
#[test]
fn a_schedule_that_another_owner_of_the_job_has_made_is_refused() {
    let http = Http::open();
    http.ask("app", &format!("SELECT awty_http.schedule('{URI}', '1 h'), awty_http.send('{URI}', key => 'k')"));
    http.ask("app", "SELECT awty.unregister('http.app')");
    http.cluster.execute(
        "postgres",
        &["SELECT awty.register('http.app', run_as => 'other')", "SELECT awty.allow('http.app', 'app')"],
    );
    // The role of the rows may have them back; the job's new role may not.
    http.cluster.execute(
        "postgres",
        &[
            "SELECT awty.unregister('http.other')",
            "ALTER ROLE other RENAME TO nobody",
            "ALTER ROLE app RENAME TO before",
            "ALTER ROLE nobody RENAME TO app",
        ],
    );
    let mut app = http.client("app");
    assert_eq!(refused(&mut app, &format!("SELECT awty_http.schedule('{URI}', '1 h')")), "42501");
    assert_eq!(refused(&mut app, &format!("SELECT awty_http.send('{URI}', key => 'k')")), "42710");
}

/// A role has its calls in one job: what it has in the other would be out of its reach.
#[test]
fn a_role_with_schedules_becomes_no_tenant() {
    let http = Http::open();
    http.cluster.execute(
        "postgres",
        &[
            "CREATE ROLE shop LOGIN",
            "GRANT USAGE ON SCHEMA awty, awty_http TO shop",
            "SELECT awty.allow('http', 'shop')",
        ],
    );
    http.ask("shop", &format!("SELECT awty_http.schedule('{URI}', '1 h')"));
    let mut shop = http.client("shop");
    assert_eq!(refused(&mut shop, "SELECT awty_http.add_tenant('shop')"), "55000");
    http.ask("shop", "SELECT awty_http.unschedule(uri) FROM awty_http.endpoint WHERE job = 'http' AND created_by = 'shop'::regrole AND deleted_at IS NULL");
    http.ask("shop", "SELECT awty_http.add_tenant('shop')");
    http.ask("shop", &format!("SELECT awty_http.schedule('{URI}', '1 h'), awty_http.add_tenant('shop')"));
    // A name that somebody else has.
    http.cluster.execute("postgres", &["CREATE ROLE late LOGIN", "GRANT USAGE ON SCHEMA awty, awty_http TO late"]);
    http.ask("other", "SELECT awty.register('http.late')");
    let mut late = http.client("late");
    let error = late.batch_execute("SELECT awty_http.add_tenant('late')").unwrap_err();
    let error = error.as_db_error().unwrap();
    assert_eq!(error.code().code(), "42710");
    assert!(error.hint().unwrap().contains("SELECT awty.unregister('http.late');"), "{error:?}");
}
