//! Whose rows are whose, when jobs change hands and when somebody writes rows past the functions.

use super::{Http, refused};

const URI: &str = "https://api.example.com/tick";

/// Rows of a tenant whose job is gone stay its own, whoever registers a job of that name. The tenant gets a job of another name.
#[test]
fn who_takes_a_free_name_takes_nothing_with_it() {
    let http = Http::open();
    let schedule = format!("SELECT awty_http.schedule('{URI}', '1 s', headers => '{{\"X-Key\": \"secret\"}}')");
    let id = http.ask("app", &schedule);
    http.ask("app", &format!("SELECT awty_http.send('{URI}', key => 'k')"));
    http.claim();
    http.ask("gateway", "SELECT awty.complete(lease) FROM awty.lease");
    http.cluster.execute("postgres", &["SELECT awty_http_internal.roll_up(now() + interval '1 hour')"]);
    assert_eq!(http.ask("app", "SELECT count(*) FROM awty_http.stat WHERE id = 'http.app'"), "2");
    http.ask("app", "SELECT awty.unregister('http.app')");
    http.ask("other", "SELECT awty.register('http.app')");
    for table in ["awty_http.endpoint", "awty_http_internal.sent", "awty_http.stat"] {
        assert_eq!(http.ask("other", &format!("SELECT count(*) FROM {table}")), "0", "{table}");
    }
    assert_eq!(http.ask("other", "SELECT role FROM awty_http.tenant"), "other");
    assert_eq!(http.ask("app", "SELECT count(*) FROM awty_http.endpoint"), "1");
    assert_eq!(refused(&mut http.client("app"), &schedule), "42501");
    // The rows go with the tenant to its new job, the ids are the same, and the schedule goes on.
    assert_eq!(http.ask("postgres", "SELECT awty_http.add_tenant('app')"), "http.app-2");
    assert_eq!(http.ask("app", &schedule), id);
    assert_eq!(http.ask("app", "SELECT job FROM awty.repetition"), "http.app-2");
    assert_eq!(http.ask("app", "SELECT DISTINCT job FROM awty_http.stat"), "http.app-2");
    assert_eq!(http.ask("app", "SELECT count(*) FROM awty_http.stat WHERE id = 'http.app-2'"), "2");
}

/// A job that is given another role is no tenant's: its schedules stay the tenant's, and the other role gets nothing.
#[test]
fn a_job_that_is_given_another_role_is_no_job_of_the_tenant() {
    let http = Http::open();
    http.ask("app", &format!("SELECT awty_http.schedule('{URI}', '1 h')"));
    http.cluster.execute(
        "postgres",
        &[
            "CREATE ROLE heir LOGIN",
            "GRANT USAGE ON SCHEMA awty, awty_http TO heir",
            "SELECT awty.alter('http.app', run_as => 'heir')",
        ],
    );
    assert_eq!(http.ask("heir", "SELECT count(*) FROM awty_http.endpoint"), "0");
    assert_eq!(http.ask("app", "SELECT count(*) FROM awty_http.endpoint"), "1");
    for role in ["heir", "app"] {
        assert_eq!(refused(&mut http.client(role), &format!("SELECT awty_http.send('{URI}')")), "42501", "{role}");
    }
}

/// A job of any name does not open the statistics of an endpoint.
#[test]
fn a_job_that_bears_the_id_of_an_endpoint_shows_nothing() {
    let http = Http::open();
    http.ask("app", &format!("SELECT awty_http.schedule('{URI}', '1 s')"));
    let lease = http.claim()[0];
    http.ask("gateway", &format!("SELECT awty.complete({lease})"));
    http.cluster.execute("postgres", &["SELECT awty_http_internal.roll_up(now() + interval '1 hour')"]);
    http.ask("other", &format!("SELECT awty.register(awty_http_internal.id(number, '{URI}')) FROM awty_http.tenant"));
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
            "SELECT awty.allow('http.app', 'a'), awty.allow('http.app', 'b')",
        ],
    );
    let mut a = http.client("a");
    let insert = |name: &str, key: &str, tenant: &str, by: &str| {
        format!(
            "INSERT INTO awty_http.endpoint (id, job, uri, entity_name, entity_key, created_by)
             SELECT awty_http_internal.id(number, '{name}{key}'), 'http.{tenant}', '{name}{key}', '{name}', '{key}', '{by}' FROM awty_http.tenant"
        )
    };
    let forged = [
        insert("https://api.example.com", "/tick", "other", "a"),
        insert("https://api.example.com", "/tick", "app", "b"),
        insert("https://api.example.co", "m/tick", "app", "a"),
        insert("HTTPS://api.example.com", "/tick", "app", "a"),
        "INSERT INTO awty_http.token (hash, role, scope, expires_at, created_by) VALUES (sha256('x'), 'a', 'read', now(), 'b')".into(),
    ];
    for sql in &forged {
        assert_eq!(a.batch_execute(sql).unwrap_err().code().unwrap().code(), "42501", "{sql}");
    }
    // What the other has written, it shares.
    http.ask("b", &format!("SELECT awty_http.schedule('{URI}', '1 h')"));
    assert_eq!(http.ask("a", &format!("SELECT awty_http.unschedule('{URI}')")), "true");
    // A right that is taken away takes the rows along.
    http.cluster.execute("postgres", &["SELECT awty.disallow('http.app', 'a')"]);
    assert_eq!(http.ask("a", "SELECT count(*) FROM awty_http.endpoint"), "0");
    assert_eq!(refused(&mut a, &format!("SELECT awty_http.send('{URI}', key => 'k')")), "42501");
    assert_eq!(refused(&mut a, &format!("SELECT awty_http.schedule('{URI}', '1 h')")), "42501");
}

/// Sealed 2 and 10: no role makes itself a tenant, and none prepares the name, ids or keys of a future one.
#[test]
fn only_the_owner_of_the_extension_makes_tenants() {
    let http = Http::open();
    http.cluster.execute("postgres", &["CREATE ROLE late LOGIN", "GRANT USAGE ON SCHEMA awty, awty_http TO late"]);
    let mut late = http.client("late");
    for call in ["add_tenant('late')", "drop_tenant('app')"] {
        assert_eq!(refused(&mut late, &format!("SELECT awty_http.{call}")), "42501", "{call}");
    }
    assert_eq!(refused(&mut late, &format!("SELECT awty_http.schedule('{URI}', '1 h')")), "42501");
    // Another role takes the name, and this is no obstacle.
    http.ask("other", "SELECT awty.register('http.late')");
    assert_eq!(http.ask("postgres", "SELECT awty_http.add_tenant('late')"), "http.late-2");
    assert_eq!(http.ask("postgres", "SELECT awty_http.add_tenant('late')"), "http.late-2");
    let id = http.ask("late", &format!("SELECT awty_http.schedule('{URI}', '1 h')"));
    assert_eq!(http.ask("late", &format!("SELECT awty_http_internal.id(number, '{URI}') FROM awty_http.tenant")), id);
    assert_ne!(http.ask("app", &format!("SELECT awty_http.schedule('{URI}', '1 h')")), id);
    let error = http.cluster.superuser("postgres").batch_execute("SELECT awty_http.add_tenant('nobody')").unwrap_err();
    assert_eq!(error.code().unwrap().code(), "42704");
}

/// Its calls end and its history stays. When it is a tenant again, its schedules have the ids that they had.
#[test]
fn a_dropped_tenant_makes_no_calls_and_comes_back_with_its_ids() {
    let http = Http::open();
    let schedule = format!("SELECT awty_http.schedule('{URI}', '1 s')");
    let id = http.ask("app", &schedule);
    http.claim();
    http.ask("gateway", "SELECT awty.fail(lease, 'HTTP 404', final => true) FROM awty.lease");
    http.ask("postgres", "SELECT awty_http.drop_tenant('app')");
    assert_eq!(http.ask("app", "SELECT count(*) FROM awty.future_job"), "0");
    assert_eq!(http.ask("app", "SELECT deleted_at IS NOT NULL FROM awty_http.endpoint"), "true");
    assert_eq!(http.ask("app", "SELECT DISTINCT schedule FROM awty_http_internal.problem"), id);
    assert_eq!(refused(&mut http.client("app"), &schedule), "42501");
    let mut postgres = http.cluster.superuser("postgres");
    assert_eq!(refused(&mut postgres, "SELECT awty_http.drop_tenant('app')"), "42704");
    http.ask("postgres", "SELECT awty_http.add_tenant('app')");
    assert_eq!(http.ask("app", &schedule), id);
}

/// A role that is no tenant schedules for the one tenant that lets it; where there are several, it says which by SET ROLE.
#[test]
fn a_role_schedules_for_the_tenant_that_lets_it() {
    let http = Http::open();
    http.cluster.execute(
        "postgres",
        &["CREATE ROLE web LOGIN", "GRANT USAGE ON SCHEMA awty, awty_http TO web", "GRANT app TO web"],
    );
    http.ask("web", &format!("SELECT awty_http.schedule('{URI}', '1 h')"));
    assert_eq!(http.ask("web", "SELECT job || ' ' || created_by FROM awty_http.endpoint"), "http.app web");
    http.ask("other", "SELECT awty.allow('http.other', 'web')");
    let mut web = http.client("web");
    assert_eq!(refused(&mut web, &format!("SELECT awty_http.schedule('{URI}', '1 h')")), "21000");
    web.batch_execute(&format!("SET ROLE app; SELECT awty_http.unschedule('{URI}')")).unwrap();
}
