use crate::field::Field;
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
