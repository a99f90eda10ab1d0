//! Mallory's objects have names that occur in awty's statements. awty must not call mallory's objects, because they
//! would run with the rights of a superuser.

use awty_testkit::Cluster;

use crate::field::{DB, Field};

fn decoys(schema: &str) -> String {
    let mut sql = format!(
        "CREATE TABLE IF NOT EXISTS mallory.caught (who text, what text);
         GRANT INSERT ON mallory.caught TO PUBLIC;
         CREATE FUNCTION {schema}.caught(what text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
             INSERT INTO mallory.caught VALUES (current_user, what); RETURN true;
         END $$;"
    );
    for (name, arguments) in [
        ("lower", "text"),
        ("octet_length", "text"),
        ("min", "timestamptz"),
        ("count", "bigint"),
        ("unnest", "anyarray"),
        ("has_function_privilege", "oid, oid, text"),
        ("pg_has_role", "oid, oid, text"),
        ("array_append", "anyarray, anyelement"),
        ("clock_timestamp", ""),
    ] {
        sql += &format!(
            "CREATE FUNCTION {schema}.{name}({arguments}) RETURNS boolean LANGUAGE sql AS $$ SELECT {schema}.caught('{name}') $$;"
        );
    }
    for (operator, left, right) in [
        ("=", "text", "text"),
        ("=", "bigint", "bigint"),
        ("=", "oid", "oid"),
        ("=", "regrole", "oid"),
        ("<>", "text", "text"),
        (">", "text", "text"),
        ("<=", "timestamptz", "timestamptz"),
        (">", "timestamptz", "timestamptz"),
        ("+", "integer", "integer"),
        ("+", "interval", "interval"),
        ("=", "jsonb", "jsonb"),
        ("~~", "name", "text"),
    ] {
        let function = format!("{schema}.op_{left}_{right}");
        sql += &format!(
            "CREATE OR REPLACE FUNCTION {function}({left}, {right}) RETURNS boolean LANGUAGE sql
                 AS $$ SELECT {schema}.caught('{operator}') $$;
             CREATE OPERATOR {schema}.{operator} (LEFTARG = {left}, RIGHTARG = {right}, FUNCTION = {function});"
        );
    }
    for relation in ["job", "future_job", "future_job_history", "check_stat", "in_flight", "origin", "identity"] {
        sql +=
            &format!("CREATE TABLE {schema}.{relation} (id bigint, job text, next_check_at timestamptz, ctid_ text);");
    }
    for domain in ["regrole", "timestamptz", "interval", "jsonb"] {
        sql += &format!("CREATE DOMAIN {schema}.{domain} AS text CHECK ({schema}.caught('{domain}'));");
    }
    sql
}

#[track_caller]
fn assert_nobody_was_caught(field: &Field) {
    let caught = field.cluster.psql(DB, "SELECT DISTINCT who, what FROM mallory.caught WHERE who <> 'mallory'");
    assert_eq!(caught.trim(), "", "called with the rights of somebody else");
}

#[test]
fn a_run_cannot_put_names_in_the_way_of_its_booking() {
    let field = Field::new();
    field.sql("mallory", &decoys("mallory"));
    let temporary = decoys("pg_temp").replace("IF NOT EXISTS mallory.caught", "pg_temp.unused");
    field.job(
        "mallory",
        "decoy",
        &format!(
            "BEGIN
                 EXECUTE $decoys$ {temporary} $decoys$;
                 SET search_path = pg_temp, mallory, pg_catalog;
                 PERFORM awty.schedule('thing'::pg_catalog.text, 'other'::pg_catalog.text, 'noting'::pg_catalog.text, at => pg_catalog.now());
                 RETURN NULL;
             END"
        ),
    );
    field.sql("mallory", "CREATE TABLE mallory.path (path text, found text)");
    field.job(
        "mallory",
        "noting",
        "BEGIN
             INSERT INTO mallory.path VALUES (current_setting('search_path'), to_regclass('pg_temp.future_job')::text);
             RETURN NULL;
         END",
    );
    field.run("mallory", "decoy").is_done();
    field.run("mallory", "noting").is_done();
    field.cluster.await_sql(
        DB,
        "both",
        "SELECT count(*) = 3 FROM awty.future_job_history WHERE role = 'mallory'::regrole",
    );
    assert_eq!(field.cluster.psql(DB, "SELECT DISTINCT path, found FROM mallory.path").trim(), "\"$user\", public|");
    assert_nobody_was_caught(&field);
    field.alice_goes_on();
}

#[test]
fn a_session_cannot_put_names_in_the_way_of_a_call() {
    let field = Field::new();
    field.sql("postgres", "GRANT CREATE ON SCHEMA public TO mallory");
    field.sql("mallory", &decoys("mallory"));
    field.sql("mallory", &decoys("public"));
    field.job("mallory", "own", "BEGIN RETURN NULL; END");
    for path in ["mallory, public, pg_catalog", "pg_temp, mallory, pg_catalog", "public", "mallory, awty"] {
        field.sql(
            "mallory",
            &format!(
                "SET transform_null_equals = on; SET standard_conforming_strings = off; SET search_path = {path};
                 SELECT awty.schedule('thing', 'e', 'own', after => '1 day');
                 SELECT awty.schedule('thing', 'e', 'own', after => '2 days', on_conflict => 'latest');
                 SELECT awty.cancel('thing', 'e');
                 SELECT awty.pause('own'); SELECT awty.resume('own');
                 SELECT awty.allow('own', 'alice'); SELECT awty.disallow('own', 'alice');
                 SELECT awty.alter('own', max_checks => 7);
                 SELECT awty.next_slot(pg_catalog.now(), 'own');
                 SELECT awty.register('more', 'mallory.own'); SELECT awty.unregister('more')"
            ),
        );
        field.sql(
            "mallory",
            &format!("SET search_path = {path}; TABLE awty.job; TABLE awty.future_job_history; TABLE awty.status"),
        );
    }
    assert_nobody_was_caught(&field);
    field.run("mallory", "own").is_done();
    field.alice_goes_on();
}

#[test]
fn a_type_of_the_same_name_is_another_type() {
    let field = Field::new();
    field.sql(
        "mallory",
        "CREATE VIEW mallory.future_job AS SELECT * FROM awty.future_job;
         CREATE FUNCTION mallory.f(j mallory.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz'",
    );
    field.refused("mallory", "SET search_path = mallory; SELECT awty.register('x', 'mallory.f')", "42883");
    field.refused("mallory", "CREATE CAST (awty.future_job AS text) WITH INOUT AS IMPLICIT", "42501");
}

#[test]
fn a_schema_made_beforehand_stops_the_installation() {
    let cluster = Cluster::builder().start();
    cluster.execute(
        DB,
        &[
            "CREATE ROLE mallory LOGIN",
            "CREATE SCHEMA mallory AUTHORIZATION mallory",
            "GRANT CREATE ON DATABASE postgres TO mallory",
            "GRANT CREATE ON SCHEMA public TO mallory",
        ],
    );
    let mut mallory = cluster.client(DB, "mallory");
    mallory
        .batch_execute(
            "CREATE SCHEMA awty;
             CREATE TYPE awty.future_job AS (id bigint);
             CREATE FUNCTION awty.schedule(text, text, text, timestamptz, interval, jsonb, text) RETURNS bigint
                 LANGUAGE sql AS 'SELECT 1::bigint'",
        )
        .unwrap();
    mallory.batch_execute(&decoys("public")).unwrap();
    let error = cluster.superuser(DB).batch_execute("CREATE EXTENSION awty").unwrap_err();
    assert_eq!(error.as_db_error().unwrap().code().code(), "42P06", "{error:?}");
    assert_eq!(cluster.psql(DB, "SELECT count(*) FROM pg_extension WHERE extname = 'awty'").trim(), "0");

    mallory.batch_execute("DROP SCHEMA awty CASCADE").unwrap();
    cluster.create_extension(DB);
    let caught = cluster.psql(DB, "SELECT DISTINCT who, what FROM mallory.caught WHERE who <> 'mallory'");
    assert_eq!(caught.trim(), "", "called by the install script");
}
