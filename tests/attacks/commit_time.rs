use crate::field::{DB, Field};

const NOTED: &str = "
    CREATE TABLE mallory.noted (who text, may_all text);
    CREATE FUNCTION mallory.note() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
        BEGIN SET LOCAL ROLE postgres; EXCEPTION WHEN insufficient_privilege THEN END;
        INSERT INTO mallory.noted VALUES (current_user, current_setting('is_superuser')); RETURN 1;
    END $$;
    CREATE FUNCTION mallory.note_trigger() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        PERFORM mallory.note(); RETURN NULL;
    END $$;
    CREATE TABLE mallory.t (i int);
    CREATE CONSTRAINT TRIGGER late AFTER INSERT ON mallory.t DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION mallory.note_trigger();";

fn noted(field: &Field) -> String {
    field.cluster.psql(DB, "SELECT who, may_all FROM mallory.noted").trim().to_owned()
}

#[test]
fn a_deferred_trigger_has_the_rights_of_the_job() {
    let field = Field::new();
    field.sql("mallory", NOTED);
    field.try_job("mallory", "late", "BEGIN INSERT INTO mallory.t VALUES (1); RETURN NULL; END").is_done();
    assert_eq!(noted(&field), "mallory|off");
}

#[test]
fn a_cursor_with_hold_ends_with_its_run() {
    let field = Field::new();
    field.sql("mallory", NOTED);
    let body = "BEGIN EXECUTE 'DECLARE c CURSOR WITH HOLD FOR SELECT mallory.note()'; RETURN NULL; END";
    field.try_job("mallory", "hold", body).is_done();
    assert_eq!(noted(&field), "");
    field.run("mallory", "hold").is_done();
}

/// The worker runs deferred triggers before it locks the check's row, so that clients do not wait for the triggers.
#[test]
fn no_client_waits_for_what_a_run_left_to_its_commit() {
    let field = Field::new();
    field.sql(
        "mallory",
        "CREATE FUNCTION mallory.slow() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
             PERFORM pg_advisory_xact_lock(77); PERFORM pg_sleep(86400); RETURN 1;
         END $$;
         CREATE FUNCTION mallory.slow_trigger() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             PERFORM mallory.slow(); RETURN NULL;
         END $$;
         CREATE TABLE mallory.second (i int);
         CREATE CONSTRAINT TRIGGER later AFTER INSERT ON mallory.second DEFERRABLE INITIALLY DEFERRED
             FOR EACH ROW EXECUTE FUNCTION mallory.slow_trigger();
         CREATE FUNCTION mallory.defer_again() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             SET CONSTRAINTS ALL DEFERRED; INSERT INTO mallory.second VALUES (1); RETURN NULL;
         END $$;
         CREATE TABLE mallory.first (i int);
         CREATE CONSTRAINT TRIGGER late AFTER INSERT ON mallory.first DEFERRABLE INITIALLY DEFERRED
             FOR EACH ROW EXECUTE FUNCTION mallory.defer_again()",
    );
    let body = "BEGIN INSERT INTO mallory.first VALUES (1); RETURN NULL; END";
    field.job_with("mallory", "again", body, "timeout => '1 day', max_attempts => 1");
    let id = field.schedule("mallory", "again", "again");
    field.await_sign(77);
    assert_eq!(field.one::<i64>("mallory", "SELECT awty.cancel('thing', 'again')"), 1);
    assert_eq!(field.end_of(id).outcome, "cancelled");
    let worker = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objid = 77";
    field.sql("mallory", worker);
    field.cluster.await_sql(DB, "no sign", "SELECT count(*) = 0 FROM pg_locks WHERE locktype = 'advisory'");
    assert_eq!(field.one::<i64>("mallory", "SELECT count(*) FROM mallory.second"), 0);
    field.alice_goes_on();
}

#[test]
fn a_violation_that_was_deferred_undoes_the_run_and_is_archived() {
    let field = Field::new();
    field.sql("mallory", "CREATE TABLE mallory.u (i int UNIQUE DEFERRABLE INITIALLY DEFERRED)");
    field
        .try_job("mallory", "twice", "BEGIN INSERT INTO mallory.u VALUES (1), (1); RETURN NULL; END")
        .failed_with("23505");
    assert_eq!(field.one::<i64>("mallory", "SELECT count(*) FROM mallory.u"), 0);
}

/// The sequence `mallory.tries` counts all attempts, because a rollback does not reset a sequence.
#[test]
fn a_serialization_failure_is_tried_again() {
    let field = Field::new();
    field.sql("mallory", "CREATE SEQUENCE mallory.tries; CREATE TABLE mallory.effect (i bigint)");
    field.job_with(
        "mallory",
        "retried",
        "DECLARE n bigint := nextval('mallory.tries'); BEGIN
             INSERT INTO mallory.effect VALUES (n);
             IF n = 1 THEN RAISE 'not now' USING ERRCODE = 'serialization_failure'; END IF;
             RETURN NULL;
         END",
        "retry_after => '1 second'",
    );
    let ended = field.run("mallory", "retried");
    ended.is_done();
    assert_eq!((ended.attempts, ended.check_count), (2, 1));
    assert_eq!(field.one::<i64>("mallory", "SELECT sum(i)::bigint FROM mallory.effect"), 2);
}
