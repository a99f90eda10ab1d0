use super::{Http, refused};

const URI: &str = "https://api.example.com/tick";

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
    assert_eq!(http.ask("postgres", "SELECT awty_http.add_tenant('app')"), "http.app-2");
    assert_eq!(http.ask("app", &schedule), id);
    assert_eq!(http.ask("app", "SELECT job FROM awty.repetition"), "http.app-2");
    assert_eq!(http.ask("app", "SELECT DISTINCT job FROM awty_http.stat"), "http.app-2");
    assert_eq!(http.ask("app", "SELECT count(*) FROM awty_http.stat WHERE id = 'http.app-2'"), "2");
}

/// The extension's owner executes the calls, and has rights to the jobs of all roles.
#[test]
fn a_call_that_waits_for_a_schedule_keeps_the_name_of_the_job() {
    let http = Http::open();
    let schedule = |more: &str| format!("SELECT awty_http.schedule('{URI}', {more})");
    let id = http.ask("app", &schedule("'1 h'"));
    for call in [
        schedule("'2 h'"),
        format!("SELECT awty_http.unschedule('{URI}')"),
        format!("SELECT awty_http_internal.pause('{id}')"),
        format!("SELECT awty_http_internal.resume('{id}')"),
    ] {
        let mut open = http.client("app");
        open.batch_execute(&format!("BEGIN; SELECT awty_http_internal.lock('{id}')")).unwrap();
        let mut waiting = http.client("app");
        let pid: i32 = waiting.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0);
        let waits = std::thread::spawn(move || waiting.batch_execute(&call));
        http.cluster.await_sql(
            "postgres",
            "the call to wait",
            &format!("SELECT wait_event = 'transactionid' FROM pg_stat_activity WHERE pid = {pid}"),
        );
        http.ask("app", "SELECT awty.unregister('http.app')");
        let register = "SET lock_timeout = '1s'; SELECT awty.register('http.app')";
        assert_eq!(refused(&mut http.client("other"), register), "55P03");
        open.batch_execute("COMMIT").unwrap();
        drop(waits.join());
        http.ask("postgres", "SELECT awty_http.add_tenant('app')");
    }
}

/// awty looks for rights in the latest state, and a statement may read the calls in an older state.
#[test]
fn who_takes_a_free_name_under_an_old_snapshot_reads_no_call() {
    let http = Http::open();
    http.ask("app", &format!("SELECT awty_http.schedule('{URI}', '1 s', headers => '{{\"X-Key\": \"secret\"}}')"));
    let claimed = format!("SELECT count(*)::text FROM awty_http_internal.claimed('{{{}}}')", http.claim()[0]);
    assert_eq!(http.ask("gateway", &claimed), "1");
    let mut old = http.client("other");
    old.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT").unwrap();
    http.ask("app", "SELECT awty.unregister('http.app')");
    http.ask("other", "SELECT awty.register('http.app')");
    assert_eq!(old.query_one(&claimed, &[]).unwrap().get::<_, String>(0), "0");
}

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

#[test]
fn calls_of_a_former_job_of_the_name_are_not_counted() {
    let http = Http::open();
    http.ask("postgres", "SELECT awty_http.drop_tenant('app')");
    http.ask("other", "SELECT awty.register('http.app', heartbeat => '1 min', keep_attempts => 'all')");
    http.ask("other", "SELECT awty.schedule('https://api.example.com', '/tick', 'http.app', after => '0')");
    http.cluster.await_sql(
        "postgres",
        "the call to be completed",
        "SELECT count(*) > 0 FROM awty.claim('{http.app}', 'w') AS c, awty.complete(c.lease) AS d",
    );
    http.ask("other", "SELECT awty.unregister('http.app')");
    http.ask("postgres", "SELECT awty_http.add_tenant('app')");
    http.ask("app", &format!("SELECT awty_http.schedule('{URI}', '1 h')"));
    http.cluster.execute("postgres", &["SELECT awty_http_internal.roll_up(now() + interval '1 hour')"]);
    assert_eq!(http.ask("app", "SELECT count(*) FROM awty_http.stat"), "0");
}

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

#[test]
fn no_role_writes_the_tables_or_acts_as_another() {
    let http = Http::open();
    http.cluster.execute(
        "postgres",
        &[
            "CREATE ROLE a LOGIN",
            "CREATE ROLE b LOGIN",
            "SELECT awty.unregister(job) FROM awty.job",
            "DROP EXTENSION awty_http",
            "ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO a",
            "ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO a",
            "CREATE EXTENSION awty_http",
            "SELECT awty_http.add_tenant('app')",
            "GRANT USAGE ON SCHEMA awty, awty_http TO a, b, app",
            "SELECT awty.allow('http.app', 'a'), awty.allow('http.app', 'b')",
            "ALTER ROLE a SET awty_http.tenant = 'app'",
            "ALTER ROLE b SET awty_http.tenant = 'app'",
        ],
    );
    let mut a = http.client("a");
    for role in ["a", "app", "gateway"] {
        let writable = "SELECT coalesce(string_agg(c.oid::regclass::text, ' '), '') FROM pg_class AS c
            WHERE c.relnamespace::regnamespace::text IN ('awty_http', 'awty_http_internal') AND c.relkind IN ('r', 'v', 'p')
              AND (has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
                   OR has_any_column_privilege(c.oid, 'INSERT, UPDATE, REFERENCES'))";
        assert_eq!(http.ask(role, writable), "", "{role}");
        let believing = "SELECT coalesce(string_agg(p.oid::regprocedure::text, ' '), '') FROM pg_proc AS p
            WHERE p.pronamespace::regnamespace::text IN ('awty_http', 'awty_http_internal') AND has_function_privilege(p.oid, 'EXECUTE')
              AND p.prosecdef AND p.proname <> 'token_of'";
        assert_eq!(http.ask(role, believing), "", "{role}");
    }
    let forged = format!("SELECT awty_http_internal.unschedule_as('postgres'::regrole, '{URI}')");
    assert_eq!(a.batch_execute(&forged).unwrap_err().code().unwrap().code(), "42501");
    http.ask("b", &format!("SELECT awty_http.schedule('{URI}', '1 h')"));
    assert_eq!(http.ask("a", &format!("SELECT awty_http.unschedule('{URI}')")), "true");
    http.cluster.execute("postgres", &["SELECT awty.disallow('http.app', 'a')"]);
    assert_eq!(http.ask("a", "SELECT count(*) FROM awty_http.endpoint"), "0");
    assert_eq!(refused(&mut a, &format!("SELECT awty_http.send('{URI}', key => 'k')")), "42501");
    assert_eq!(refused(&mut a, &format!("SELECT awty_http.schedule('{URI}', '1 h')")), "42501");
}

#[test]
fn an_old_snapshot_lends_no_right_to_calls() {
    let http = Http::open();
    http.cluster.execute(
        "postgres",
        &[
            "CREATE ROLE web LOGIN",
            "GRANT USAGE ON SCHEMA awty, awty_http TO web",
            "SELECT awty.allow('http.app', 'web')",
            "ALTER ROLE web SET awty_http.tenant = 'app'",
        ],
    );
    let mut web = http.client("web");
    web.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT awty_http.send('https://api.example.com/x')")
        .unwrap();
    http.cluster.execute("postgres", &["SELECT awty.disallow('http.app', 'web')"]);
    assert_eq!(refused(&mut web, "SELECT awty_http.send('https://api.example.com/x')"), "42501");
}

#[test]
fn only_the_owner_of_the_extension_makes_tenants() {
    let http = Http::open();
    http.cluster.execute("postgres", &["CREATE ROLE late LOGIN", "GRANT USAGE ON SCHEMA awty, awty_http TO late"]);
    let mut late = http.client("late");
    for call in ["add_tenant('late')", "drop_tenant('app')"] {
        assert_eq!(refused(&mut late, &format!("SELECT awty_http.{call}")), "42501", "{call}");
    }
    assert_eq!(refused(&mut late, &format!("SELECT awty_http.schedule('{URI}', '1 h')")), "42501");
    http.ask("other", "SELECT awty.register('http.late')");
    assert_eq!(http.ask("postgres", "SELECT awty_http.add_tenant('late')"), "http.late-2");
    assert_eq!(http.ask("postgres", "SELECT awty_http.add_tenant('late')"), "http.late-2");
    let id = http.ask("late", &format!("SELECT awty_http.schedule('{URI}', '1 h')"));
    assert_eq!(http.ask("late", &format!("SELECT awty_http_internal.id(number, '{URI}') FROM awty_http.tenant")), id);
    assert_ne!(http.ask("app", &format!("SELECT awty_http.schedule('{URI}', '1 h')")), id);
    let error = http.cluster.superuser("postgres").batch_execute("SELECT awty_http.add_tenant('nobody')").unwrap_err();
    assert_eq!(error.code().unwrap().code(), "42704");
}

#[test]
fn names_that_are_taken_in_advance_keep_nobody_out() {
    let http = Http::open();
    http.cluster.execute("postgres", &["CREATE ROLE late LOGIN"]);
    http.ask("other", "SELECT count(awty.register('http.late' || CASE n WHEN 1 THEN '' ELSE '-' || n END)) FROM generate_series(1, 1100) AS n");
    let job = http.ask("postgres", "SELECT awty_http.add_tenant('late')");
    assert!(job.starts_with("http.late-"), "{job}");
    assert_eq!(http.ask("postgres", "SELECT awty_http.add_tenant('late')"), job);
    let long = "ü".repeat(31);
    http.cluster.execute("postgres", &[&format!("CREATE ROLE {long} LOGIN")]);
    http.ask("other", &format!("SELECT awty.register('http.{}')", "ü".repeat(29)));
    let job = http.ask("postgres", &format!("SELECT awty_http.add_tenant('{long}')"));
    assert!(job.starts_with("http.üüü"), "{job}");
    // If another open transaction has registered the job's name, `add_tenant` waits a few seconds, and then takes a
    // different name.
    http.cluster.execute("postgres", &["CREATE ROLE later LOGIN"]);
    let mut other = http.client("other");
    other.batch_execute("BEGIN; SELECT awty.register('http.later')").unwrap();
    let job = http.ask("postgres", "SELECT awty_http.add_tenant('later')");
    assert!(job.starts_with("http.later-"), "{job}");
}

#[test]
fn a_rule_with_the_name_of_a_job_keeps_no_role_in_or_out() {
    let http = Http::open();
    http.cluster.execute("postgres", &["CREATE ROLE late LOGIN"]);
    let watch = |role: &str, rule: &str| {
        let table = format!("CREATE TABLE {role}.t (id int PRIMARY KEY, done boolean)");
        http.client(role).batch_execute(&table).unwrap();
        http.ask(role, &format!("SELECT awty.watch('{role}.t', until => 'done', within => '1 h', rule => '{rule}')"));
    };
    watch("other", "http.late");
    assert_eq!(http.ask("postgres", "SELECT awty_http.add_tenant('late')"), "http.late-2");
    http.ask("app", "SELECT awty.unregister('http.app')");
    watch("app", "http.app");
    http.ask("postgres", "SELECT awty_http.drop_tenant('app')");
    let dropped = "SELECT dropped_at IS NOT NULL FROM awty_http.tenant WHERE role = 'app'::regrole";
    assert_eq!(http.ask("postgres", dropped), "true");
    assert_eq!(http.ask("app", "SELECT rule FROM awty.rule"), "http.app");
    assert_eq!(http.ask("postgres", "SELECT awty_http.add_tenant('app')"), "http.app-2");
}

#[test]
fn a_tenant_that_keeps_its_rows_locked_can_be_dropped() {
    let http = Http::open();
    http.ask("app", &format!("SELECT awty_http.schedule('{URI}', '1 h')"));
    let mut postgres = http.cluster.superuser("postgres");
    postgres.batch_execute("SET statement_timeout = '1min'").unwrap();
    let hold = "awty.hold('https://api.example.com', '/tick', 'http.app')";
    for lock in ["awty_http_internal.lock(id)", "awty_http_internal.lock_limits()", hold] {
        let mut app = http.client("app");
        app.batch_execute(&format!("BEGIN; SELECT {lock} FROM awty_http.endpoint")).unwrap();
        assert_eq!(refused(&mut postgres, "SELECT awty_http.drop_tenant('app')"), "55P03", "{lock}");
        if lock.contains("limits") {
            assert_eq!(refused(&mut postgres, "SELECT awty_http.add_tenant('app')"), "55P03", "{lock}");
        }
    }
    let end = "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE usename = 'app'";
    postgres.batch_execute(end).unwrap();
    postgres.batch_execute("SELECT awty_http.drop_tenant('app')").unwrap();
}

#[test]
fn a_schedule_of_a_transaction_that_was_open_does_not_come_back() {
    let http = Http::open();
    http.ask("app", &format!("SELECT awty_http.schedule('{URI}/first', '1 h')"));
    let mut app = http.client("app");
    app.batch_execute(&format!("BEGIN; SELECT awty_http.schedule('{URI}/second', '1 h')")).unwrap();
    http.ask("postgres", "SELECT awty_http.drop_tenant('app')");
    app.batch_execute("COMMIT").unwrap();
    http.ask("postgres", "SELECT awty_http.add_tenant('app')");
    assert_eq!(http.ask("app", "SELECT count(deleted_at) FROM awty_http.endpoint"), "2");
}

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

#[test]
fn a_role_schedules_for_the_tenant_whose_member_it_is() {
    let http = Http::open();
    http.cluster.execute(
        "postgres",
        &["CREATE ROLE web LOGIN", "GRANT USAGE ON SCHEMA awty, awty_http TO web", "GRANT app TO web"],
    );
    http.ask("web", &format!("SELECT awty_http.schedule('{URI}', '1 h')"));
    assert_eq!(http.ask("web", "SELECT job || ' ' || created_by FROM awty_http.endpoint"), "http.app web");
    http.ask("other", "SELECT awty.allow('http.other', 'web')");
    assert_eq!(http.ask("web", &format!("SELECT awty_http.unschedule('{URI}')")), "true");
    http.cluster.execute("postgres", &["GRANT other TO web"]);
    let mut web = http.client("web");
    assert_eq!(refused(&mut web, &format!("SELECT awty_http.schedule('{URI}', '1 h')")), "21000");
    web.batch_execute(&format!("SET ROLE app; SELECT awty_http.schedule('{URI}', '1 h')")).unwrap();
}

#[test]
fn a_right_that_nobody_asked_for_draws_no_calls() {
    let http = Http::open();
    http.cluster.execute("postgres", &["CREATE ROLE web LOGIN", "GRANT USAGE ON SCHEMA awty, awty_http TO web"]);
    let calls = [format!("SELECT awty_http.send('{URI}')"), format!("SELECT awty_http.schedule('{URI}', '1 h')")];
    http.ask("other", "SELECT awty.allow('http.other', 'web')");
    for call in &calls {
        assert_eq!(refused(&mut http.client("web"), call), "21000");
    }
    assert_eq!(http.ask("other", "SELECT count(*) FROM awty_http_internal.content"), "0");
    http.ask("app", "SELECT awty.allow('http.app', 'web')");
    http.cluster.execute("postgres", &["ALTER ROLE web SET awty_http.tenant = 'app'"]);
    for call in &calls {
        http.ask("web", call);
    }
    assert_eq!(http.ask("app", "SELECT count(*) FROM awty_http_internal.content"), "2");
    http.ask("app", "SELECT awty.disallow('http.app', 'web')");
    assert_eq!(refused(&mut http.client("web"), &calls[0]), "21000");
    http.cluster.execute("postgres", &["ALTER ROLE web IN DATABASE postgres SET awty_http.tenant = 'other'"]);
    http.ask("web", &calls[0]);
    assert_eq!(http.ask("other", "SELECT count(*) FROM awty_http_internal.content"), "1");
}
