//! Attacks by a role that may schedule checks of a rule's job.

use crate::field::{DB, Field};

const TERMS: &str = "since => 'at', until => $$s = 'y'$$, within => '1 s'";

fn watched(more: &str) -> Field {
    let field = Field::new();
    field.sql(
        "alice",
        &format!(
            "CREATE TABLE alice.heard (what text);
             CREATE FUNCTION alice.hear(a awty.alert) RETURNS void LANGUAGE sql AS $$ INSERT INTO alice.heard VALUES ((a).entity_key) $$;
             CREATE TABLE alice.t (id bigint PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), s text);
             SELECT awty.watch('alice.t', {TERMS}, {more} => 'alice.hear'), awty.allow('t', 'mallory');
             INSERT INTO alice.t (id) VALUES (1)"
        ),
    );
    field.cluster.await_sql(DB, "the alert", "SELECT count(*) = 1 FROM awty.alert WHERE told = 1");
    field
}

#[test]
fn only_the_owner_of_a_rule_schedules_checks_of_awtys_own() {
    let field = watched("call_cleared");
    for name in ["awty.backfill", "awty.sweep", "awty.cleared"] {
        for call in [
            format!("awty.schedule('{name}', 't', 't', after => '1 year')"),
            format!("awty.schedule_many('{name}', '{{t}}', 't', after => '1 year')"),
            format!("awty.repeat('t', every => '8000 hours', entity_name => '{name}', entity_key => 't')"),
            format!("awty.hold('{name}', 't', 't')"),
        ] {
            field.refused("mallory", &format!("SELECT {call}"), "42501");
        }
    }
    field.sql("mallory", "SELECT awty.schedule('t', '1', 't', after => '1 day')");
}

#[test]
fn a_check_with_the_id_of_an_alert_keeps_no_row_from_being_met() {
    let field = watched("call_cleared");
    let id: i64 = field.one("postgres", "SELECT id FROM awty.alert");
    field.sql("alice", &format!("SELECT awty.schedule('awty.cleared', '{id}', 't', after => '1 year')"));
    field.sql("alice", "UPDATE alice.t SET s = 'y'");
    field.cluster.await_sql(DB, "the call", "SELECT array_agg(what) = '{1}' FROM alice.heard");
}

#[test]
fn a_row_has_one_alert_whatever_the_spelling_of_its_key() {
    let field = watched("call");
    for key in ["01", " 1", "+1"] {
        let check = field.one("mallory", &format!("SELECT awty.schedule('t', '{key}', 't', after => '0')"));
        field.end_of(check).is_done();
    }
    assert_eq!(field.one::<i64>("postgres", "SELECT count(*) FROM awty.alert"), 1);
    assert_eq!(field.one::<i64>("alice", "SELECT count(*) FROM alice.heard"), 1);
}

#[test]
fn a_check_with_another_spelling_of_a_key_stops_no_walk() {
    let field = Field::new();
    let calendar =
        |hours: &str| format!("SELECT awty.create_calendar('own', '{{mon-sun {hours}}}', 'UTC', replace => true)");
    field.sql("alice", &calendar("00:00-00:30"));
    field.sql(
        "alice",
        "CREATE TABLE alice.t (id bigint PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), s text);
         SELECT awty.watch('alice.t', since => 'at', until => $$s = 'y'$$, within => '10 hours', calendar => 'own');
         INSERT INTO alice.t (id) VALUES (1), (2); SELECT awty.allow('t', 'mallory')",
    );
    field.cluster.await_sql(DB, "the walk", "SELECT walk = 'done' FROM awty.rule");
    field.sql("mallory", "SELECT awty.schedule('t', '1 ', 't', after => '300 days')");
    field.sql("alice", &calendar("00:00-24:00"));
    let moved =
        "SELECT bool_and(next_check_at < now() + interval '1 day') FROM awty.future_job WHERE entity_key IN ('1', '2')";
    field.cluster.await_sql(DB, "the new times", moved);
    field.cluster.await_sql(DB, "the end of the walk", "SELECT walk = 'done' FROM awty.rule");
}
