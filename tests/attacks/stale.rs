use crate::field::{DB, Field, answer};

const SECRET: &str = "SELECT awty.schedule('thing', 'secret', 'shared', at => now(), args => '\"secret\"')";

fn field_with_guild() -> Field {
    let field = Field::new();
    field.sql(
        "postgres",
        "CREATE ROLE guild LOGIN; CREATE SCHEMA guild AUTHORIZATION guild;
         GRANT USAGE ON SCHEMA awty TO guild; GRANT guild TO alice, mallory",
    );
    field.sql(
        "guild",
        "CREATE FUNCTION guild.f(j awty.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz';
         SELECT awty.register('shared', 'guild.f', max_attempts => 1)",
    );
    field.sql(
        "mallory",
        "CREATE TABLE mallory.seen (who text, args text);
         GRANT USAGE ON SCHEMA mallory TO PUBLIC; GRANT INSERT ON mallory.seen TO PUBLIC;
         CREATE FUNCTION mallory.keep(j awty.future_job) RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN
             INSERT INTO mallory.seen VALUES (current_user, j.args::text); RETURN NULL;
         END $$",
    );
    field
}

const TAKE: &str = "SELECT awty.alter('shared', run_as => 'mallory', function => 'mallory.keep')";

fn take(field: &Field) {
    field.sql("mallory", TAKE);
}

#[track_caller]
fn nothing_was_seen(field: &Field) {
    let ended = "SELECT count(*) = 0 FROM awty.future_job WHERE args IS NOT NULL";
    field.cluster.await_sql(DB, "the check with the secret to end, if it was accepted", ended);
    let seen = field.cluster.psql(DB, "SELECT who, args FROM mallory.seen");
    assert_eq!(seen.trim(), "", "mallory's function was given what alice scheduled");
}

#[test]
fn an_old_snapshot_lends_no_right_that_is_gone() {
    let field = field_with_guild();
    let mut alice = field.client("alice");
    alice.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; TABLE awty.job").unwrap();
    take(&field);
    let answer = answer(&mut alice, SECRET);
    alice.batch_execute("COMMIT").unwrap();
    nothing_was_seen(&field);
    assert!(["42501", "40001"].contains(&answer.as_str()), "{answer:?}");
}

#[test]
fn what_an_old_snapshot_has_read_is_not_remembered() {
    let field = field_with_guild();
    let mut alice = field.client("alice");
    alice.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; TABLE awty.job").unwrap();
    take(&field);
    answer(&mut alice, SECRET);
    alice.batch_execute("ROLLBACK").unwrap();

    let answers = [
        SECRET,
        "SELECT awty.alter('shared', timeout => '1 day')",
        "SELECT awty.pause('shared')",
        "SELECT awty.resume('shared')",
        "SELECT awty.allow('shared', 'alice')",
        "SELECT awty.unregister('shared')",
    ]
    .map(|call| (call, answer(&mut alice, call)));
    nothing_was_seen(&field);
    assert_eq!(answers, answers.clone().map(|(call, _)| (call, "42501".into())));
    let job = "SELECT role, timeout, paused, allowed FROM awty.job WHERE job = 'shared'";
    assert_eq!(field.cluster.psql(DB, job).trim(), "mallory|00:00:30|f|{}");
}

#[test]
fn a_right_that_is_gone_is_gone_in_the_middle_of_a_transaction() {
    let field = field_with_guild();
    let mut alice = field.client("alice");
    let schedule = "SELECT awty.schedule('thing', 'other', 'shared', after => '1 day')";
    alice.batch_execute(&format!("BEGIN; SAVEPOINT s; {schedule}")).unwrap();
    field.refused("mallory", TAKE, "55P03");
    alice.batch_execute("ROLLBACK TO s").unwrap();
    take(&field);
    let answer = answer(&mut alice, SECRET);
    alice.batch_execute("COMMIT").unwrap();
    nothing_was_seen(&field);
    assert_eq!(answer, "42501");
}

#[test]
fn no_session_goes_on_scheduling_for_a_job_that_is_gone() {
    let field = Field::new();
    let schedule = |key: &str| format!("SELECT awty.schedule('thing', '{key}', 'hers', after => '1 day')");
    let before = schedule("before");
    let answers = [
        ("READ COMMITTED", before.as_str()),
        ("REPEATABLE READ", "TABLE awty.job"),
        ("SERIALIZABLE", "TABLE awty.job"),
    ]
    .map(|(isolation, read)| {
        field.sql("alice", "DROP FUNCTION IF EXISTS alice.hers(awty.future_job)");
        field.job("alice", "hers", "BEGIN RETURN NULL; END");
        let mut alice = field.client("alice");
        alice.batch_execute(&format!("BEGIN ISOLATION LEVEL {isolation}; {read}")).unwrap();
        field.sql("alice", "SELECT awty.unregister('hers')");
        let within = answer(&mut alice, &schedule("within"));
        alice.batch_execute("ROLLBACK").unwrap();
        (isolation, within, answer(&mut alice, &schedule("after")))
    });
    for (isolation, within, after) in &answers {
        let refused = ["42704", "40001"].contains(&within.as_str());
        assert!(refused && after == "42704", "{isolation}: {answers:?}");
    }
}
