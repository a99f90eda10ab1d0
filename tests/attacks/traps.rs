//! For a moment, mallory's code runs with another role's rights. The code tries to keep these rights.

use crate::field::{DB, Field};

const TRAP: &str = "
    CREATE FUNCTION mallory.f(j awty.future_job) RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN
        SET ROLE postgres; ALTER ROLE mallory SUPERUSER; RETURN NULL;
    END $$;
    CREATE TABLE mallory.guestbook (t text);
    GRANT USAGE ON SCHEMA mallory TO PUBLIC; GRANT INSERT ON mallory.guestbook TO PUBLIC;
    CREATE FUNCTION mallory.trap() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        PERFORM awty.register('trap', 'mallory.f');
        PERFORM awty.schedule('thing', '1', 'trap', at => now());
        RETURN NEW;
    END $$;
    CREATE TRIGGER trap AFTER INSERT ON mallory.guestbook FOR EACH ROW EXECUTE FUNCTION mallory.trap()";

#[test]
fn a_mighty_role_runs_no_function_that_a_lesser_one_owns() {
    let field = Field::new();
    field.sql(
        "postgres",
        "CREATE ROLE deployer LOGIN; GRANT postgres TO deployer;
         CREATE ROLE grandchild LOGIN NOINHERIT; GRANT deployer TO grandchild;
         CREATE ROLE creator LOGIN CREATEROLE; CREATE ROLE seer LOGIN BYPASSRLS; CREATE ROLE copier LOGIN REPLICATION;
         CREATE ROLE reader LOGIN; GRANT pg_read_server_files TO reader;
         GRANT USAGE ON SCHEMA awty TO PUBLIC",
    );
    field.sql("mallory", TRAP);
    for role in ["postgres", "deployer", "grandchild", "creator", "seer", "copier", "reader"] {
        let refusal = field.refused(role, "INSERT INTO mallory.guestbook VALUES ('hello')", "42501");
        assert!(refusal.message.contains("mallory.f") && refusal.message.contains(role), "{role}: {refusal:?}");
        assert!(!refusal.hint.is_empty());
    }
    assert_eq!(field.cluster.psql(DB, "SELECT count(*) FROM awty.job").trim(), "0");
    assert!(!field.one::<bool>("postgres", "SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'"));
}

#[test]
fn a_function_that_changes_hands_does_not_run_for_a_mighty_role() {
    let field = Field::new();
    field.sql(
        "postgres",
        "CREATE SCHEMA tools;
         CREATE FUNCTION tools.f(j awty.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz';
         SELECT awty.register('tool', 'tools.f', max_attempts => 1)",
    );
    field.run("postgres", "tool").is_done();
    field.sql("postgres", "SELECT awty.pause('tool')");
    let id = field.schedule("postgres", "tool", "2");
    field.sql("postgres", "ALTER FUNCTION tools.f(awty.future_job) OWNER TO mallory");
    field.sql("postgres", "SELECT awty.resume('tool')");
    field.end_of(id).failed_with("42501");
    field.job("mallory", "own", "BEGIN RETURN NULL; END");
    field.sql("postgres", "ALTER ROLE mallory CREATEROLE");
    field.refused("mallory", "SELECT awty.schedule('thing', '1', 'own', at => now())", "42501");
}

#[test]
fn nothing_is_scheduled_from_a_security_restricted_operation() {
    let field = Field::new();
    field.job("mallory", "own", "BEGIN RETURN NULL; END");
    field.sql(
        "mallory",
        "CREATE FUNCTION mallory.plant(text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN
             PERFORM awty.schedule('thing', $1, 'own', after => '1 day'); RETURN $1;
         END $$;
         CREATE TABLE mallory.t (t text); INSERT INTO mallory.t SELECT i::text FROM generate_series(1, 10) AS i;
         CREATE MATERIALIZED VIEW mallory.m AS SELECT mallory.plant(t) FROM mallory.t WITH NO DATA;",
    );
    for (role, statement) in [
        ("mallory", "CREATE INDEX ON mallory.t (mallory.plant(t))"),
        ("mallory", "REFRESH MATERIALIZED VIEW mallory.m"),
        ("postgres", "REFRESH MATERIALIZED VIEW mallory.m"),
        ("postgres", "CREATE INDEX ON mallory.t (mallory.plant(t))"),
    ] {
        let refusal = field.refused(role, statement, "42501");
        assert!(refusal.message.contains("security-restricted operation"), "{statement}: {refusal:?}");
    }
    field.sql("mallory", "TRUNCATE mallory.t; CREATE INDEX ON mallory.t (mallory.plant(t))");
    field.sql("mallory", "INSERT INTO mallory.t VALUES ('x')");
    assert_eq!(field.one::<i64>("mallory", "SELECT awty.cancel('thing', 'x')"), 1);
    for statement in ["ANALYZE mallory.t", "REINDEX TABLE mallory.t", "VACUUM FULL mallory.t"] {
        let refusal = field.refused("postgres", statement, "42501");
        assert!(refusal.message.contains("security-restricted operation"), "{statement}: {refusal:?}");
    }
    for call in [
        "awty.cancel('a', 'b')",
        "awty.unregister('own')",
        "awty.adopt()",
        "awty.pause('own')",
        "awty.release('a', 'b')",
    ] {
        field.sql(
            "mallory",
            &format!(
                "CREATE OR REPLACE FUNCTION mallory.other() RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM {call}; RETURN 1; END $$;
                 DROP MATERIALIZED VIEW IF EXISTS mallory.n;
                 CREATE MATERIALIZED VIEW mallory.n AS SELECT mallory.other() WITH NO DATA"
            ),
        );
        field.refused("postgres", "REFRESH MATERIALIZED VIEW mallory.n", "42501");
    }
    assert_eq!(field.cluster.psql(DB, "SELECT count(*) FROM awty.future_job").trim(), "0");
}
