use awty_testkit::Cluster;
use awty_testkit::postgres::error::SqlState;

use crate::field::{Field, HELD_UP};

#[test]
fn a_job_that_catches_its_cancellation_is_terminated() {
    let field = Field::new();
    field.job_with(
        "mallory",
        "stubborn",
        "BEGIN
             LOOP BEGIN PERFORM pg_sleep(86400); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP;
         END",
        "timeout => '1 second', max_attempts => 1",
    );
    field.job_with(
        "mallory",
        "busy",
        "BEGIN
             LOOP BEGIN LOOP PERFORM sqrt(2); END LOOP; EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP;
         END",
        "timeout => '1 second', max_attempts => 1",
    );
    let ids = ["stubborn", "busy"].map(|job| field.schedule("mallory", job, job));
    field.alice_goes_on();
    for id in ids {
        let ended = field.end_of(id);
        assert_eq!(ended.why(), ("timed_out", Some("57014")), "{ended:?}");
        assert!(ended.run_time < HELD_UP, "{ended:?}");
    }
    field.alice_goes_on();
}

#[test]
fn no_setting_takes_the_time_limit_away() {
    let field = Field::new();
    field.job_with(
        "mallory",
        "unlimited",
        "BEGIN
             SET statement_timeout = 0; SET lock_timeout = 0; RESET ALL;
             PERFORM set_config('statement_timeout', '0', false);
             PERFORM pg_sleep(86400); RETURN NULL;
         END",
        "timeout => '500 milliseconds', max_attempts => 1",
    );
    let ended = field.run("mallory", "unlimited");
    assert_eq!(ended.why(), ("timed_out", Some("57014")), "{ended:?}");
    assert!(ended.run_time < HELD_UP, "{ended:?}");
}

/// awty refuses `awty.dry_run()` within `awty.dry_run()`, because the inner call would end the timer of the outer call.
#[test]
fn a_trial_within_a_run_changes_no_time_limit() {
    let field = Field::new();
    field.job("mallory", "inner", "BEGIN RETURN NULL; END");
    let body = "BEGIN
        BEGIN PERFORM FROM awty.dry_run('thing', '1', 'inner'); EXCEPTION WHEN object_not_in_prerequisite_state THEN NULL; END;
        PERFORM pg_sleep(60); RETURN NULL;
    END";
    field.job_with("mallory", "outer", body, "timeout => '1 second'");
    let mut client = field.client("mallory");
    let tried = client.query_one("SELECT sqlstate FROM awty.dry_run('thing', '1', 'outer')", &[]).unwrap();
    assert_eq!(tried.get::<_, Option<String>>(0).as_deref(), Some("57014"));
}

/// Like the gateway, the session executes SET ROLE before it calls `awty.dry_run()`. The called functions belong to the
/// attacker mallory.
#[test]
fn a_tried_function_that_catches_its_cancellation_ends_the_session() {
    let field = Field::new();
    let body = "BEGIN
        SET statement_timeout = 0;
        PERFORM pg_sleep(86400);
    EXCEPTION WHEN query_canceled THEN
        PERFORM pg_sleep(20); RETURN NULL;
    END";
    field.job_with("mallory", "quick", body, "timeout => '500 milliseconds'");
    field.job_with("mallory", "daily", body, "timeout => '1 day'");
    for (job, statement_timeout) in [("quick", "0"), ("daily", "1 s")] {
        let mut client = field.client("postgres");
        client.batch_execute(&format!("SET statement_timeout = '{statement_timeout}'; SET ROLE mallory")).unwrap();
        let error = client.query_one("SELECT FROM awty.dry_run('thing', '1', $1)", &[&job]).unwrap_err();
        assert!(error.is_closed() || error.code() == Some(&SqlState::ADMIN_SHUTDOWN), "{job}: {error}");
    }
}

#[test]
fn stack_strings_and_disk_end_before_the_servers_do() {
    let field = Field::with(Cluster::builder().set("temp_file_limit", "10MB"));
    let server = field.cluster.postmaster_pid();
    let position = field.cluster.log_position();
    field.sql(
        "mallory",
        "CREATE FUNCTION mallory.deep(i int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN mallory.deep(i + 1); END $$;
         ",
    );
    for (name, body, sqlstate) in [
        ("recursion", "BEGIN PERFORM mallory.deep(1); RETURN NULL; END", "54001"),
        ("string", "BEGIN PERFORM length(repeat('xx', 2000000000)); RETURN NULL; END", "54000"),
        (
            "files",
            "BEGIN PERFORM count(*) FROM (SELECT DISTINCT random() FROM generate_series(1, 3000000)) AS x; RETURN NULL; END",
            "53400",
        ),
    ] {
        field.try_job("mallory", name, body).failed_with(sqlstate);
    }
    field.alice_goes_on();
    assert_eq!(field.cluster.postmaster_pid(), server);
    let log = field.cluster.log_since(position);
    assert!(!log.contains("terminated by signal") && !log.contains("PANIC"), "{log}");
}

#[test]
fn a_role_has_ten_thousand_jobs_at_most() {
    let field = Field::new();
    field.job("mallory", "own", "BEGIN RETURN NULL; END");
    let register = |from: i32, to: i32| {
        format!(
            "DO $$ BEGIN FOR i IN {from}..{to} LOOP PERFORM awty.register('job' || i, 'mallory.own'); END LOOP; END $$"
        )
    };
    // Registers the last job only, because 9,999 calls take minutes on a busy machine.
    let copies = "INSERT INTO awty.job SELECT (jsonb_populate_record(j, jsonb_build_object('job', 'job' || i))).*
         FROM awty.job AS j, generate_series(2, 9999) AS i WHERE j.job = 'own'";
    field.cluster.execute("postgres", &[copies]);
    field.sql("mallory", &register(10_000, 10_000));
    let refusal = field.refused("mallory", &register(10_001, 10_001), "54000");
    assert!(!refusal.hint.is_empty(), "{refusal:?}");
    field.sql("mallory", "SELECT awty.unregister('job2')");
    field.sql("mallory", &register(10_001, 10_001));
    field.alice_goes_on();
    assert_eq!(field.run("mallory", "job9999").outcome, "done");
}

#[test]
fn calendars_of_a_role_and_limits_of_a_job_are_bounded() {
    let field = Field::new();
    let create = |from: i32, to: i32| {
        format!(
            "SELECT awty.create_calendar('c' || i, '{{mon-sun 00:00-24:00}}', 'UTC') FROM generate_series({from}, {to}) AS i"
        )
    };
    field.sql("mallory", &create(1, 1000));
    field.refused("mallory", &create(1001, 1001), "54000");
    field.sql("mallory", "SELECT awty.drop_calendar('c1')");
    field.sql("mallory", &create(1001, 1001));
    field.sql("mallory", "SELECT awty.register('his')");
    field.sql("postgres", "INSERT INTO awty_internal.target (job, target, concurrency) SELECT 'his', n::text, 1 FROM generate_series(1, 10000) AS n");
    field.refused("mallory", "SELECT awty.alter_target('his', 'one more', concurrency => 1)", "54000");
    field.sql("mallory", "SELECT awty.alter_target('his', '1', concurrency => 2)");
    field.sql("mallory", "SELECT awty.alter_target('his', '1', reset => '{concurrency}'), awty.alter_target('his', 'one more', concurrency => 1)");
    field.alice_goes_on();
}
