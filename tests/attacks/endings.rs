//! A rule ends when its owner wants it to, and nothing of it is left for the next owner of its name.

use crate::field::{DB, Field, answer};
use awty_testkit::postgres::Client;

const RULE: &str = "since => 'at', until => 'met', within => '1 s'";

fn field() -> Field {
    let field = Field::new();
    field.sql("postgres", "GRANT USAGE ON SCHEMA alice TO mallory");
    for role in ["alice", "mallory"] {
        field.sql(role, &format!("CREATE TABLE {role}.t (id text PRIMARY KEY, at timestamptz, met boolean)"));
    }
    field.sql("alice", &format!("SELECT awty.watch('alice.t', {RULE})"));
    field
}

const WRITE: &str = "INSERT INTO alice.t VALUES ('1', now(), true)";

fn alice_does_not_wait(field: &Field, sql: &str) {
    field.sql("alice", &format!("SET lock_timeout = '1s'; {sql}"));
}

/// The transaction of `open` has locked an object of `class`. An unwatch by alice waits for it in vain, and alice executes
/// `meanwhile` at once.
#[track_caller]
fn an_unwatch_waits(field: &Field, mut open: Client, class: &str, meanwhile: &str) {
    let mut alice = field.client("alice");
    let waiting = std::thread::spawn(move || answer(&mut alice, "SELECT awty.unwatch('t')"));
    let waits = format!("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND classid = '{class}'::regclass)");
    field.cluster.await_sql(DB, "unwatch to wait", &waits);
    alice_does_not_wait(field, meanwhile);
    assert_eq!(waiting.join().unwrap(), "55P03");
    open.batch_execute("COMMIT").unwrap();
    field.sql("alice", "SELECT awty.unwatch('t')");
}

#[test]
fn an_object_that_uses_a_function_of_a_rule_keeps_nobody_waiting_and_stays() {
    let field = field();
    field.sql("mallory", "CREATE VIEW mallory.v AS SELECT alice.awty_t(true) AS is_met");
    let mut open = field.client("mallory");
    open.batch_execute("BEGIN; SELECT FROM mallory.v").unwrap();
    for change in [
        &format!("SELECT awty.watch('alice.t', {RULE}, escalate => '{{1 day}}', replace => true)"),
        "SELECT awty.unwatch('t')",
        &format!("SELECT awty.watch('alice.t', {RULE})"),
    ] {
        field.sql("alice", &format!("SET lock_timeout = '20s'; {change}"));
    }
    let mut client = field.client("alice");
    for met in ["true", "false"] {
        client.batch_execute(&format!("INSERT INTO alice.t VALUES ('{met}', now(), {met})")).unwrap();
    }
    field.cluster.await_sql(DB, "the alert", "SELECT string_agg(entity_key, '') = 'false' FROM awty.late");
    assert!(field.one::<bool>("mallory", "SELECT is_met FROM mallory.v"));
    open.batch_execute("COMMIT").unwrap();
    field.sql("alice", "SELECT awty.unwatch('t')");
    assert_eq!(field.one::<i64>("alice", "SELECT count(*) FROM pg_proc WHERE proname = 'awty_t'"), 0);
    let left = "SELECT proname::text FROM pg_proc WHERE pronamespace = 'alice'::regnamespace AND proname LIKE 'awty\\_left\\_%'";
    let function: String = field.one("postgres", left);
    field.sql("alice", &format!("DROP TABLE alice.t; DROP FUNCTION alice.{function} CASCADE"));
}

/// The objects of the former owner would otherwise run the code of the next owner with the rights of the former one.
#[test]
fn no_other_role_gets_a_function_that_objects_use() {
    let field = field();
    field.sql("postgres", "GRANT ALL ON SCHEMA alice TO mallory");
    let takes = |table: &str, replace: bool| {
        field.sql("alice", "CREATE TABLE IF NOT EXISTS alice.used (met boolean CHECK (alice.awty_t(met) IS NOT NULL))");
        if replace {
            field.sql("postgres", &format!("ALTER TABLE {table} OWNER TO mallory"));
        } else {
            field.sql("alice", "SELECT awty.unwatch('t')");
            field.sql("mallory", &format!("CREATE TABLE {table} (id text PRIMARY KEY, at timestamptz, met boolean)"));
        }
        field.sql("mallory", &format!("SELECT awty.watch('{table}', rule => 't', {RULE}, replace => {replace})"));
        let owners = "SELECT string_agg(p.proowner::regrole::text, ' ') FROM pg_depend AS d
            JOIN pg_proc AS p ON d.refclassid = 'pg_proc'::regclass AND d.refobjid = p.oid
            JOIN pg_constraint AS c ON d.classid = 'pg_constraint'::regclass AND d.objid = c.oid
            WHERE c.conrelid = 'alice.used'::regclass";
        assert_eq!(field.one::<String>("postgres", owners), "alice", "{table}");
    };
    takes("alice.t", true);
    field.sql("mallory", "SELECT awty.unwatch('t')");
    field.sql("alice", "DROP TABLE alice.used");
    field.sql("postgres", "ALTER TABLE alice.t OWNER TO alice");
    field.sql("alice", &format!("SELECT awty.watch('alice.t', {RULE})"));
    takes("alice.mine", false);
}

#[test]
fn a_function_with_the_comment_of_a_rule_keeps_its_end_not_waiting() {
    let field = field();
    field.sql("postgres", "GRANT ALL ON SCHEMA alice TO mallory");
    field.sql(
        "mallory",
        "CREATE FUNCTION alice.awty_t(integer) RETURNS boolean LANGUAGE sql RETURN true;
         DO $$ BEGIN EXECUTE format('COMMENT ON FUNCTION alice.awty_t(integer) IS %L',
             obj_description('alice.awty_t(boolean)'::regprocedure, 'pg_proc')); END $$",
    );
    let mut open = field.client("mallory");
    open.batch_execute("BEGIN; ALTER FUNCTION alice.awty_t(integer) STABLE").unwrap();
    alice_does_not_wait(&field, "SELECT awty.unwatch('t')");
}

#[test]
fn a_new_owner_replaces_a_function_that_the_former_owner_uses() {
    let field = field();
    field.sql("alice", "CREATE VIEW alice.v AS SELECT alice.awty_t(true) AS is_met");
    field.sql(
        "postgres",
        "GRANT ALL ON SCHEMA alice TO mallory; GRANT CREATE ON DATABASE postgres TO alice;
         ALTER TABLE alice.t OWNER TO mallory",
    );
    field.sql(
        "alice",
        "CREATE EXTENSION hstore SCHEMA alice; ALTER EXTENSION hstore ADD FUNCTION alice.awty_t(boolean)",
    );
    field.sql("mallory", &format!("SELECT awty.watch('alice.t', {RULE}, replace => true)"));
    field.sql("alice", "DROP EXTENSION hstore");
    field.sql("mallory", "INSERT INTO alice.t VALUES ('1', now(), false)");
    field.cluster.await_sql(DB, "the alert", "SELECT EXISTS (SELECT FROM awty.late)");
    field.sql("mallory", "SELECT awty.unwatch('t')");
}

#[test]
fn a_function_that_another_session_has_locked_keeps_no_reader_of_the_table_waiting() {
    let field = field();
    let mut open = field.client("alice");
    open.batch_execute("BEGIN; COMMENT ON FUNCTION alice.awty_t(boolean) IS 'mine'").unwrap();
    an_unwatch_waits(&field, open, "pg_proc", "SELECT FROM alice.t");
}

#[test]
fn an_unwatch_that_waits_for_a_name_keeps_no_writer_of_the_table_waiting() {
    let field = field();
    field.sql("alice", "SELECT awty.allow('t', 'mallory', 'schedule')");
    let mut open = field.client("mallory");
    open.batch_execute("BEGIN; SELECT awty.schedule('thing', '1', 't', after => '1 day')").unwrap();
    field.sql("alice", "SELECT awty.disallow('t', 'mallory')");
    an_unwatch_waits(&field, open, "awty.job", WRITE);
}

/// The second session of mallory queues behind the unwatch, so it gets the name when the unwatch gives it back.
#[test]
fn an_unwatch_that_loses_the_name_again_keeps_no_writer_waiting() {
    let field = field();
    field.sql("alice", "SELECT awty.allow('t', 'mallory', 'schedule')");
    let schedule = |key: &str| format!("BEGIN; SELECT awty.schedule('thing', '{key}', 't', after => '1 day')");
    let waits = |sessions: u32| {
        format!("SELECT count(*) = {sessions} FROM pg_locks WHERE NOT granted AND classid = 'awty.job'::regclass")
    };
    let (mut first, mut second, mut alice) = (field.client("mallory"), field.client("mallory"), field.client("alice"));
    first.batch_execute(&schedule("1")).unwrap();
    let unwatch = std::thread::spawn(move || answer(&mut alice, "SELECT awty.unwatch('t')"));
    field.cluster.await_sql(DB, "unwatch to wait", &waits(1));
    let queued = schedule("2");
    let queued = std::thread::spawn(move || second.batch_execute(&queued).map(|()| second));
    field.cluster.await_sql(DB, "mallory to queue", &waits(2));
    first.batch_execute("COMMIT").unwrap();
    let mut second = queued.join().unwrap().unwrap();
    field.cluster.await_sql(DB, "unwatch to wait again", &waits(1));
    alice_does_not_wait(&field, WRITE);
    second.batch_execute("COMMIT").unwrap();
    assert_eq!(unwatch.join().unwrap(), "");
}

#[test]
fn the_next_owner_of_a_rules_name_is_told_of_no_alert_of_the_former_rule() {
    let field = field();
    field.sql("alice", "INSERT INTO alice.t VALUES ('secret', now(), false)");
    field.cluster.await_sql(DB, "the alert", "SELECT EXISTS (SELECT FROM awty.alert WHERE level = 1)");
    field.sql("alice", "UPDATE alice.t SET met = true; SELECT awty.unwatch('t')");
    let id: i64 = field.one("postgres", "SELECT id FROM awty.alert WHERE cleared_at IS NOT NULL");
    field.sql(
        "mallory",
        &format!(
            "CREATE TABLE mallory.loot (alert awty.alert);
             CREATE FUNCTION mallory.take(a awty.alert) RETURNS void LANGUAGE sql AS 'INSERT INTO mallory.loot VALUES (a)';
             SELECT awty.watch('mallory.t', {RULE}, call_cleared => 'mallory.take')"
        ),
    );
    let check: i64 = field.one("mallory", &format!("SELECT awty.schedule('awty.cleared', '{id}', 't', after => '0')"));
    field.end_of(check);
    assert_eq!(field.one::<i64>("mallory", "SELECT count(*) FROM mallory.loot"), 0);
}
