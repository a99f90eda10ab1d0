use crate::field::Field;

/// The function `grab` stores in the table `loot` how many passwords the calling role can read.
fn field() -> Field {
    let field = Field::new();
    field.sql("postgres", "GRANT USAGE ON SCHEMA awty TO alice, mallory");
    field.sql(
        "mallory",
        "CREATE TABLE mallory.loot (who text, passwords bigint); GRANT INSERT ON mallory.loot TO PUBLIC; GRANT USAGE ON SCHEMA mallory TO PUBLIC;
         CREATE FUNCTION mallory.grab() RETURNS boolean LANGUAGE plpgsql AS $$
             DECLARE passwords bigint;
             BEGIN
                 BEGIN
                     SELECT count(*) INTO passwords FROM pg_authid;
                 EXCEPTION WHEN insufficient_privilege THEN
                     NULL;
                 END;
                 INSERT INTO mallory.loot VALUES (current_user, passwords);
                 RETURN false;
             END $$;
         GRANT EXECUTE ON FUNCTION mallory.grab() TO PUBLIC",
    );
    field
}

#[track_caller]
fn mallory_was_alone(field: &Field, at_least: i64) {
    let loot = "SELECT count(*) FILTER (WHERE who <> 'mallory' OR passwords IS NOT NULL), count(*) FROM mallory.loot";
    let row = field.client("postgres").query_one(loot, &[]).unwrap();
    let (others, all): (i64, i64) = (row.get(0), row.get(1));
    assert_eq!(others, 0, "{}", field.cluster.psql("postgres", "SELECT DISTINCT who, passwords FROM mallory.loot"));
    assert!(all >= at_least, "mallory's function was called {all} times");
}

#[test]
fn the_functions_of_a_rule_have_no_more_than_the_table_owners_rights() {
    let field = field();
    field.sql("mallory", "CREATE TABLE mallory.t (id bigint PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), s text); INSERT INTO mallory.t VALUES (1)");
    field.sql(
        "postgres",
        "CREATE TABLE public.told (who text);
         CREATE FUNCTION public.tell(awty.alert) RETURNS void LANGUAGE sql AS 'INSERT INTO public.told VALUES (current_user)';
         SELECT awty.watch('mallory.t', since => 'at', until => $$s = 'y'$$, within => '1 s', existing => 'all', escalate => '{1 day}',
             call => 'public.tell', run_as => 'postgres')",
    );
    field.sql(
        "mallory",
        "CREATE OR REPLACE FUNCTION mallory.awty_t(s text) RETURNS boolean LANGUAGE sql STABLE AS 'SELECT mallory.grab()'",
    );
    field.sql("mallory", "INSERT INTO mallory.t (id) VALUES (2)");
    field.sql("postgres", "INSERT INTO mallory.t (id) VALUES (3)");
    field.cluster.await_sql("postgres", "the alerts", "SELECT count(*) = 3 FROM awty.alert WHERE cleared_at IS NULL");
    field.sql("postgres", "UPDATE awty.rule SET swept_at = '-infinity'; SELECT awty.check_now('t', 2)");
    field.alice_goes_on();
    mallory_was_alone(&field, 5);
    let ran: String = field.one(
        "postgres",
        "SELECT DISTINCT j.role::text || ', ' || t.who FROM awty.job AS j, told AS t WHERE j.job = 't'",
    );
    assert_eq!(ran, "postgres, postgres");
}

/// PostgreSQL evaluates the WHEN condition of a trigger with the rights of the role that writes the row.
#[test]
fn an_update_evaluates_the_condition_as_the_writer() {
    let field = field();
    field.sql(
        "mallory",
        "CREATE TABLE mallory.t (id bigint PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), s text);
         INSERT INTO mallory.t VALUES (1);
         SELECT awty.watch('mallory.t', since => 'at', until => $$s = 'y'$$, within => '1 day', existing => 'none');
         CREATE OR REPLACE FUNCTION mallory.awty_t(s text) RETURNS boolean LANGUAGE sql STABLE AS $$ SELECT CASE WHEN mallory.grab() THEN NULL ELSE s = 'y' END $$;
         GRANT SELECT, UPDATE ON mallory.t TO alice",
    );
    let wrote = |value: &str| -> Vec<String> {
        field.sql("mallory", "TRUNCATE mallory.loot");
        field.sql("alice", &format!("UPDATE mallory.t SET s = '{value}'"));
        field.one("mallory", "SELECT array_agg(DISTINCT who ORDER BY who) FROM mallory.loot")
    };
    assert_eq!(wrote("x"), ["alice"]);
    assert_eq!(wrote("y"), ["alice", "mallory"]);
}

#[test]
fn a_new_owner_runs_no_code_as_the_old_one() {
    let field = field();
    field.sql(
        "alice",
        "CREATE TABLE alice.orders (id bigint PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), s text)",
    );
    field.sql("alice", "SELECT awty.watch('alice.orders', since => 'at', until => $$s = 'y'$$, within => '1 s')");
    field.sql("postgres", "GRANT ALL ON SCHEMA alice TO mallory; ALTER TABLE alice.orders OWNER TO mallory");
    field.sql(
        "mallory",
        "CREATE FUNCTION mallory.awty_orders(s text) RETURNS boolean LANGUAGE sql STABLE AS 'SELECT mallory.grab()';
         CREATE FUNCTION mallory.awty_orders_since(at timestamptz) RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT CASE WHEN NOT mallory.grab() THEN at END';
         CREATE FUNCTION mallory.noop() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
    );
    // Disables the event trigger that prevents DROP TRIGGER, so that mallory, the owner of the table, can replace
    // awty's trigger.
    field.sql("postgres", "ALTER EVENT TRIGGER awty_refuse_drop DISABLE");
    field.sql(
        "mallory",
        "DROP TRIGGER awty_orders_update ON alice.orders;
         CREATE TRIGGER awty_orders_update AFTER UPDATE ON alice.orders FOR EACH ROW
             WHEN (mallory.awty_orders(NEW.s) OR mallory.awty_orders_since(NEW.at) IS NULL) EXECUTE FUNCTION mallory.noop();
         GRANT SELECT ON alice.orders TO alice; INSERT INTO alice.orders (id) VALUES (1)",
    );
    field.sql("postgres", "ALTER EVENT TRIGGER awty_refuse_drop ENABLE");
    let why: String = field.one("postgres", "SELECT why FROM awty.status");
    assert!(why.contains("does not belong to the owner of table alice.orders"), "{why}");
    field.alice_goes_on();
    mallory_was_alone(&field, 0);
    let pending: i64 =
        field.one("postgres", "SELECT count(*) FROM awty.future_job WHERE job = 'orders' AND entity_name = 'orders'");
    assert_eq!(pending, 0);
}

#[test]
fn rights_of_an_old_owner_end_when_the_new_one_replaces_the_rule() {
    let field = field();
    field.cluster.create_user("postgres", "bob");
    field.sql("alice", "CREATE TABLE alice.orders (id bigint PRIMARY KEY, s text)");
    let watch = "awty.watch('alice.orders', until => $$s = 'y'$$, within => '1 h', existing => 'none'";
    field.sql("alice", &format!("SELECT {watch})"));
    for (role, right) in [("alice", "schedule"), ("mallory", "claim")] {
        field.sql("alice", &format!("SELECT awty.allow('orders', '{role}', '{right}')"));
    }
    field.sql("postgres", "GRANT ALL ON SCHEMA alice TO bob; ALTER TABLE alice.orders OWNER TO bob");
    field.sql("bob", &format!("SELECT {watch}, replace => true)"));
    field.refused("alice", "SELECT awty.schedule('orders', '1', 'orders', at => now())", "42501");
    let rights: String = field.one("bob", "SELECT concat(readers, allowed, claimers, registered_by) FROM awty.job");
    assert_eq!(rights, "{}{}{}bob");
    for role in ["alice", "mallory"] {
        assert_eq!(field.one::<i64>(role, "SELECT count(*) FROM awty.job"), 0, "{role}");
    }
}

#[test]
fn repetitions_of_an_old_owner_end_when_the_new_one_replaces_the_rule() {
    let field = field();
    field.cluster.create_user("postgres", "bob");
    field.sql("alice", "CREATE TABLE alice.orders (id bigint PRIMARY KEY, s text)");
    let watch = "awty.watch('alice.orders', until => $$s = 'y'$$, within => '1 h', existing => 'none'";
    let repeat =
        |every| format!("SELECT awty.repeat('orders', every => '{every}', entity_name => 'orders', entity_key => '1')");
    field.sql("alice", &format!("SELECT {watch}); {}; SELECT awty.alter('orders', notify => 'alices')", repeat("1 s")));
    field.sql("postgres", "GRANT ALL ON SCHEMA alice TO bob; ALTER TABLE alice.orders OWNER TO bob");
    let replace = format!("SELECT {watch}, replace => true)");
    let mut alice = field.client("alice");
    alice.batch_execute(&format!("BEGIN; {}", repeat("2 s"))).unwrap();
    field.refused("bob", &replace, "55P03");
    alice.batch_execute("COMMIT").unwrap();
    field.sql("bob", &replace);
    assert_eq!(field.one::<i64>("postgres", "SELECT count(*) FROM awty.repetition"), 0);
    assert_eq!(field.one::<Option<String>>("bob", "SELECT notify FROM awty.job"), None);
    field.cluster.await_sql(
        "postgres",
        "the end of the last repeated check",
        "SELECT NOT EXISTS (SELECT FROM awty.future_job WHERE entity_name = 'orders')",
    );
}

#[test]
fn rules_of_others_add_no_call_to_the_status() {
    let field = field();
    for n in 1..=3 {
        field.sql("mallory", &format!("CREATE TABLE mallory.t{n} (id bigint PRIMARY KEY, at timestamptz, s text); SELECT awty.watch('mallory.t{n}', since => 'at', until => $$s = 'y'$$, within => '1 h')"));
    }
    field.sql(
        "postgres",
        "ALTER ROLE alice SET track_functions = 'all'; ALTER ROLE mallory SET track_functions = 'all'",
    );
    let looks = |role: &str| -> i64 {
        let mut client = field.client(role);
        let mut transaction = client.transaction().unwrap();
        transaction.query_one("SELECT why FROM awty.status", &[]).unwrap();
        let calls =
            "SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_xact_user_functions WHERE funcname = 'cannot_watch'";
        transaction.query_one(calls, &[]).unwrap().get(0)
    };
    assert_eq!((looks("mallory"), looks("alice")), (3, 0));
}

#[test]
fn a_rule_keeps_no_other_role_from_dropping_its_own_objects() {
    let field = field();
    field.sql(
        "alice",
        "CREATE FUNCTION alice.is_done(text) RETURNS boolean LANGUAGE sql IMMUTABLE RETURN $1 = 'done';
         CREATE DOMAIN alice.state AS text; GRANT USAGE ON SCHEMA alice TO mallory",
    );
    field.sql(
        "mallory",
        "CREATE TABLE mallory.called (id bigint PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), s text);
         CREATE TABLE mallory.typed (id bigint PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), s alice.state);
         SELECT awty.watch('mallory.called', since => 'at', until => 'alice.is_done(s)', within => '1 day'),
             awty.watch('mallory.typed', since => 'at', until => $$s = 'done'$$, within => '1 day')",
    );
    for (rule, object) in [("called", "FUNCTION alice.is_done"), ("typed", "DOMAIN alice.state")] {
        field.refused("postgres", &format!("DROP {object} CASCADE"), "2BP01");
        field.sql("alice", &format!("DROP {object} CASCADE"));
        let stopped = format!("SELECT count(*) FROM awty.doctor() WHERE finding = 'rule \"{rule}\" has stopped'");
        assert_eq!(field.one::<i64>("mallory", &stopped), 1, "{rule}");
    }
    assert!(field.one::<bool>("mallory", "SELECT why LIKE 'rule % has stopped: %' FROM awty.status"));
}

#[test]
fn a_rule_is_not_called_with_alerts_of_others() {
    let field = field();
    field.sql(
        "alice",
        "CREATE TABLE alice.orders (id bigint PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), s text);
         SELECT awty.watch('alice.orders', since => 'at', until => $$s = 'y'$$, within => '1 s')",
    );
    field.sql("alice", "INSERT INTO alice.orders (id) VALUES (1), (2)");
    field.cluster.await_sql("postgres", "the alerts", "SELECT count(*) = 2 FROM awty.alert");
    field.sql("alice", "UPDATE alice.orders SET s = 'y' WHERE id = 2");
    field.sql(
        "mallory",
        "CREATE TABLE mallory.t (id bigint PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), s text);
         CREATE TABLE mallory.seen (alert awty.alert);
         CREATE FUNCTION mallory.see(a awty.alert) RETURNS void LANGUAGE sql AS 'INSERT INTO mallory.seen VALUES (a)';
         SELECT awty.watch('mallory.t', since => 'at', until => $$s = 'y'$$, within => '1 s', call_cleared => 'see');
         SELECT awty.schedule('awty.cleared', n::text, 't', after => '0') FROM generate_series(1, 9) AS n",
    );
    field.cluster.await_sql("postgres", "the calls", "SELECT NOT EXISTS (SELECT FROM awty.future_job WHERE job = 't')");
    assert_eq!(field.one::<i64>("postgres", "SELECT count(*) FROM mallory.seen"), 0);
}

/// PostgreSQL refuses a call as ambiguous if a second function has the same name and additional parameters with
/// defaults.
#[test]
fn a_second_function_of_the_same_name_stops_no_rule() {
    let field = field();
    field.sql(
        "alice",
        "GRANT USAGE, CREATE ON SCHEMA alice TO mallory;
         CREATE TABLE alice.heard (what text);
         CREATE FUNCTION alice.tell(awty.alert) RETURNS void LANGUAGE sql AS $$ INSERT INTO alice.heard VALUES ('late') $$;
         CREATE FUNCTION alice.clear(awty.alert) RETURNS void LANGUAGE sql AS $$ INSERT INTO alice.heard VALUES ('cleared') $$;
         CREATE TABLE alice.t (id bigint PRIMARY KEY, at timestamptz, s varchar(9), halted boolean);
         SELECT awty.watch('alice.t', since => 'at', until => $$s = 'y' AND id > 0$$, stopped => 'halted', within => '1 s',
             call => 'alice.tell', call_cleared => 'alice.clear')",
    );
    field.sql(
        "mallory",
        "CREATE FUNCTION alice.awty_t(bigint, varchar, int DEFAULT 1) RETURNS boolean LANGUAGE sql AS 'SELECT true';
         CREATE FUNCTION alice.awty_t(varchar, bigint, int DEFAULT 1) RETURNS boolean LANGUAGE sql AS 'SELECT true';
         CREATE FUNCTION alice.awty_t_since(timestamptz, int DEFAULT 1) RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz';
         CREATE FUNCTION alice.awty_t_stopped(boolean, int DEFAULT 1) RETURNS boolean LANGUAGE sql AS 'SELECT true';
         CREATE FUNCTION alice.tell(awty.alert, int DEFAULT 1) RETURNS void LANGUAGE sql AS '';
         CREATE FUNCTION alice.clear(awty.alert, int DEFAULT 1) RETURNS void LANGUAGE sql AS ''",
    );
    field.sql("alice", "INSERT INTO alice.t VALUES (1, now() - interval '1 h', 'n'), (2, now() - interval '1 h', 'n')");
    field.cluster.await_sql("postgres", "the alerts", "SELECT count(*) = 2 FROM alice.heard");
    field.sql("alice", "UPDATE alice.t SET s = 'y' WHERE id = 1; DELETE FROM alice.t WHERE id = 2");
    field.cluster.await_sql("postgres", "the clearing", "SELECT count(*) = 2 FROM alice.heard WHERE what = 'cleared'");
}

/// The attacker mallory declares a function STABLE that changes the search path. A session that evaluates the function
/// must keep its search path.
#[test]
fn an_expression_changes_no_setting_of_a_session() {
    let field = field();
    field.sql(
        "mallory",
        "CREATE TABLE mallory.t (id bigint PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), s text);
         CREATE FUNCTION mallory.redirect() RETURNS boolean STABLE LANGUAGE plpgsql AS $$
             BEGIN PERFORM set_config('search_path', 'mallory, pg_catalog', false); RETURN false; END $$;
         CREATE FUNCTION mallory.now() RETURNS timestamptz LANGUAGE plpgsql AS $$
             BEGIN PERFORM mallory.grab(); RETURN pg_catalog.now(); END $$",
    );
    field.sql(
        "postgres",
        "CREATE TABLE public.told (at timestamptz);
         CREATE FUNCTION public.tell(awty.alert) RETURNS void LANGUAGE plpgsql AS 'BEGIN INSERT INTO public.told VALUES (now()); END';
         SELECT awty.watch('mallory.t', since => 'at', until => $$s = 'y'$$, within => '1 s', call => 'public.tell', run_as => 'postgres')",
    );
    field.sql(
        "mallory",
        "CREATE OR REPLACE FUNCTION mallory.awty_t(s text) RETURNS boolean LANGUAGE sql STABLE AS 'SELECT mallory.redirect()';
         INSERT INTO mallory.t VALUES (1, pg_catalog.now() - interval '1 h'), (2, pg_catalog.now() + interval '1 day')",
    );
    field.cluster.await_sql("postgres", "the call", "SELECT count(*) = 1 FROM public.told");
    let mut session = field.client("postgres");
    session.batch_execute("INSERT INTO mallory.t (id) VALUES (3)").unwrap();
    let path: String = session.query_one("SHOW search_path", &[]).unwrap().get(0);
    assert_eq!(path, "\"$user\", public");
    mallory_was_alone(&field, 0);
}

#[test]
fn a_long_length_of_a_rule_breaks_no_view_of_another_role() {
    let field = field();
    field.sql("mallory", "CREATE TABLE mallory.t (id int PRIMARY KEY, at timestamptz, s text)");
    let watch = |lengths: &str| {
        format!("SELECT awty.watch('mallory.t', since => 'at', until => $$s = 'y'$$, replace => true, {lengths})")
    };
    field.sql("mallory", "SELECT awty.create_calendar('always', '{mon-sun 00:00-24:00}', 'UTC')");
    for (argument, lengths) in [
        ("within", "within => '36525 days 1 us'"),
        ("escalate", "within => '1 s', escalate => '{1 day, 106750000 days}'"),
        ("remind", "within => '2 s', remind => '{101 years}'"),
        ("every", "within => '1 s', every => '292000 years'"),
        ("remind", "within => '2 s', calendar => 'always', remind => '{36526 days}'"),
        ("every", "within => '2 s', calendar => 'always', every => '876601 hours'"),
    ] {
        let refusal = field.refused("mallory", &watch(lengths), "22023");
        let expected = format!("argument \"{argument}\" must not be longer than 36525 days");
        assert_eq!(refusal.message, expected, "{lengths}");
    }
    field.sql("mallory", &watch("within => '1 s', escalate => '{36525 days}', every => '100 years'"));
    field.sql("mallory", "INSERT INTO mallory.t VALUES (1, now(), NULL); SELECT awty.allow('t', 'alice', 'read')");
    field.cluster.await_sql("postgres", "the alert", "SELECT count(*) = 1 FROM awty.late");
    let next = "SELECT count(next_level_at) FROM awty.late";
    assert_eq!(field.one::<i64>("alice", next), 1);
    // Simulates a rule that was created before awty limited `escalate`.
    field.sql("postgres", "UPDATE awty.rule SET escalate = '{106750000 days}'");
    assert_eq!(field.one::<i64>("alice", next), 0);
    assert_eq!(field.one::<i64>("postgres", "SELECT count(*) FROM awty.late WHERE late_for > '0'"), 1);
}

#[test]
fn a_closed_day_far_ahead_breaks_no_finding_for_others() {
    let field = field();
    let create = |days: &str| format!("SELECT awty.create_calendar('far', '{{mon-sun 00:00-24:00}}', 'UTC', '{days}')");
    let refusal = field.refused("mallory", &create("{2020-01-01, 5874897-12-31, 2020-01-02}"), "22008");
    assert_eq!(refusal.message, "closed day 5874897-12-31 is too far ahead");
    field.sql("mallory", &create("{4713-11-24 BC, 2020-01-01, 262142-12-31}"));
    field.sql(
        "mallory",
        "CREATE TABLE mallory.t (id int PRIMARY KEY, at timestamptz, s text);
         SELECT awty.watch('mallory.t', since => 'at', until => $$s = 'y'$$, within => '1 hour', calendar => 'far')",
    );
    let named = "SELECT count(*) FROM awty.doctor() WHERE finding = 'calendar \"far\" has no closed days ahead'";
    assert_eq!(field.one::<i64>("postgres", named), 0);
    // Simulates a calendar that was created before awty limited closed days.
    field.sql("postgres", "UPDATE awty.calendar SET closed = '{2020-01-01, 2020-01-02, 5874897-12-31}'");
    assert_eq!(field.one::<i64>("postgres", named), 0);
    field.sql("postgres", "UPDATE awty.calendar SET closed = '{4713-11-24 BC, 2020-01-01, 2020-01-02}'");
    let mut postgres = field.client("postgres");
    postgres.batch_execute("SET timezone = 'Asia/Tokyo'").unwrap();
    assert_eq!(postgres.query_one(named, &[]).unwrap().get::<_, i64>(0), 1);
}

/// PostgreSQL's cache of functions keeps the whole parsed expression, and drops nothing.
#[test]
fn long_expressions_of_rules_take_no_memory_of_a_session_that_reads_the_status() {
    let field = field();
    field.sql("mallory", "CREATE TABLE mallory.t (id int PRIMARY KEY, i int, at timestamptz)");
    let watch = |rules: &str, numbers: i32| {
        format!(
            "DO $$ DECLARE numbers text := (SELECT string_agg((n * 7919)::text, ',') FROM generate_series(1, {numbers}) AS n); BEGIN
                 PERFORM awty.watch('mallory.t', format('i IN (%s)', numbers), since => 'at', within => '1 h', existing => 'none', rule => 'r' || n)
                 FROM generate_series({rules}) AS n;
             END $$"
        )
    };
    field.sql("mallory", &watch("1, 1", 2));
    let mut reader = field.client("mallory");
    let mut cached = || -> i64 {
        reader.batch_execute("SELECT why FROM awty.status").unwrap();
        let bytes = "SELECT used_bytes FROM pg_backend_memory_contexts WHERE name = 'CacheMemoryContext'";
        reader.query_one(bytes, &[]).unwrap().get(0)
    };
    field.sql("postgres", "GRANT pg_read_all_stats TO mallory");
    cached();
    let before = cached();
    field.sql("mallory", &watch("2, 17", 10_000));
    let grown = cached() - before;
    let size: i64 =
        field.one("postgres", "SELECT sum(pg_column_size(prosqlbody)) FROM pg_proc WHERE proname ~ '^awty_r'");
    assert!(size > 1_000_000, "{size}");
    assert!(grown < size / 2, "the cache has grown by {grown} bytes, and the expressions have {size}");
    let before = cached();
    field.sql(
        "mallory",
        "ALTER FUNCTION mallory.awty_r1(integer) RENAME TO gone;
         DO $$ BEGIN EXECUTE (
             SELECT format('CREATE FUNCTION mallory.awty_r1(text) RETURNS boolean LANGUAGE plpgsql AS %L',
                 format('BEGIN RETURN true; /* %s */ END', string_agg(md5(n::text), ''))) FROM generate_series(1, 50000) AS n);
         END $$",
    );
    let grown = cached() - before;
    assert!(grown < 800_000, "the cache has grown by {grown} bytes");
}
