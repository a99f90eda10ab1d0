//! A session calls awty for a rule of another role, and has a cursor open.

use crate::field::{DB, Field};
use awty_testkit::fixture::refusal;
use awty_testkit::postgres::Client;

/// Makes a rule whose condition fetches from the cursor `secrets`. The sequence keeps what the condition has found,
/// because `setval()` outlives a rollback.
const SPYING: &str = "
    CREATE SEQUENCE mallory.found;
    CREATE FUNCTION mallory.spy() RETURNS boolean LANGUAGE plpgsql AS $$ DECLARE secrets refcursor := 'secrets'; secret record; BEGIN
        FETCH secrets INTO secret; PERFORM setval('mallory.found', secret.number); RETURN false;
    EXCEPTION WHEN OTHERS THEN RETURN false; END $$;
    CREATE TABLE mallory.t (id bigint PRIMARY KEY, at timestamptz NOT NULL, s text);
    INSERT INTO mallory.t SELECT n, now(), 'n' FROM generate_series(1, 2) AS n;
    BEGIN;
    SELECT awty.watch('mallory.t', since => 'at', until => $$s = 'y'$$, within => '1 day', existing => 'all');
    SELECT awty.hold('awty.backfill', 't', 't'), awty.allow('t', 'alice');
    CREATE OR REPLACE FUNCTION mallory.awty_t(s text) RETURNS boolean LANGUAGE sql STABLE AS 'SELECT mallory.spy()';
    COMMIT";
const CHECKS: &str = "SELECT count(*) FROM awty.future_job WHERE job = 't' AND entity_name = 't'";

/// The test holds the first walk of the rule, because `awty.cancel()` adds checks only until awty has read all rows.
fn spying() -> Field {
    let field = Field::new();
    field.sql("mallory", SPYING);
    assert_eq!(field.one::<i64>("postgres", CHECKS), 0, "the walk has begun");
    field
}

fn with_cursor(field: &Field, role: &str) -> Client {
    let mut client = field.client(role);
    client.batch_execute("BEGIN; DECLARE secrets CURSOR FOR SELECT 4711::bigint AS number").unwrap();
    client
}

#[track_caller]
fn expect_nothing_found(field: &Field, role: &str) {
    let found: i64 = field.one("postgres", "SELECT last_value FROM mallory.found");
    assert_eq!(found, 1, "mallory's function has fetched from the cursor of {role}");
}

#[test]
fn a_hold_shows_no_open_cursor_to_the_owner_of_the_table() {
    let field = spying();
    field.sql("mallory", "SELECT awty.release('awty.backfill', 't', 't')");
    field.cluster.await_sql(DB, "the walk", &format!("SELECT ({CHECKS}) = 2"));
    for role in ["alice", "postgres"] {
        let refused = refusal(&mut with_cursor(&field, role), "SELECT awty.hold('t', '1', 't')");
        assert!(refused.sqlstate == "42501" && refused.message.contains("only the owner"), "{refused:?}");
        expect_nothing_found(&field, role);
    }
    field.sql("mallory", "SELECT awty.hold('t', '1', 't')");
    for role in ["alice", "postgres"] {
        with_cursor(&field, role).batch_execute("SELECT awty.hold('t', '1', 't', note => 'later'); COMMIT").unwrap();
        expect_nothing_found(&field, role);
    }
}

#[test]
fn a_cancel_during_the_first_walk_shows_no_open_cursor_to_the_owner_of_the_table() {
    let field = spying();
    for role in ["alice", "postgres"] {
        let mut client = with_cursor(&field, role);
        let cancelled = "SELECT awty.cancel('t', '1', 't') + awty.cancel_many('t', '{2}', 't')";
        assert_eq!(client.query_one(cancelled, &[]).unwrap().get::<_, i64>(0), 0);
        client.batch_execute("COMMIT").unwrap();
        expect_nothing_found(&field, role);
    }
    assert_eq!(field.one::<i64>("mallory", "SELECT awty.cancel('t', '1', 't')"), 1);
    assert_eq!(field.one::<i64>("postgres", CHECKS), 1);
}
