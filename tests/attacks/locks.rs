use crate::field::{DB, Field, HELD_UP};

#[test]
fn advisory_locks_are_no_locks_of_awtys() {
    let field = Field::new();
    let mut other = field.client("mallory");
    other
        .batch_execute(
            "SELECT count(pg_advisory_lock(i)) FROM generate_series(0, 1999) AS i;
             SELECT count(pg_advisory_lock(i, 0)), count(pg_advisory_lock(0, i)) FROM generate_series(0, 1999) AS i;
             SELECT count(pg_advisory_lock(oid::bigint)) FROM pg_class",
        )
        .unwrap();
    field.alice_goes_on();
    field.job(
        "mallory",
        "keeping",
        "BEGIN PERFORM pg_advisory_lock(5000000); PERFORM pg_advisory_lock_shared(5000001); RETURN NULL; END",
    );
    field.run("mallory", "keeping").is_done();
    field.cluster.await_sql(
        DB,
        "the locks to be gone",
        "SELECT count(*) = 0 FROM pg_locks WHERE locktype = 'advisory' AND objid >= 5000000",
    );
}

#[test]
fn giving_all_locks_back_lets_no_second_run_begin() {
    let field = Field::new();
    field.sql(
        "mallory",
        "CREATE SEQUENCE mallory.running; CREATE SEQUENCE mallory.given_back; CREATE TABLE mallory.ran (k text);
         CREATE TABLE mallory.worker (pid int); CREATE TABLE mallory.door AS SELECT false AS open",
    );
    // The sequence also counts runs that are rolled back, because a rollback does not undo nextval().
    field.job_with(
        "mallory",
        "open",
        "DECLARE before bigint := nextval('mallory.running'); BEGIN
             PERFORM pg_advisory_xact_lock(83);
             WHILE NOT (SELECT open FROM mallory.door) LOOP
                 PERFORM pg_advisory_lock(84);
                 PERFORM pg_advisory_unlock_all();
                 IF NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = 84) THEN
                     PERFORM nextval('mallory.given_back');
                 END IF;
                 PERFORM pg_sleep(0.02);
             END LOOP;
             IF nextval('mallory.running') <> before + 1 THEN RAISE 'overlap' USING ERRCODE = 'AWTY1'; END IF;
             INSERT INTO mallory.ran VALUES (j.entity_key);
             RETURN NULL;
         END",
        "timeout => '1 day', max_attempts => 1",
    );
    let id = field.schedule("mallory", "open", "1");
    field.await_sign(83);
    let pid: i32 = field.one("postgres", "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid = 83");
    // A second worker runs checks of the job `other`. The second worker must not run the due check of the job `open`,
    // because the first worker is still running that check.
    field.job("mallory", "other", "BEGIN INSERT INTO mallory.worker VALUES (pg_backend_pid()); RETURN NULL; END");
    let given_back = "SELECT last_value FROM mallory.given_back";
    for key in 0..4 {
        let before: i64 = field.one("mallory", given_back);
        let other = field.schedule("mallory", "other", &key.to_string());
        field.end_of(other).is_done();
        field.cluster.await_sql(DB, "the locks to be given back", &format!("SELECT ({given_back}) > {before}"));
    }
    let attacked = format!(
        "SELECT (SELECT count(*) = 4 FROM mallory.worker WHERE pid <> {pid})
                AND (SELECT next_check_at < now() FROM awty.future_job WHERE id = {id})"
    );
    assert!(field.one::<bool>("postgres", &attacked), "no second worker met the run that gives back its locks");
    field.sql("mallory", "UPDATE mallory.door SET open = true");
    let ended = field.end_of(id);
    ended.is_done();
    assert_eq!(ended.attempts, 1);
    assert_eq!(field.one::<i64>("mallory", "SELECT count(*) FROM mallory.ran"), 1);
}

#[test]
fn a_client_waits_for_a_row_no_longer_than_the_timeout() {
    let field = Field::new();
    field.sql("mallory", "CREATE TABLE mallory.t (i int); INSERT INTO mallory.t VALUES (1)");
    field.job_with(
        "mallory",
        "locking",
        "BEGIN PERFORM FROM mallory.t FOR UPDATE; PERFORM pg_advisory_xact_lock(80); PERFORM pg_sleep(86400); RETURN NULL; END",
        "timeout => '2 seconds', max_attempts => 1",
    );
    let id = field.schedule("mallory", "locking", "1");
    field.await_sign(80);
    field.sql("mallory", "UPDATE mallory.t SET i = 2");
    let ended = field.end_of(id);
    assert_eq!(ended.outcome, "timed_out");
    assert!(ended.run_time < HELD_UP, "{ended:?}");
}

#[test]
fn of_two_jobs_in_a_deadlock_one_is_tried_again() {
    let field = Field::new();
    field.sql("postgres", "CREATE TABLE public.pair (i int, n int); INSERT INTO public.pair VALUES (1, 0), (2, 0); GRANT ALL ON public.pair TO alice, mallory");
    for (role, job, first, second) in [("alice", "hers", 1, 2), ("mallory", "his", 2, 1)] {
        field.job_with(
            role,
            job,
            &format!(
                "BEGIN
                     UPDATE public.pair SET n = n + 1 WHERE i = {first};
                     PERFORM pg_advisory_xact_lock_shared({first});
                     -- Waits for the other run. At a second attempt, the other run may have ended.
                     WHILE j.attempt = 0
                           AND NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = {second}) LOOP
                         PERFORM pg_sleep(0.02);
                     END LOOP;
                     UPDATE public.pair SET n = n + 1 WHERE i = {second};
                     RETURN NULL;
                 END"
            ),
            "timeout => '1 day', retry_after => '1 second'",
        );
    }
    let ids = [field.schedule("alice", "hers", "1"), field.schedule("mallory", "his", "1")];
    let ended = ids.map(|id| field.end_of(id));
    ended.iter().for_each(awty_testkit::fixture::End::is_done);
    assert_eq!(ended.iter().map(|ended| ended.attempts).sum::<i32>(), 3, "{ended:?}");
    assert_eq!(field.cluster.psql(DB, "SELECT sum(n) FROM public.pair").trim(), "4");
    field.cluster.await_sql(
        DB,
        "one deadlock",
        "SELECT deadlocks = 1 FROM pg_stat_database WHERE datname = 'postgres'",
    );
}

#[test]
fn a_lock_on_the_extension_holds_up_no_run() {
    let field = Field::new();
    field.sql("mallory", "CREATE FUNCTION mallory.f() RETURNS int LANGUAGE sql AS 'SELECT 1'");
    field.alice_goes_on();
    let mut holding = field.client("mallory");
    holding.batch_execute("BEGIN; ALTER FUNCTION mallory.f() DEPENDS ON EXTENSION awty").unwrap();
    field.alice_goes_on();
    holding.batch_execute("ROLLBACK").unwrap();

    let long = "BEGIN PERFORM pg_advisory_xact_lock(81); PERFORM pg_sleep(86400); RETURN NULL; END";
    field.job_with("mallory", "long", long, "timeout => '1 day'");
    field.schedule("mallory", "long", "1");
    field.await_sign(81);
    field.refused("mallory", "DROP EXTENSION awty", "42501");
    field.alice_goes_on();
}

#[test]
fn an_open_transaction_holds_up_no_foreign_check() {
    let field = Field::new();
    let mut reading = field.client("mallory");
    reading
        .batch_execute("BEGIN; TABLE awty.job; TABLE awty.future_job; TABLE awty.future_job_history; TABLE awty.status")
        .unwrap();
    field.alice_goes_on();

    field.job("mallory", "own", "BEGIN RETURN NULL; END");
    field.job("alice", "hers", "BEGIN RETURN NULL; END");
    let due: i64 = field.one("alice", "SELECT awty.schedule('thing', 'shared', 'hers', after => '2 seconds')");
    let mut calling = field.client("mallory");
    calling
        .batch_execute(
            "BEGIN;
             SELECT awty.schedule('thing', 'shared', 'own', after => '1 day');
             SELECT awty.cancel('thing', 'shared');
             SELECT awty.register('another', 'mallory.own');
             SELECT awty.alter('own', max_checks => 9);
             SELECT awty.pause('own');
             SELECT awty.allow('own', 'alice');
             SELECT awty.unregister('another')",
        )
        .unwrap();
    field.end_of(due).is_done();
    field.sql(
        "alice",
        "SELECT awty.schedule('thing', 'shared', 'hers', after => '1 day');
         SELECT awty.schedule('thing', 'shared', 'hers', after => '2 days');
         SELECT awty.cancel('thing', 'shared');
         SELECT awty.register('more', 'alice.hers'); SELECT awty.unregister('more')",
    );
    field.alice_goes_on();
    calling.batch_execute("ROLLBACK").unwrap();
    reading.batch_execute("ROLLBACK").unwrap();
    field.sql("alice", "SELECT awty.pause('hers'); SELECT awty.resume('hers')");
    field.cluster.await_sql(DB, "the partitions", "SELECT count(*) > 5 FROM pg_inherits");
}

/// awty must check the caller's rights before it takes a lock. PostgreSQL sends an error before it releases locks, so a
/// caller that does not read the error could keep the lock.
#[test]
fn a_role_without_the_right_waits_for_no_lock_of_a_job_or_calendar() {
    let field = Field::new();
    field.job("alice", "pulse", "BEGIN RETURN NULL; END");
    field.job("mallory", "own", "BEGIN RETURN NULL; END");
    field.sql("alice", "SELECT awty.create_calendar('office', '{mon-fri 09:00-17:00}', 'UTC')");
    let mut alice = field.client("alice");
    alice
        .batch_execute(
            "BEGIN; SELECT awty.pause('pulse'); SELECT awty.create_calendar('office', '{mon-fri 08:00-17:00}', 'UTC', replace => true)",
        )
        .unwrap();
    for (call, sqlstate) in [
        ("awty.pause('pulse')", "42501"),
        ("awty.resume('pulse')", "42501"),
        ("awty.alter('pulse', timeout => '1 s')", "42501"),
        ("awty.allow('pulse', 'mallory', 'read')", "42501"),
        ("awty.disallow('pulse', 'mallory')", "42501"),
        ("awty.unregister('pulse')", "42501"),
        ("awty.alter_target('pulse', 'a', concurrency => 1)", "42501"),
        ("awty.register('pulse')", "42710"),
        ("awty.create_calendar('office', '{mon-fri 07:00-17:00}', 'UTC', replace => true)", "42710"),
        ("awty.drop_calendar('office')", "42704"),
        ("awty.repeat('own', every => '1 hour', calendar => 'office')", "42704"),
        ("awty.watch('mallory.t', until => 's IS NOT NULL', within => '1 hour', calendar => 'office')", "42704"),
    ] {
        if call.contains("mallory.t") {
            field
                .sql("mallory", "CREATE TABLE mallory.t (id bigint PRIMARY KEY, at timestamptz DEFAULT now(), s text)");
        }
        field.refused("mallory", &format!("SELECT {call}"), sqlstate);
    }
    alice.batch_execute("COMMIT").unwrap();
}

#[test]
fn an_open_first_registration_keeps_no_other_role_waiting() {
    let field = Field::new();
    let mut mallory = field.client("mallory");
    mallory.batch_execute("BEGIN; SELECT awty.register('first')").unwrap();
    field.refused("alice", "SELECT awty.register('second')", "55P03");
    field.refused("postgres", "SELECT awty.adopt()", "55P03");
    mallory.batch_execute("ROLLBACK").unwrap();
    field.sql("alice", "SELECT awty.register('second')");
    field.alice_goes_on();
}

#[test]
fn a_first_repetition_by_another_role_locks_no_job() {
    let field = Field::new();
    field.job("alice", "hers", "BEGIN RETURN NULL; END");
    field.sql("alice", "SELECT awty.allow('hers', 'mallory')");
    let mut holding = field.client("mallory");
    let repeat = "SELECT awty.repeat('hers', every => '1 hour', entity_name => 'thing', entity_key => '1')";
    holding.batch_execute(&format!("BEGIN; {repeat}")).unwrap();
    field.sql("alice", "SELECT awty.pause('hers', 'short', clock_timestamp() + interval '1 second')");
    field.cluster.await_sql(DB, "the end of the pause", "SELECT NOT paused FROM awty.job WHERE job = 'hers'");
    field.sql("alice", "SELECT awty.alter('hers', max_checks => 9); SELECT awty.disallow('hers', 'mallory')");
    field.sql("alice", "SELECT awty.unregister('hers')");
    holding.batch_execute("ROLLBACK").unwrap();
}

/// `alice` did not ask for the right `read`.
#[test]
fn a_locked_table_with_a_rule_keeps_nobody_from_looking() {
    let field = Field::new();
    field.sql(
        "mallory",
        "CREATE TABLE mallory.t (id bigint PRIMARY KEY, at timestamptz NOT NULL, s text);
         SELECT awty.watch('mallory.t', since => 'at', until => $$s = 'y'$$, within => '1 day'), awty.allow('t', 'alice', 'read')",
    );
    let mut locking = field.client("mallory");
    locking.batch_execute("BEGIN; LOCK TABLE mallory.t IN ACCESS EXCLUSIVE MODE").unwrap();
    for role in ["alice", "postgres"] {
        let mut client = field.client(role);
        client.batch_execute("SET statement_timeout = '1min'").unwrap();
        for look in ["SELECT why FROM awty.status", "SELECT awty.healthy()", "SELECT count(*) FROM awty.doctor()"] {
            client.query(look, &[]).unwrap_or_else(|error| panic!("{role}: {look}: {error:?}"));
        }
    }
    locking.batch_execute("COMMIT").unwrap();
}
