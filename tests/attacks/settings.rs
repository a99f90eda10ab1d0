use awty_testkit::Cluster;

use crate::field::{DB, Field};

#[test]
fn settings_of_a_run_end_with_it() {
    let field = Field::with(Cluster::builder().set("awty.max_workers_per_role", "1"));
    field.sql(
        "mallory",
        "CREATE TABLE mallory.noted (k text, name text, value text); CREATE TABLE mallory.pid (pid int)",
    );
    field.job(
        "mallory",
        "spoiling",
        "BEGIN
             INSERT INTO mallory.pid VALUES (pg_backend_pid());
             IF j.entity_key <> '2' THEN
                 INSERT INTO mallory.noted SELECT j.entity_key, name, setting FROM pg_settings;
                 INSERT INTO mallory.noted VALUES (j.entity_key, 'mallory.secret', current_setting('mallory.secret', true));
                 INSERT INTO mallory.noted VALUES (j.entity_key, 'locks',
                     (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()));
                 INSERT INTO mallory.noted VALUES (j.entity_key, 'temp', to_regclass('pg_temp.mine')::text);
                 INSERT INTO mallory.noted VALUES (j.entity_key, 'cursors', (SELECT count(*) FROM pg_cursors WHERE is_holdable));
                 INSERT INTO mallory.noted VALUES (j.entity_key, 'prepared', (SELECT count(*) FROM pg_prepared_statements));
                 RETURN NULL;
             END IF;
             SET lock_timeout = 1; SET statement_timeout = 1; SET work_mem = '64kB'; SET row_security = off;
             SET transform_null_equals = on; SET search_path = pg_temp; SET \"mallory.secret\" = 'kept';
             SET default_transaction_read_only = on; SET default_transaction_isolation = 'serializable';
             SET DateStyle = 'German'; SET TimeZone = 'Pacific/Kiritimati'; SET enable_indexscan = off;
             SET client_min_messages = debug5; SET application_name = 'mallory'; SET synchronous_commit = off;
             SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY; SET standard_conforming_strings = off;
             SET exit_on_error = on; SET plan_cache_mode = force_custom_plan;
             PERFORM pg_advisory_lock(1); PERFORM pg_advisory_lock_shared(2);
             CREATE TEMP TABLE mine (i int);
             EXECUTE 'PREPARE p AS SELECT 1';
             EXECUTE 'DECLARE c CURSOR WITH HOLD FOR SELECT 1';
             SET TRANSACTION READ ONLY;
             RETURN NULL;
         END",
    );
    let mut client = field.client("mallory");
    let schedule = "SELECT awty.schedule('thing', k::text, 'spoiling', at => now()) FROM generate_series(1, 3) AS k";
    let ids: Vec<i64> = client.query(schedule, &[]).unwrap().iter().map(|row| row.get(0)).collect();
    ids.into_iter().for_each(|id| field.end_of(id).is_done());

    assert_eq!(field.one::<i64>("mallory", "SELECT count(DISTINCT pid) FROM mallory.pid"), 1, "not the same worker");
    let changed = field.cluster.psql(
        DB,
        "SELECT name, a.value, b.value FROM mallory.noted AS a JOIN mallory.noted AS b USING (name)
         WHERE a.k = '1' AND b.k = '3' AND nullif(a.value, '') IS DISTINCT FROM nullif(b.value, '')",
    );
    assert_eq!(changed.trim(), "");
    assert!(field.one::<i64>("mallory", "SELECT count(*) FROM mallory.noted WHERE k = '3'") > 300);
}

#[test]
fn settings_of_a_role_keep_no_check_from_its_end() {
    let field = Field::new();
    field.job("mallory", "done", "BEGIN RETURN NULL; END");
    field.job("mallory", "failing", "BEGIN RAISE 'no'; END");
    field.job_with("mallory", "asking", "BEGIN RETURN now(); END", "max_checks => 2");
    field.sql("mallory", "CREATE TABLE mallory.u (i int UNIQUE DEFERRABLE INITIALLY DEFERRED)");
    field.job("mallory", "deferring", "BEGIN INSERT INTO mallory.u VALUES (1), (1); RETURN NULL; END");
    for setting in [
        "default_transaction_read_only = on",
        "default_transaction_isolation = 'serializable'",
        "default_transaction_deferrable = on",
        "search_path = pg_temp, mallory",
        "standard_conforming_strings = off",
        "transform_null_equals = on",
        "row_security = off",
        "array_nulls = off",
        "enable_indexscan = off",
        "enable_indexonlyscan = off",
        "enable_bitmapscan = off",
        "enable_nestloop = off",
        "plan_cache_mode = force_custom_plan",
        "force_parallel_mode = regress",
        "jit = on",
        "jit_above_cost = 0",
        "statement_timeout = 1",
        "idle_in_transaction_session_timeout = 1",
        "idle_session_timeout = 1",
        "DateStyle = 'German'",
        "IntervalStyle = 'sql_standard'",
        "TimeZone = 'Pacific/Kiritimati'",
        "client_encoding = 'SJIS'",
        "client_min_messages = 'debug5'",
        "synchronous_commit = 'remote_apply'",
        "default_tablespace = 'nowhere'",
        "work_mem = '64kB'",
        "local_preload_libraries = ''",
        "application_name = 'awty launcher'",
    ] {
        let name = setting.split(' ').next().unwrap();
        if field.one(
            "postgres",
            &format!("SELECT count(*) = 1 FROM pg_settings WHERE name = lower('{name}') OR name = '{name}'"),
        ) {
            field.sql("postgres", &format!("ALTER ROLE mallory SET {setting}"));
        }
    }
    let schedule = |job: &str| -> i64 {
        field.one("postgres", &format!("SELECT awty.schedule('thing', '1', '{job}', at => now())"))
    };
    let ids = ["done", "failing", "asking", "deferring"].map(schedule);
    let [done, failing, asking, deferring] = ids.map(|id| field.end_of(id));
    done.is_done();
    failing.failed_with("P0001");
    assert_eq!((asking.outcome.as_str(), asking.check_count), ("exhausted", 2), "{asking:?}");
    deferring.failed_with("23505");
    field.alice_goes_on();
}

#[test]
fn settings_of_a_database_keep_no_check_from_its_end() {
    let field = Field::new();
    field.sql("postgres", "ALTER DATABASE postgres OWNER TO mallory");
    field.sql(
        "mallory",
        "ALTER DATABASE postgres SET default_transaction_isolation = 'serializable';
         ALTER DATABASE postgres SET search_path = pg_temp;
         ALTER DATABASE postgres SET default_transaction_read_only = on",
    );
    let position = field.cluster.log_position();
    let mut alice = field.client("alice");
    alice
        .batch_execute(
            "BEGIN READ WRITE; SET search_path = alice;
             CREATE FUNCTION alice.f(j awty.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz';
             SELECT awty.register('a', 'alice.f'); COMMIT",
        )
        .unwrap();
    field.cluster.await_sql(DB, "the partitions", "SELECT count(*) > 5 FROM pg_inherits");
    alice.batch_execute("SET default_transaction_read_only = off").unwrap();
    let id: i64 = alice.query_one("SELECT awty.schedule('thing', '1', 'a', at => now())", &[]).unwrap().get(0);
    field.end_of(id).is_done();
    let log = field.cluster.log_since(position);
    // Ignores 55P03 (lock not available), because only a long wait for a lock causes this error.
    let failed = |line: &&str| line.contains("looking after database") && !line.contains("55P03");
    assert_eq!(log.lines().find(failed), None, "{log}");
}

#[test]
fn no_role_changes_a_setting_of_awtys() {
    let field = Field::new();
    for setting in ["awty.enabled = off", "awty.slot = '1h'", "awty.auto_adopt = on", "awty.max_workers = 1"] {
        field.refused("mallory", &format!("SET {setting}"), "55P02");
        field.refused("mallory", &format!("ALTER ROLE mallory SET {setting}"), "55P02");
    }
    field.refused("mallory", "SET awty.anything = on", "42602");
}
