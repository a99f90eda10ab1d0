use crate::field::{DB, Field};

fn who(field: &Field) -> String {
    field.cluster.psql(DB, "SELECT what, who, session FROM mallory.who ORDER BY what").trim().to_owned()
}

fn field_with_notes() -> Field {
    let field = Field::new();
    field.sql("mallory", "CREATE TABLE mallory.who (what text, who text, session text)");
    field
}

#[test]
fn reset_role_leads_nowhere() {
    let field = field_with_notes();
    let body = |statement: &str| {
        format!(
            "BEGIN {statement}; INSERT INTO mallory.who VALUES ('{statement}', current_user, session_user); RETURN NULL; END"
        )
    };
    let statements = [
        "RESET ROLE",
        "SET ROLE NONE",
        "RESET SESSION AUTHORIZATION",
        "SET SESSION AUTHORIZATION DEFAULT",
        "RESET ALL",
    ];
    for (statement, name) in statements.into_iter().zip(["a", "b", "c", "d", "e"]) {
        field.try_job("mallory", name, &body(statement)).is_done();
    }
    for line in who(&field).lines() {
        assert!(line.ends_with("|mallory|mallory"), "{line}");
    }
    assert_eq!(who(&field).lines().count(), statements.len());
}

#[test]
fn another_role_is_refused() {
    let field = Field::new();
    for (name, statement) in [
        ("a", "SET ROLE postgres"),
        ("b", "SET LOCAL ROLE alice"),
        ("c", "SET SESSION AUTHORIZATION postgres"),
        ("d", "PERFORM set_config('role', 'postgres', false)"),
        ("e", "PERFORM set_config('session_authorization', 'alice', true)"),
        ("f", "EXECUTE 'ALTER ROLE mallory SUPERUSER'"),
        ("g", "EXECUTE 'GRANT postgres TO mallory'"),
    ] {
        field.try_job("mallory", name, &format!("BEGIN {statement}; RETURN NULL; END")).failed_with("42501");
    }
}

#[test]
fn a_role_taken_on_in_a_run_ends_with_it() {
    let field = field_with_notes();
    field.sql("postgres", "CREATE ROLE guild; GRANT guild TO mallory");
    field.job(
        "mallory",
        "changing",
        "BEGIN INSERT INTO mallory.who VALUES (j.entity_key, current_user, session_user); SET ROLE guild; RETURN NULL; END",
    );
    let mut client = field.client("mallory");
    let slot = "SELECT awty.schedule('thing', k::text, 'changing', at => now()) FROM generate_series(1, 5) AS k";
    let ids: Vec<i64> = client.query(slot, &[]).unwrap().iter().map(|row| row.get(0)).collect();
    ids.into_iter().for_each(|id| field.end_of(id).is_done());
    assert_eq!(
        who(&field),
        "1|mallory|mallory\n2|mallory|mallory\n3|mallory|mallory\n4|mallory|mallory\n5|mallory|mallory"
    );
}

#[test]
fn alter_role_set_role_is_not_followed() {
    let field = field_with_notes();
    field.sql("postgres", "CREATE ROLE guild; GRANT guild TO mallory");
    field.job(
        "mallory",
        "noting",
        "BEGIN INSERT INTO mallory.who VALUES ('', current_user, session_user); RETURN NULL; END",
    );
    field.sql("mallory", "ALTER ROLE mallory SET role = 'guild'");
    let id: i64 = field.one("postgres", "SELECT awty.schedule('thing', '1', 'noting', at => now())");
    field.end_of(id).is_done();
    assert_eq!(who(&field), "|mallory|mallory");
}

#[test]
fn no_job_is_registered_for_a_role_that_the_caller_cannot_become() {
    let field = Field::new();
    field.job("mallory", "own", "BEGIN RETURN NULL; END");
    for role in ["alice", "postgres", "pg_database_owner"] {
        field.refused("mallory", &format!("SELECT awty.register('x', 'mallory.own', run_as => '{role}')"), "42501");
        field.refused("mallory", &format!("SELECT awty.alter('own', run_as => '{role}')"), "42501");
    }
    field.refused("mallory", "SELECT awty.register('x', 'mallory.own', run_as => 'nobody')", "42704");
}

#[test]
fn a_tried_function_gets_no_right_of_the_session() {
    let field = Field::new();
    field.sql(
        "mallory",
        "CREATE FUNCTION mallory.back() RETURNS void LANGUAGE sql SECURITY DEFINER AS $$ SELECT set_config('role', 'none', false) $$;
         CREATE TABLE mallory.late (n integer);
         CREATE FUNCTION mallory.at_commit() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RESET ROLE; RETURN NULL; END';
         CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON mallory.late DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION mallory.at_commit()",
    );
    field.job("mallory", "inner", "BEGIN RESET ROLE; RAISE 'inside it is %', current_user; END");
    let body = "DECLARE way text; said text := '';
    BEGIN
        FOREACH way IN ARRAY ARRAY['RESET ROLE', 'SET ROLE postgres', 'SET SESSION AUTHORIZATION DEFAULT', 'SET SESSION AUTHORIZATION postgres',
            'SELECT set_config(''role'', ''postgres'', true)', 'SELECT mallory.back()', 'DO ''BEGIN RESET ROLE; END''',
            'INSERT INTO mallory.late VALUES (1); SET CONSTRAINTS ALL IMMEDIATE', 'CREATE TEMP TABLE pg_class (n integer)',
            'SELECT FROM awty.dry_run(''thing'', ''1'', ''inner'')', 'SELECT FROM awty.travel(''1 day'')'] LOOP
            BEGIN
                EXECUTE way;
            EXCEPTION WHEN OTHERS THEN NULL;
            END;
            IF current_user <> 'mallory' OR current_setting('is_superuser') = 'on' THEN said := said || way || '; '; END IF;
        END LOOP;
        RAISE 'it got: %', said;
    END";
    field.job("mallory", "escape", body);
    for set in ["SET ROLE mallory", "SET SESSION AUTHORIZATION mallory"] {
        let mut client = field.client("postgres");
        client.batch_execute(set).unwrap();
        let mut tried = |job: &str| -> String {
            client.query_one("SELECT message FROM awty.dry_run('thing', '1', $1)", &[&job]).unwrap().get(0)
        };
        assert_eq!(tried("escape"), "it got: ", "{set}");
        assert!(!tried("inner").contains("inside it is"), "{set}");
        assert_eq!(client.query_one("SELECT current_user::text", &[]).unwrap().get::<_, String>(0), "mallory");
    }
}
