use crate::field::{DB, Field};

#[test]
fn checks_of_a_role_that_cannot_connect_wait() {
    for (forbid, permit, reason) in [
        ("ALTER ROLE mallory NOLOGIN", "ALTER ROLE mallory LOGIN", "the role has no LOGIN"),
        (
            "REVOKE CONNECT ON DATABASE postgres FROM PUBLIC; GRANT CONNECT ON DATABASE postgres TO alice",
            "GRANT CONNECT ON DATABASE postgres TO mallory",
            "the role has no CONNECT",
        ),
    ] {
        let field = Field::new();
        let version: i32 = field.one("postgres", "SELECT current_setting('server_version_num')::int");
        if version >= 170_000 && reason.contains("LOGIN") {
            continue; // since PostgreSQL 17, a role without LOGIN may have workers
        }
        field.job("mallory", "own", "BEGIN RETURN NULL; END");
        // Schedules the check for later, because awty must not start a worker before the test forbids the role to
        // connect.
        let id: i64 = field.one("mallory", "SELECT awty.schedule('thing', '1', 'own', after => '1 hour')");
        let position = field.cluster.log_position();
        field.sql("postgres", forbid);
        field.sql("postgres", "SELECT awty.check_now('thing', '1')");
        field.cluster.await_log(&["mallory", reason], position);
        field.alice_goes_on();
        assert_eq!(
            field.one::<i64>(
                "postgres",
                &format!("SELECT count(*) FROM awty.future_job WHERE id = {id} AND attempt = 0")
            ),
            1
        );
        assert_eq!(field.cluster.log_since(position).matches(reason).count(), 1);
        field.sql("postgres", permit);
        let ended = field.end_of(id);
        ended.is_done();
        assert_eq!(ended.attempts, 1);
    }
}

#[test]
fn a_connection_limit_is_for_connections() {
    let field = Field::new();
    field.job("mallory", "own", "BEGIN RETURN NULL; END");
    field.sql("postgres", "ALTER ROLE mallory CONNECTION LIMIT 0 VALID UNTIL '2000-01-01'");
    let id: i64 = field.one("postgres", "SELECT awty.schedule('thing', '1', 'own', at => now())");
    field.end_of(id).is_done();
}

#[test]
fn checks_of_a_dropped_role_end_in_the_history() {
    let field = Field::new();
    field.job("mallory", "own", "BEGIN RETURN NULL; END");
    field.sql("mallory", "SELECT awty.pause('own')");
    let id = field.schedule("mallory", "own", "1");
    field.refused("postgres", "DROP ROLE mallory", "2BP01");
    field.sql("postgres", "DROP OWNED BY mallory CASCADE");
    field.sql("postgres", "DROP ROLE mallory");
    field.alice_goes_on();
    field.sql("postgres", "SELECT awty.resume('own')");
    field.cluster.await_sql(
        DB,
        "the slot to pass",
        &format!(
            "SELECT next_check_at < now() FROM awty.future_job WHERE id = {id}
        UNION ALL SELECT true FROM awty.future_job_history WHERE id = {id}"
        ),
    );
    field.sql("alice", "SELECT awty.pause('innocent'); SELECT awty.resume('innocent')");
    field.end_of(id).failed_with("42704");
    field.alice_goes_on();
}

#[test]
fn a_renamed_role_keeps_its_jobs_and_its_name_is_free() {
    let field = Field::new();
    field.job("mallory", "own", "BEGIN RETURN NULL; END");
    field.sql("mallory", "SELECT awty.pause('own')");
    let id = field.schedule("mallory", "own", "1");
    field.sql(
        "postgres",
        "ALTER ROLE mallory RENAME TO marvin; CREATE ROLE mallory LOGIN; GRANT USAGE ON SCHEMA awty, mallory TO mallory",
    );
    field.refused("mallory", "SELECT awty.schedule('thing', '1', 'own', at => now())", "42501");
    assert_eq!(field.one::<i64>("mallory", "SELECT count(*) FROM awty.future_job"), 0);
    assert_eq!(field.one::<i64>("marvin", "SELECT count(*) FROM awty.future_job"), 1);
    field.sql("marvin", "SELECT awty.resume('own')");
    field.end_of(id).is_done();
    let owner = format!("SELECT role::text || ' ' || scheduled_by::text FROM awty.future_job_history WHERE id = {id}");
    assert_eq!(field.one::<String>("marvin", &owner), "marvin marvin");
}

#[test]
fn a_right_to_schedule_can_be_taken_back() {
    let field = Field::new();
    field.job("alice", "shared", "BEGIN RETURN NULL; END");
    field.sql("alice", "SELECT awty.pause('shared')");
    let schedule = "SELECT awty.schedule('thing', '1', 'shared', at => now())";
    field.refused("mallory", schedule, "42501");
    field.sql("alice", "SELECT awty.allow('shared', 'mallory')");
    let id: i64 = field.one("mallory", schedule);
    field.sql("alice", "SELECT awty.disallow('shared', 'mallory')");
    field.refused("mallory", schedule, "42501");
    field.refused("mallory", "SELECT awty.cancel('thing', '1', 'shared')", "42501");
    assert_eq!(field.one::<i64>("mallory", "SELECT awty.cancel('thing', '1')"), 0);
    field.sql("alice", "SELECT awty.resume('shared')");
    field.end_of(id).is_done();
}
