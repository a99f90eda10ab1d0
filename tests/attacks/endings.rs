//! A rule ends when its owner wants it to, and nothing of it is left for the next owner of its name.

use crate::field::{DB, Field, answer};

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

#[test]
fn an_object_that_uses_a_function_of_a_rule_does_not_keep_the_rule() {
    let field = field();
    let view = "CREATE VIEW mallory.v AS SELECT alice.awty_t(true) AS is_met";
    for change in [
        &format!("SELECT awty.watch('alice.t', {RULE}, escalate => '{{1 day}}', replace => true)"),
        "SELECT awty.unwatch('t')",
        &format!("SELECT awty.watch('alice.t', {RULE})"),
        "DROP TABLE alice.t CASCADE",
    ] {
        if !change.contains("'1 s')") {
            field.sql("mallory", view);
        }
        field.sql("alice", change);
    }
    field.cluster.await_sql(DB, "the rule to end", "SELECT count(*) = 0 FROM awty.rule");
}

#[test]
fn an_unwatch_that_waits_for_a_name_keeps_no_writer_of_the_table_waiting() {
    let field = field();
    field.sql("alice", "SELECT awty.allow('t', 'mallory', 'schedule')");
    let mut open = field.client("mallory");
    open.batch_execute("BEGIN; SELECT awty.schedule('thing', '1', 't', after => '1 day')").unwrap();
    field.sql("alice", "SELECT awty.disallow('t', 'mallory')");
    let mut alice = field.client("alice");
    let waiting = std::thread::spawn(move || answer(&mut alice, "SELECT awty.unwatch('t')"));
    let waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND classid = 'awty.job'::regclass)";
    field.cluster.await_sql(DB, "unwatch to wait", waits);
    field.sql("alice", "SET lock_timeout = '1s'; INSERT INTO alice.t VALUES ('1', now(), true)");
    assert_eq!(waiting.join().unwrap(), "55P03");
    open.batch_execute("COMMIT").unwrap();
    field.sql("alice", "SELECT awty.unwatch('t')");
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
