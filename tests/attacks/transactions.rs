use crate::field::{DB, Field};

#[test]
fn no_run_ends_its_own_transaction() {
    let field = Field::new();
    field.sql(
        "mallory",
        "CREATE TABLE mallory.t (i int);
         CREATE PROCEDURE mallory.committing() LANGUAGE plpgsql AS 'BEGIN COMMIT; END'",
    );
    let cases = [
        ("commit", "COMMIT", "2D000"),
        ("rollback", "ROLLBACK", "2D000"),
        ("chain", "COMMIT AND CHAIN", "2D000"),
        ("call", "CALL mallory.committing()", "2D000"),
        ("dynamic", "EXECUTE 'COMMIT'", "0A000"),
        ("savepoint", "EXECUTE 'SAVEPOINT s'", "0A000"),
        ("prepare", "EXECUTE 'PREPARE TRANSACTION ''x'''", "0A000"),
        ("vacuum", "EXECUTE 'VACUUM mallory.t'", "25001"),
        ("create_database", "EXECUTE 'CREATE DATABASE x'", "25001"),
        ("drop_database", "EXECUTE 'DROP DATABASE x'", "25001"),
        ("alter_system", "EXECUTE 'ALTER SYSTEM SET work_mem = 1'", "25001"),
        ("concurrently", "EXECUTE 'CREATE INDEX CONCURRENTLY ON mallory.t (i)'", "25001"),
        ("discard", "EXECUTE 'DISCARD ALL'", "25001"),
        ("isolation", "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "25001"),
    ];
    let body = |statement| format!("BEGIN INSERT INTO mallory.t VALUES (1); {statement}; RETURN NULL; END");
    let jobs = cases.map(|(name, statement, _)| (name, body(statement)));
    for ((_, statement, sqlstate), ended) in cases.iter().zip(field.try_jobs("mallory", &jobs)) {
        assert_eq!(ended.why(), ("failed", Some(*sqlstate)), "{statement}: {ended:?}");
    }
    assert_eq!(field.one::<i64>("mallory", "SELECT count(*) FROM mallory.t"), 0);
    field.alice_goes_on();
}

#[test]
fn what_a_run_may_do_to_its_transaction() {
    let field = Field::new();
    field.sql("mallory", "CREATE TABLE mallory.t (k text)");
    for (name, statement) in [
        ("read_only", "SET TRANSACTION READ ONLY"),
        ("local", "SET LOCAL transaction_read_only = on"),
        ("caught", "BEGIN INSERT INTO mallory.t VALUES ('undone'); RAISE 'x'; EXCEPTION WHEN raise_exception THEN END"),
        ("caught_commit", "BEGIN COMMIT; EXCEPTION WHEN invalid_transaction_termination THEN END"),
        ("temporary", "CREATE TEMP TABLE gone ON COMMIT DROP AS SELECT 1"),
        ("own_check", "PERFORM awty.cancel('thing', 'own_check')"),
    ] {
        field.job(
            "mallory",
            name,
            &format!("BEGIN INSERT INTO mallory.t VALUES ('{name}'); {statement}; RETURN NULL; END"),
        );
        let id = field.schedule("mallory", name, name);
        let ended = field.end_of(id);
        assert_eq!(ended.outcome, "done", "{statement}: {ended:?}");
    }
    let done = field.cluster.psql(DB, "SELECT string_agg(k, ' ' ORDER BY k) FROM mallory.t");
    assert_eq!(done.trim(), "caught caught_commit local own_check read_only temporary");
}
