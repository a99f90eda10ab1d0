use crate::field::{DB, Field};

const F: &str =
    "CREATE FUNCTION mallory.f(j awty.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz'";

#[test]
fn a_function_that_was_changed_meanwhile() {
    let cases = [
        ("CREATE OR REPLACE FUNCTION {}(j awty.future_job) RETURNS timestamptz LANGUAGE sql
              AS $$ INSERT INTO mallory.new VALUES (j.job); SELECT NULL::timestamptz $$", ""),
        ("DROP FUNCTION {}(awty.future_job)", "42883"),
        ("DROP FUNCTION {}(awty.future_job); CREATE FUNCTION {}(j bigint) RETURNS timestamptz LANGUAGE sql
              AS 'SELECT NULL::timestamptz'", "42883"),
        ("DROP FUNCTION {}(awty.future_job); CREATE FUNCTION {}(j awty.future_job) RETURNS SETOF timestamptz LANGUAGE sql
              AS 'SELECT now()'", "42P13"),
        ("DROP FUNCTION {}(awty.future_job); CREATE FUNCTION {}(j awty.future_job) RETURNS text LANGUAGE sql
              AS $$ SELECT 'now' $$", "42P13"),
        ("DROP FUNCTION {}(awty.future_job); CREATE PROCEDURE {}(j awty.future_job) LANGUAGE sql AS 'SELECT 1'", "42809"),
        ("DROP FUNCTION {}(awty.future_job); CREATE AGGREGATE {}(awty.future_job) (SFUNC = mallory.step, STYPE = timestamptz)",
              "42809"),
        ("DROP FUNCTION {}(awty.future_job); CREATE FUNCTION {}(j awty.future_job, n int DEFAULT 1) RETURNS timestamptz
              LANGUAGE sql AS 'SELECT now()'", "42883"),
        ("DROP FUNCTION {}(awty.future_job); CREATE FUNCTION {}(VARIADIC j awty.future_job[]) RETURNS timestamptz
              LANGUAGE sql AS 'SELECT now()'", "42883"),
        ("DROP FUNCTION {}(awty.future_job); CREATE FUNCTION {}(j anyelement) RETURNS timestamptz LANGUAGE sql
              AS 'SELECT now()'", "42883"),
        ("REVOKE EXECUTE ON FUNCTION {}(awty.future_job) FROM PUBLIC, mallory", "42501"),
        ("ALTER FUNCTION {}(awty.future_job) RENAME TO other", "42883"),
        ("ALTER FUNCTION {}(awty.future_job) SET SCHEMA elsewhere", "42883"),
    ];
    let field = Field::new();
    field.sql("postgres", "CREATE SCHEMA elsewhere AUTHORIZATION mallory");
    field.sql(
        "mallory",
        "CREATE TABLE mallory.new (job text);
         CREATE FUNCTION mallory.step(timestamptz, awty.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT now()'",
    );
    let mut ids = Vec::new();
    for case in 0..cases.len() {
        let job = format!("f{case}");
        field.job("mallory", &job, "BEGIN RETURN NULL; END");
        field.sql("mallory", &format!("SELECT awty.pause('{job}')"));
        ids.push(field.schedule("mallory", &job, &case.to_string()));
    }
    for (case, (change, _)) in cases.iter().enumerate() {
        field.sql("mallory", &change.replace("{}", &format!("mallory.f{case}")));
    }
    field.sql("mallory", "SELECT awty.resume(job) FROM awty.job");
    for (case, ((change, sqlstate), id)) in cases.iter().zip(ids).enumerate() {
        let ended = field.end_of(id);
        if sqlstate.is_empty() {
            ended.is_done();
            continue;
        }
        assert_eq!(ended.why(), ("failed", Some(*sqlstate)), "{change}: {ended:?}");
        assert!(ended.message().contains(&format!("mallory.f{case}")), "{change}: {ended:?}");
        let schedule = format!("SELECT awty.schedule('thing', '{case}', 'f{case}', at => now())");
        assert_eq!(field.refused("mallory", &schedule, sqlstate).message, ended.message());
    }
    assert_eq!(field.cluster.psql(DB, "SELECT job FROM mallory.new").trim(), "f0");
    field.alice_goes_on();
}

#[test]
fn only_the_exact_function_is_registered() {
    let field = Field::new();
    let head = "CREATE FUNCTION mallory.g";
    for (arguments, result, sqlstate) in [
        ("(j awty.future_job, n int DEFAULT 1)", "timestamptz", "42883"),
        ("(n int)", "timestamptz", "42883"),
        ("()", "timestamp", "42P13"),
        ("(j anyelement)", "timestamptz", "42883"),
        ("(j awty.future_job)", "timestamp", "42P13"),
        ("(j awty.future_job)", "SETOF timestamptz", "42P13"),
        ("(j awty.future_job[])", "timestamptz", "42P13"),
        ("(j awty.future_job)", "timestamptz[]", "42P13"),
    ] {
        let create = format!(
            "{head}{arguments} RETURNS {result} LANGUAGE sql AS 'SELECT NULL::{}'",
            result.trim_start_matches("SETOF ")
        );
        field.sql("mallory", &create);
        let refused = field.refused("mallory", "SELECT awty.register('x', 'mallory.g')", sqlstate);
        assert!(refused.message.contains("mallory.g"), "{arguments}: {refused:?}");
        field.sql("mallory", &format!("DROP FUNCTION mallory.g{}", arguments.replace(" DEFAULT 1", "")));
    }
    let temporary = F.replace("mallory.f", "pg_temp.f");
    field.refused("mallory", &format!("{temporary}; SELECT awty.register('x', 'pg_temp.f')"), "42P13");
    field.refused("mallory", &format!("{temporary}; SELECT awty.register('x', 'f')"), "42883");
    let by_number = "DO $$ BEGIN PERFORM awty.register('x', (SELECT nspname || '.f' FROM pg_namespace WHERE oid = pg_my_temp_schema())); END $$";
    field.refused("mallory", &format!("{temporary}; {by_number}"), "42P13");
}

#[test]
fn the_function_is_found_in_its_own_schema() {
    let field = Field::new();
    field.sql("mallory", F);
    field.sql("mallory", "SET search_path = mallory; SELECT awty.register('job', 'f')");
    assert_eq!(
        field.one::<String>("mallory", "SELECT function_schema || '.' || function_name FROM awty.job"),
        "mallory.f"
    );
    field.sql("postgres", "CREATE SCHEMA first; GRANT ALL ON SCHEMA first TO mallory");
    field.sql(
        "mallory",
        "CREATE FUNCTION first.f(j awty.future_job) RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN RAISE 'the wrong one'; END $$;
         ALTER ROLE mallory SET search_path = first, mallory",
    );
    field.run("mallory", "job").is_done();
}
