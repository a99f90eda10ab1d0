//! Attacks on the maintainer, which works for all roles.

use crate::field::{DB, Field, answer};
use awty_testkit::Cluster;

const NOTHING: &str = "BEGIN RETURN NULL; END";

fn two_jobs(body: &str) -> Field {
    let field = Field::new();
    for role in ["mallory", "alice"] {
        field.job(role, &format!("{role}s"), body);
        field.sql(
            role,
            &format!("SELECT awty.repeat('{role}s', every => '1 hour', entity_name => 'e', entity_key => '{role}')"),
        );
    }
    field
}

fn inspect(field: &Field) {
    field.sql("postgres", "SELECT awty.pause('alices'), awty.resume('alices')");
}

/// A hold that is committed after the end of its run is lost until the maintainer copies the hold to the next check.
#[test]
fn an_open_hold_keeps_no_lost_hold_of_another_role_from_its_check() {
    let field = two_jobs("BEGIN PERFORM pg_advisory_xact_lock_shared(7); RETURN NULL; END");
    let mut gate = field.client("postgres");
    gate.batch_execute("SELECT pg_advisory_lock(7)").unwrap();
    let hold = |role: &str| {
        let mut client = field.client(role);
        client.batch_execute(&format!("BEGIN; SELECT awty.hold('e', '{role}', '{role}s')")).unwrap();
        client
    };
    field.sql("postgres", "SELECT awty.check_now('e', 'mallory', 'mallorys'), awty.check_now('e', 'alice', 'alices')");
    let at_gate = "SELECT count(*) = 2 FROM pg_locks WHERE locktype = 'advisory' AND objid = 7 AND NOT granted";
    field.cluster.await_sql(DB, "the runs", at_gate);
    let lost = ["mallory", "alice"].map(hold);
    gate.batch_execute("SELECT pg_advisory_unlock(7)").unwrap();
    field.cluster.await_sql(DB, "the ends", "SELECT count(*) = 2 FROM awty.future_job_history");
    let _open = hold("mallory");
    for mut client in lost {
        client.batch_execute("COMMIT").unwrap();
    }
    inspect(&field);
    field.cluster.await_sql(DB, "the hold", "SELECT held FROM awty.future_job WHERE job = 'alices'");
}

#[test]
fn a_repetition_without_a_job_that_stays_locked_keeps_no_other_repetition_waiting() {
    let field = two_jobs(NOTHING);
    let mut holding = field.client("mallory");
    let replace = "SELECT awty.repeat('mallorys', every => '2 hours', entity_name => 'e', entity_key => 'mallory')";
    holding.batch_execute(&format!("BEGIN; {replace}")).unwrap();
    // Simulates an awty.unregister() that did not see the repetition, and a calendar that has opened again.
    field.sql(
        "postgres",
        "DELETE FROM awty.job WHERE job = 'mallorys'; DELETE FROM awty.future_job WHERE job = 'alices'",
    );
    inspect(&field);
    field.cluster.await_sql(DB, "alice's check", "SELECT count(*) = 1 FROM awty.future_job WHERE job = 'alices'");
    holding.batch_execute("COMMIT").unwrap();
    inspect(&field);
    field.cluster.await_sql(DB, "the end of the other", "SELECT count(*) = 1 FROM awty_internal.repetition");
}

#[test]
fn a_check_in_an_open_transaction_keeps_no_other_repetition_waiting() {
    let field = two_jobs(NOTHING);
    // Simulates calendars that have opened again.
    field.sql("postgres", "DELETE FROM awty.future_job WHERE job = 'mallorys'");
    let mut holding = field.client("mallory");
    holding.batch_execute("BEGIN; SELECT awty.schedule('e', 'mallory', 'mallorys', after => '1 day')").unwrap();
    field.sql("postgres", "DELETE FROM awty.future_job WHERE job = 'alices'");
    inspect(&field);
    field.cluster.await_sql(DB, "alice's check", "SELECT count(*) = 1 FROM awty.future_job WHERE job = 'alices'");
}

/// A member of pg_read_all_data may use each schema, and can create views on partitions.
#[test]
fn a_view_on_an_old_day_keeps_no_other_day_from_its_end() {
    let retention = Cluster::builder().set("awty.history_retention", "2d").set("awty.attempt_retention", "2d");
    let field = Field::with(retention);
    field.job("alice", "alices", NOTHING);
    let day = |table: &str, days: i32| -> String {
        let sql = format!(
            "SELECT 'awty_internal.{table}_' || to_char((now() AT TIME ZONE 'UTC')::date - {days}, 'YYYYMMDD')"
        );
        field.one("postgres", &sql)
    };
    let (viewed, old, attempts) = (day("future_job_history", 41), day("future_job_history", 40), day("attempt", 40));
    let make = |name: &str, of: &str, from: &str, to: &str| {
        format!("CREATE TABLE {name} PARTITION OF {of} FOR VALUES FROM ('{from}') TO ('{to}');")
    };
    let make = [
        make(&viewed, "awty.future_job_history", "-infinity", "2020-01-01"),
        make(&old, "awty.future_job_history", "2020-01-01", "2020-02-01"),
        make(&attempts, "awty_internal.attempt", "-infinity", "2020-01-01"),
    ];
    let position = field.cluster.log_position();
    field.sql("postgres", "GRANT pg_read_all_data TO mallory");
    // One transaction, so that the maintainer does not drop the day before the view exists.
    field.sql(
        "postgres",
        &format!("BEGIN; {} SET ROLE mallory; CREATE VIEW mallory.v AS SELECT * FROM {viewed}; COMMIT", make.concat()),
    );
    inspect(&field);
    let there = |name: &str| format!("to_regclass('{name}') IS NOT NULL");
    let gone = format!("SELECT NOT ({} OR {})", there(&old), there(&attempts));
    field.cluster.await_sql(DB, "the old days to be dropped", &gone);
    assert!(field.one::<bool>("postgres", &format!("SELECT {}", there(&viewed))));
    let named = viewed.trim_start_matches("awty_internal.");
    field.cluster.await_log(&["looking after database", named, "2BP01"], position);
    field.sql("mallory", "DROP VIEW mallory.v");
    inspect(&field);
    field.cluster.await_sql(DB, "the viewed day to be dropped", &format!("SELECT NOT {}", there(&viewed)));
}

/// A dump names a dropped role by its number, which another role may have on the restored server.
#[test]
fn rights_of_a_dropped_role_end() {
    let field = Field::new();
    field.sql("postgres", "CREATE ROLE leaver");
    field.sql("alice", "SELECT awty.register('alices'), awty.register('others')");
    field.sql(
        "alice",
        "SELECT awty.allow('alices', 'mallory', 'read'), awty.allow('alices', 'leaver', 'claim');
         SELECT awty.allow('others', 'leaver', 'read'), awty.allow('others', 'mallory', 'schedule')",
    );
    field.sql("postgres", "DROP ROLE leaver");
    inspect(&field);
    let rights = "SELECT string_agg(concat_ws(' ', readers, allowed, claimers), ', ' ORDER BY job)
                      = '{mallory} {} {}, {} {mallory} {}' FROM awty.job";
    field.cluster.await_sql(DB, "the rights to end", rights);
}

/// Otherwise, the checks of all roles would wait for the one that mallory keeps locked, and two calls could deadlock.
#[test]
fn a_replaced_calendar_keeps_no_check_locked_while_it_waits() {
    let field = Field::new();
    field.sql("postgres", "SELECT awty.create_calendar('shared', '{mon-sun 00:00-24:00}', 'UTC')");
    field.job("mallory", "his", NOTHING);
    for key in ["b", "a"] {
        field.sql("mallory", &format!("SELECT awty.repeat('his', every => '1 day', zone => 'UTC', calendar => 'shared', entity_name => 'e', entity_key => '{key}')"));
    }
    let lock =
        |key: &str| format!("SELECT awty.schedule('e', '{key}', 'his', after => '2 days', on_conflict => 'keep')");
    let mut first = field.client("mallory");
    first.batch_execute(&format!("BEGIN; {}", lock("a"))).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let other = "SELECT awty.create_calendar('shared', '{mon-fri 09:00-17:00}', 'UTC', replace => true)";
            let mut owner = field.client("postgres");
            answer(&mut owner, other)
        });
        let waits = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%create_calendar%')";
        field.cluster.await_sql(DB, "the call to wait for the first check", waits);
        let mut second = field.client("mallory");
        second.batch_execute("SET lock_timeout = '1s'").unwrap();
        assert_eq!(
            answer(&mut second, &lock("b")),
            "",
            "the second check stays locked while the call waits for the first"
        );
        first.batch_execute("ROLLBACK").unwrap();
    });
}
