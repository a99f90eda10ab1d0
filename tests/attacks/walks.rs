use crate::field::Field;

fn field() -> Field {
    let field = Field::new();
    field.sql("postgres", "GRANT USAGE ON SCHEMA awty TO alice, mallory");
    field
}

fn calendar(hours: &str) -> String {
    format!("SELECT awty.create_calendar('own', '{{{hours}}}', 'UTC', replace => true)")
}

/// A superuser can become each role, so that it may use each calendar in `awty.due()`.
#[test]
fn a_replaced_calendar_restarts_no_walk_of_a_superuser() {
    let field = field();
    let calendar = |hours: &str| format!("SELECT awty.create_calendar('hers', '{{{hours}}}', 'UTC', replace => true)");
    field.sql("mallory", &calendar("mon-sun 00:00-24:00"));
    field.sql(
        "postgres",
        "CREATE TABLE public.t (id bigint PRIMARY KEY, at timestamptz, s text, calendar text);
         SELECT awty.watch('public.t', due => $$awty.due(at, '1 day', calendar)$$, until => $$s = 'y'$$)",
    );
    let walk = "SELECT walk FROM awty.rule";
    field.cluster.await_sql("postgres", "the walk", "SELECT walk = 'done' FROM awty.rule");
    let mut mallory = field.client("mallory");
    mallory.batch_execute(&format!("BEGIN; {}", calendar("mon 09:00-10:00"))).unwrap();
    field.sql("postgres", "SELECT FROM awty.rule FOR UPDATE NOWAIT");
    mallory.batch_execute("COMMIT").unwrap();
    assert_eq!(field.one::<String>("postgres", walk), "done");
    // The superuser itself moves the checks.
    let mut postgres = field.client("postgres");
    postgres.batch_execute(&format!("BEGIN; {}", calendar("mon-sun 00:00-12:00"))).unwrap();
    assert_eq!(postgres.query_one(walk, &[]).unwrap().get::<_, String>(0), "moved");
}

#[test]
fn a_key_that_cannot_be_read_keeps_no_other_check_of_a_rule_from_its_new_time() {
    let field = field();
    field.sql("alice", &calendar("mon-sun 00:00-24:00"));
    field.sql(
        "alice",
        "CREATE TABLE alice.orders (id bigint PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), s text);
         SELECT awty.watch('alice.orders', since => 'at', until => $$s = 'y'$$, within => '48 hours', calendar => 'own');
         INSERT INTO alice.orders (id) SELECT generate_series(1, 300)",
    );
    field.cluster.await_sql("postgres", "the first walk", "SELECT walk = 'done' FROM awty.rule");
    field.sql(
        "alice",
        "CREATE TABLE alice.old AS SELECT entity_key AS id, next_check_at FROM awty.future_job WHERE entity_name = 'orders';
         SELECT awty.allow('orders', 'mallory', 'schedule')",
    );
    field.sql(
        "mallory",
        "SELECT awty.schedule('orders', key, 'orders', after => '300 days') FROM unnest('{1x,2x,x}'::text[]) AS key",
    );
    field.sql("alice", &calendar("mon-sun 00:00-12:00"));
    let moved = "SELECT count(*) = 300 FROM alice.old JOIN awty.future_job AS f ON f.entity_key = old.id WHERE f.next_check_at <> old.next_check_at";
    field.cluster.await_sql("postgres", "the new times", moved);
    field.cluster.await_sql("postgres", "the end of the walk", "SELECT walk = 'done' FROM awty.rule");
    assert_eq!(field.one::<i64>("postgres", "SELECT count(*) FROM awty.future_job WHERE entity_key LIKE '%x'"), 3);
}

/// `regclass` refuses the name of a missing table by 42P01.
#[test]
fn a_key_that_its_type_refuses_keeps_no_other_check_of_a_rule_from_its_new_time() {
    let field = field();
    field.sql("alice", &calendar("mon-sun 00:00-24:00"));
    field.sql(
        "alice",
        "CREATE TABLE alice.orders (id bigint PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), s text);
         SELECT awty.watch('alice.orders', since => 'at', until => $$s = 'y'$$, within => '48 hours', calendar => 'own');
         INSERT INTO alice.orders (id) SELECT generate_series(1, 300);
         CREATE TABLE alice.parts (id regclass PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), s text);
         SELECT awty.watch('alice.parts', since => 'at', until => $$s = 'y'$$, within => '48 hours', calendar => 'own');
         INSERT INTO alice.parts (id) VALUES ('alice.orders');
         CREATE TABLE alice.pairs (n int, id regclass, at timestamptz NOT NULL DEFAULT now(), s text, PRIMARY KEY (n, id));
         SELECT awty.watch('alice.pairs', since => 'at', until => $$s = 'y'$$, within => '48 hours', calendar => 'own');
         INSERT INTO alice.pairs (n, id) VALUES (1, 'alice.orders')",
    );
    let done = "SELECT bool_and(walk = 'done') FROM awty.rule";
    field.cluster.await_sql("postgres", "the first walks", done);
    field.sql(
        "alice",
        "CREATE TABLE alice.old AS
             SELECT entity_name, entity_key, next_check_at FROM awty.future_job WHERE entity_name IN ('orders', 'parts', 'pairs');
         SELECT awty.allow(job, 'mallory', 'schedule') FROM unnest('{orders,parts,pairs}'::text[]) AS job",
    );
    field.sql(
        "mallory",
        "SELECT awty.schedule('orders', n || 'x', 'orders', after => '300 days') FROM generate_series(1, 500) AS n;
         SELECT awty.schedule('parts', '0_nothing', 'parts', after => '300 days');
         SELECT awty.schedule('pairs', '[\"0\", \"0_nothing\"]', 'pairs', after => '300 days')",
    );
    let number = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint";
    let before: i64 = field.one("postgres", number);
    field.sql("alice", &calendar("mon-sun 00:00-12:00"));
    for (table, rows) in [("parts", 1), ("pairs", 1), ("orders", 300)] {
        let moved = format!(
            "SELECT count(*) = {rows} FROM alice.old JOIN awty.future_job AS f USING (entity_name, entity_key)
             WHERE entity_name = '{table}' AND f.next_check_at <> old.next_check_at"
        );
        field.cluster.await_sql("postgres", &format!("the new times of {table}"), &moved);
    }
    field.cluster.await_sql("postgres", "the ends of the walks", done);
    assert_eq!(field.one::<i64>("postgres", "SELECT count(*) FROM awty.future_job WHERE entity_key LIKE '%x'"), 500);
    assert_eq!(
        field.one::<i64>("postgres", "SELECT count(*) FROM awty.future_job WHERE entity_key LIKE '%0_nothing%'"),
        2
    );
    // The walk takes no lock and no transaction number for each such key, so that many of them do not hold it up.
    let taken = field.one::<i64>("postgres", number) - before;
    assert!(taken < 250, "the walk took {taken} transaction numbers");
}

#[test]
fn an_error_of_all_rows_leaves_out_no_key_of_a_rule() {
    let field = field();
    field.sql("alice", &calendar("mon-sun 00:00-24:00"));
    field.sql(
        "alice",
        "CREATE TABLE alice.final (s text);
         CREATE FUNCTION alice.is_final(s text) RETURNS boolean LANGUAGE plpgsql STABLE AS
             $$BEGIN RETURN EXISTS (SELECT FROM alice.final AS f WHERE f.s = is_final.s); END$$;
         CREATE TABLE alice.orders (id bigint PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), s text);
         SELECT awty.watch('alice.orders', since => 'at', until => 'alice.is_final(s)', within => '48 hours', calendar => 'own');
         INSERT INTO alice.orders (id) SELECT generate_series(1, 10);
         CREATE TABLE alice.parts (id bigint PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), s text);
         SELECT awty.watch('alice.parts', since => 'at', until => $$s = 'y'$$, within => '48 hours', calendar => 'own')",
    );
    field.cluster.await_sql("postgres", "the first walks", "SELECT bool_and(walk = 'done') FROM awty.rule");
    field.sql("alice", "DROP TABLE alice.final; REVOKE SELECT ON alice.parts FROM alice");
    field.sql("alice", &calendar("mon-sun 00:00-12:00"));
    let failed = "SELECT array_agg(sqlstate ORDER BY entity_key) = '{42P01,42501}' FROM awty.failing WHERE entity_name = 'awty.backfill'";
    field.cluster.await_sql("postgres", "the failed walks", failed);
    assert_eq!(field.one::<i64>("postgres", "SELECT count(*) FROM awty.rule WHERE walk = 'done'"), 0);
}

/// Each call of the cast takes a number of the sequence, also if its transaction rolls back.
#[test]
fn the_owner_of_the_type_of_a_key_runs_no_cast_as_the_owner_of_the_table() {
    let field = field();
    field.sql("postgres", "CREATE SEQUENCE public.calls; GRANT ALL ON SEQUENCE public.calls TO PUBLIC");
    field.sql(
        "mallory",
        "CREATE TYPE mallory.state AS ENUM ('a', 'b'); GRANT USAGE ON SCHEMA mallory TO alice;
         CREATE FUNCTION mallory.of_text(t text) RETURNS mallory.state LANGUAGE plpgsql AS
             $$ BEGIN PERFORM nextval('public.calls'); RETURN t; END $$",
    );
    field.job("alice", "tick", "BEGIN RETURN NULL; END");
    field.sql("alice", &calendar("mon-sun 00:00-24:00"));
    // The repetition keeps the worker, which keeps the plan of its statement.
    field.sql(
        "alice",
        "SELECT awty.repeat('tick', every => '1 second');
         CREATE TABLE alice.t (k mallory.state PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), s text);
         SELECT awty.watch('alice.t', since => 'at', until => $$s = 'y'$$, within => '48 hours', calendar => 'own');
         INSERT INTO alice.t (k) VALUES ('a'), ('b')",
    );
    let done = "SELECT walk = 'done' FROM awty.rule";
    field.cluster.await_sql("postgres", "the first walk", done);
    field.sql("alice", &calendar("mon-sun 00:00-23:00"));
    field.cluster.await_sql("postgres", "the walk that plans the statement", done);
    let worker = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'awty worker' AND usename = 'alice'";
    let before: i32 = field.one("postgres", worker);
    // A new cast leaves the plan valid, and the lost right makes the plan fail.
    field.sql(
        "mallory",
        "CREATE CAST (text AS mallory.state) WITH FUNCTION mallory.of_text(text); REVOKE USAGE ON SCHEMA mallory FROM alice",
    );
    field.sql("alice", &calendar("mon-sun 00:00-22:00"));
    let failed = "SELECT sqlstate = '42501' FROM awty.failing WHERE entity_name = 'awty.backfill'";
    field.cluster.await_sql("postgres", "the walk to fail", failed);
    assert_eq!(field.one::<i32>("postgres", worker), before, "another worker has no such plan");
    assert!(!field.one::<bool>("postgres", "SELECT is_called FROM public.calls"), "the cast ran");
}
