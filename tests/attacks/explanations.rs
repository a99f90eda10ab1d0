use crate::field::{DB, Field};
use awty_testkit::fixture::refusal;

#[test]
fn a_stop_since_minus_infinity_breaks_no_explanation_of_another_role() {
    let field = Field::new();
    field.job("alice", "hers", "BEGIN RETURN NULL; END");
    field.sql("alice", "SELECT awty.schedule('orders', '0', 'hers', after => '1 day')");
    field.sql(
        "mallory",
        "CREATE TABLE mallory.orders (id int PRIMARY KEY, s text, halted boolean NOT NULL, at timestamptz);
         SELECT awty.watch('mallory.orders', rule => 'his', until => 's IS NOT NULL', since => 'at', within => '1 s', stopped => 'halted');
         INSERT INTO mallory.orders VALUES (0, NULL, true, '-infinity');
         SELECT awty.allow('his', 'alice', 'read')",
    );
    let explained = || -> String {
        field.one(
            "alice",
            "SELECT string_agg(job || ' ' || regexp_replace(detail, '20[-0-9:.+ ]+', 'T'), '; ' ORDER BY job)
             FROM awty.explain('orders', 0) WHERE job = 'hers' AND event = 'next' OR detail LIKE 'stopped%'",
        )
    };
    assert_eq!(explained(), "hers it is not due yet; his stopped since -infinity");
    field.sql("mallory", "UPDATE mallory.orders SET halted = false; UPDATE mallory.orders SET halted = true");
    assert_eq!(explained(), "hers it is not due yet; his stopped since T");
    field.sql("alice", "SELECT * FROM awty.late");
}

#[test]
fn names_that_are_not_utf8_break_no_explanation() {
    let field = Field::new();
    for (database, encoding, name) in [("latin", "LATIN1", "café"), ("bytes", "SQL_ASCII", "caf\\351")] {
        field.sql(
            "postgres",
            &format!("CREATE DATABASE {database} TEMPLATE template0 ENCODING '{encoding}' LOCALE 'C'"),
        );
        field.cluster.create_extension(database);
        field.cluster.execute(database, &["GRANT USAGE ON SCHEMA awty TO alice, mallory"]);
        let client = |role| field.cluster.client(database, role);
        client("mallory")
            .batch_execute(&format!(
                "SELECT awty.register('his'); SELECT awty.schedule(E'{name}', '1', 'his', after => '1 hour');
                 SELECT awty.allow('his', 'alice', 'read')"
            ))
            .unwrap();
        let mut alice = client("alice");
        alice.batch_execute("SET client_min_messages = warning").unwrap();
        for unknown in ["orders", "caf\\351\\351", "\\351"] {
            let count = format!("SELECT count(*) = 0 FROM awty.explain(E'{unknown}', '1')");
            assert!(alice.query_one(&count, &[]).unwrap().get::<_, bool>(0), "{encoding}: {unknown}");
        }
        let near = "SELECT awty_internal.nearest(E'caf\\351\\351', ARRAY[NULL, 'orders', E'caf\\351']) = E'caf\\351'";
        let mut postgres = client("postgres");
        assert!(postgres.query_one(near, &[]).unwrap().get::<_, bool>(0), "{encoding}");
        let reset = "SELECT awty.alter('his', reset => ARRAY[E'caf\\351'])";
        assert_eq!(refusal(&mut client("mallory"), reset).message, "option \"caf?\" does not exist or has no default");
    }
}

#[test]
fn many_repetitions_of_another_role_make_no_long_explanation() {
    let field = Field::new();
    field.job("alice", "hers", "BEGIN RETURN NULL; END");
    let repeat = |job: &str, starts: &str| {
        format!(
            "awty.repeat({job}, every => '1 hour', entity_name => 'orders', entity_key => '0', starts => now() + interval '{starts}')"
        )
    };
    field.sql("alice", &format!("SELECT {}", repeat("'hers'", "2 days")));
    field.sql(
        "mallory",
        &format!(
            "DO $$ BEGIN FOR n IN 1..130 LOOP
                 PERFORM awty.register('his' || n); PERFORM {}; PERFORM awty.allow('his' || n, 'alice', 'read');
             END LOOP; END $$",
            repeat("'his' || n", "1 day")
        ),
    );
    let shown = "SELECT concat_ws(' ', count(*) FILTER (WHERE detail = 'it is not due yet'), count(*) FILTER (WHERE detail LIKE 'repeated%'),
        count(*) FILTER (WHERE job = 'hers'), string_agg(detail, ';') FILTER (WHERE event = 'left out')) FROM awty.explain('orders', 0)";
    let expected = "100 60 5 31 more pending checks, 111 more repetitions";
    assert_eq!(field.one::<String>("alice", shown), expected);
    field.sql("mallory", "SELECT count(awty.cancel('orders', '0', 'his' || n)) FROM generate_series(1, 120) AS n");
    assert_eq!(field.one::<String>("alice", shown), "11 33 5");
}

#[test]
fn repetitions_that_stand_still_make_no_long_explanation_and_no_long_list_of_findings() {
    let field = Field::new();
    let stand_still = |role: &str, jobs: &str| {
        let calendar =
            |hours: &str, more: &str| format!("SELECT awty.create_calendar('{role}', '{{{hours}}}', 'UTC'{more})");
        field.sql(role, &calendar("mon-sun 00:00-24:00", ""));
        let repeat = "awty.repeat(job, cron => '0 3 * * *', zone => 'UTC', entity_name => 'orders', entity_key => '0'";
        field.sql(
            role,
            &format!(
                "DO $$ DECLARE job text; BEGIN FOR job IN {jobs} LOOP
                     PERFORM awty.register(job); PERFORM {repeat}, calendar => '{role}'); PERFORM awty.allow(job, 'alice', 'read');
                 END LOOP; END $$"
            ),
        );
        field.sql(role, &calendar("mon-sun 12:00-13:00", ", replace => true"));
    };
    let healthy = "awty.repeat('healthy', every => '1 hour', entity_name => 'healthy', entity_key => n::text)";
    field.sql(
        "mallory",
        &format!("SELECT awty.register('healthy'); SELECT {healthy} FROM generate_series(1, 2100) AS n"),
    );
    stand_still("mallory", "SELECT 'his' || n FROM generate_series(1, 130) AS n");
    stand_still("alice", "SELECT 'own'");
    field.cluster.await_sql(
        DB,
        "all to stand still",
        "SELECT count(*) = 131 AND max(next_check_at) IS NULL FROM awty.repetition WHERE job <> 'healthy'",
    );
    let shown = "SELECT concat_ws(' ', count(*) FILTER (WHERE detail LIKE 'calendar \"%\" is closed at all its moments; %'),
        count(*) FILTER (WHERE job = 'own' AND event = 'waiting'), string_agg(detail, ';') FILTER (WHERE event = 'left out')) FROM awty.explain('orders', 0)";
    assert_eq!(field.one::<String>("alice", shown), "20 1 111 more repetitions");
    let found =
        "SELECT concat_ws(' ', count(*), count(*) FILTER (WHERE finding LIKE '%job \"own\"%')) FROM awty.doctor()
        WHERE detail LIKE 'calendar \"%\" is closed at all its moments'";
    assert_eq!(field.one::<String>("alice", found), "100 1");
    assert_eq!(field.one::<String>("postgres", found), "100 1");
}

#[test]
fn blocked_targets_of_another_role_hide_no_blocked_target() {
    let field = Field::new();
    let block = |role: &str, job: &str, targets: i32| {
        field.sql(
            role,
            &format!(
                "SELECT awty.register('{job}'); SELECT awty.allow('{job}', 'alice', 'read');
                 SELECT awty.alter_target('{job}', 't' || n, blocked_until => now() + interval '1 hour') FROM generate_series(1, {targets}) AS n"
            ),
        );
    };
    block("mallory", "aaa", 20);
    block("alice", "own", 1);
    let found =
        "SELECT concat_ws(' ', count(*), count(*) FILTER (WHERE finding LIKE '%job \"own\"%')) FROM awty.doctor()
        WHERE finding LIKE 'target %'";
    assert_eq!(field.one::<String>("alice", found), "20 1");
    assert_eq!(field.one::<String>("postgres", found), "20 1");
}

#[test]
fn alerts_and_stops_of_many_rules_of_another_role_make_no_long_explanation() {
    let field = Field::new();
    let watch = |role: &str, rules: &str, at: &str| {
        field.sql(
            role,
            &format!(
                "CREATE TABLE {role}.orders (id int PRIMARY KEY, s text, halted boolean NOT NULL, at timestamptz);
                 DO $$ DECLARE rule text; BEGIN FOR rule IN {rules} LOOP
                     PERFORM awty.watch('{role}.orders', rule => rule || '_late', until => 's IS NOT NULL', since => 'at', within => '1 s');
                     PERFORM awty.watch('{role}.orders', rule => rule || '_stopped', until => 's IS NOT NULL', since => 'at', within => '1 s',
                         stopped => 'halted');
                     PERFORM awty.allow(rule || '_late', 'alice', 'read'), awty.allow(rule || '_stopped', 'alice', 'read');
                 END LOOP; END $$;
                 INSERT INTO {role}.orders VALUES (0, NULL, true, now() - interval '{at}')"
            ),
        );
    };
    watch("mallory", "SELECT 'his' || n FROM generate_series(1, 25) AS n", "2 days");
    watch("alice", "SELECT 'own'", "1 day");
    field.cluster.await_sql(
        DB,
        "all alerts",
        "SELECT count(*) = 26 FROM awty.alert WHERE cleared_at IS NULL AND level = 1",
    );
    let shown = "SELECT concat_ws(' ', count(*) FILTER (WHERE detail LIKE 'late since %'), count(*) FILTER (WHERE detail LIKE 'stopped since %'),
        string_agg(job, ' ' ORDER BY job) FILTER (WHERE job LIKE 'own%' AND event = 'waiting' AND detail LIKE '% since %'),
        string_agg(detail, ';') FILTER (WHERE event = 'left out')) FROM awty.explain('orders', 0)";
    assert_eq!(field.one::<String>("alice", shown), "20 20 own_late own_stopped 6 more alerts, 6 more stops");
}
