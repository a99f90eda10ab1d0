//! A transaction with one snapshot does not see later commits of other sessions. If it ends a job or rule, it leaves
//! newer rows behind. No later job or rule of the name gets these rows.

use crate::field::{DB, Field, answer};

/// Returns the SQLSTATE of mallory's call under a snapshot that is older than `newer`.
#[track_caller]
fn with_an_old_snapshot(field: &Field, newer: &str, call: &str) -> String {
    let mut mallory = field.client("mallory");
    mallory.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").unwrap();
    field.sql("mallory", newer);
    answer(&mut mallory, &format!("{call}; COMMIT"))
}

#[test]
fn targets_and_leases_of_a_former_job_reach_no_job_of_its_name() {
    let field = Field::new();
    field.sql("mallory", "SELECT awty.register(job) FROM unnest('{limited,leased}'::text[]) AS job");
    field.sql("mallory", "SELECT awty.schedule('thing', '1', 'leased', after => '0')");
    field.await_claimable("leased");
    let left = "SELECT (SELECT count(*) FROM awty_internal.target) + (SELECT count(*) FROM awty_internal.lease)";
    for (job, newer) in [
        ("limited", "SELECT awty.alter_target('limited', blocked_until => 'infinity')"),
        ("leased", "SELECT lease FROM awty.claim('{leased}', 'w', 1)"),
    ] {
        assert_eq!(with_an_old_snapshot(&field, newer, &format!("SELECT awty.unregister('{job}')")), "", "{job}");
        assert_eq!(field.one::<i64>("postgres", left), 1, "{job}");
        field.sql("alice", &format!("SELECT awty.register('{job}')"));
        assert_eq!(field.one::<i64>("postgres", left), 0, "{job}");
    }
}

const TABLE: &str = "CREATE TABLE mallory.t (id bigint PRIMARY KEY, s text, stopped boolean, at timestamptz)";

fn watch(more: &str) -> String {
    format!("SELECT awty.watch('mallory.t', until => $$s = 'y'$$, since => 'at', within => '1 day', {more})")
}

#[test]
fn stops_of_a_former_rule_reach_no_rule_of_its_name() {
    let field = Field::new();
    field.sql("mallory", &format!("{TABLE}; {}", watch("stopped => 'stopped'")));
    let newer = "INSERT INTO mallory.t VALUES (1, 'n', true, now())";
    assert_eq!(with_an_old_snapshot(&field, newer, "SELECT awty.unwatch('t')"), "");
    let stops = "SELECT count(*) FROM awty_internal.stop";
    assert_eq!(field.one::<i64>("postgres", stops), 1);
    field.sql("alice", "SELECT awty.register('t')");
    assert_eq!(field.one::<i64>("postgres", stops), 0);
}

#[test]
fn a_calendar_with_a_newer_rule_is_not_dropped_or_replaced() {
    let calendar =
        |hours: &str, more: &str| format!("SELECT awty.create_calendar('c', '{{mon-sun {hours}}}', 'UTC'{more})");
    for (call, refusal) in [
        ("SELECT awty.drop_calendar('c')".to_owned(), "2BP01"),
        (calendar("09:00-17:00", ", replace => true"), "40001"),
    ] {
        let field = Field::new();
        field.sql("mallory", &format!("{TABLE}; {}", calendar("00:00-24:00", "")));
        assert_eq!(with_an_old_snapshot(&field, &watch("calendar => 'c'"), &call), refusal, "{call}");
    }
}

#[test]
fn a_block_of_an_open_transaction_does_not_outlive_its_job() {
    let field = Field::new();
    field.sql("mallory", "SELECT awty.register('pay')");
    let mut open = field.client("postgres");
    open.batch_execute("BEGIN; SELECT awty_internal.block_for_now('pay', 'target', now() + interval '1 hour', 'why')")
        .unwrap();
    // A role with the right to claim must not keep the owner from changing or ending the job.
    field.sql("mallory", "SET lock_timeout = '2s'; SELECT awty.pause('pay'), awty.unregister('pay')");
    let register = "SELECT awty.register('pay')";
    field.refused("mallory", &format!("SET lock_timeout = '1s'; {register}"), "55P03");
    open.batch_execute("COMMIT").unwrap();
    field.sql("mallory", register);
    assert_eq!(field.one::<i64>("postgres", "SELECT count(*) FROM awty_internal.target"), 0);
}

/// An open alert of the next role's rule would keep the rule from telling of the row.
#[test]
fn alerts_of_a_former_rule_reach_no_rule_of_its_name() {
    let field = Field::new();
    field.sql("mallory", &format!("{TABLE}; {}", watch("stopped => 'stopped'")));
    field.sql("mallory", "INSERT INTO mallory.t VALUES (1, 'n', false, now())");
    let mut open = field.client("mallory");
    open.batch_execute("BEGIN; SELECT awty.hold('t', '1', 't')").unwrap();
    // The transaction has written an alert that awty.unwatch() cannot see.
    field.refused("mallory", "SET lock_timeout = '1s'; SELECT awty.unwatch('t')", "55P03");
    open.batch_execute("COMMIT").unwrap();
    field.sql("mallory", "SELECT awty.unwatch('t')");
    field.sql("postgres", "UPDATE awty.alert SET cleared_at = NULL");
    field.sql("alice", "SELECT awty.register('t')");
    assert_eq!(field.one::<i64>("postgres", "SELECT count(*) FROM awty.alert WHERE cleared_at IS NULL"), 0);
}

/// A repetition without a check shows its role later when a row of the rule is checked.
#[test]
fn a_repetition_that_is_newer_than_the_snapshot_goes_to_no_new_owner() {
    let field = Field::new();
    let calendar =
        |hours: &str| format!("SELECT awty.create_calendar('c', '{{mon-sun {hours}}}', 'UTC', replace => true)");
    field.sql("mallory", &format!("{TABLE}; {}", watch("stopped => 'stopped'")));
    field.sql("mallory", &format!("SELECT awty.allow('t', 'mallory', 'schedule'); {}", calendar("00:00-24:00")));
    field.sql("postgres", "GRANT USAGE, CREATE ON SCHEMA mallory TO alice");
    let mut alice = field.client("alice");
    alice.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").unwrap();
    let plan = "cron => '30 12 * * *', zone => 'UTC', calendar => 'c'";
    field.sql("mallory", &format!("SELECT awty.repeat('t', entity_name => 't', entity_key => '42', {plan})"));
    field.sql("mallory", &calendar("09:00-10:00"));
    field.sql("postgres", "ALTER TABLE mallory.t OWNER TO alice");
    assert_eq!(answer(&mut alice, &watch("replace => true")), "40001");
}

#[test]
fn a_free_name_is_not_waited_for_without_end() {
    let field = Field::new();
    field.sql("mallory", "SELECT awty.register('pay', heartbeat => '1 min')");
    field.sql("mallory", "SELECT awty.schedule('thing', '1', 'pay', after => '0')");
    field.await_claimable("pay");
    field.sql("mallory", "SELECT lease FROM awty.claim('{pay}', 'w', 1)");
    let mut open = field.client("postgres");
    open.batch_execute("BEGIN; SELECT FROM awty_internal.lease FOR UPDATE").unwrap();
    field.sql("mallory", "SELECT awty.unregister('pay')");
    field.refused("alice", "SET statement_timeout = '60s'; SELECT awty.register('pay')", "55P03");
}

/// PostgreSQL may keep the lock of a failed statement until the client reads the error.
#[test]
fn a_role_without_the_right_takes_no_lock_on_the_name_of_a_job() {
    let field = crate::alters::field_with_guild(&["job"]);
    field.cluster.create_user(DB, "bob");
    let mut open = field.client("alice");
    open.batch_execute("BEGIN; SELECT awty.alter('job', run_as => 'alice')").unwrap();
    let mut bob = field.client("bob");
    bob.batch_execute("SET lock_timeout = '2s'").unwrap();
    assert_eq!(answer(&mut bob, "SELECT awty.schedule('thing', '1', 'job', after => '1 day')"), "42501");
}

/// awty shows a role the checks, ends and leases of its jobs by their names.
#[test]
fn a_name_is_not_given_to_a_transaction_that_still_sees_its_former_job() {
    let field = Field::new();
    field.sql("alice", "SELECT awty.register('idle')");
    field.sql(
        "alice",
        "SELECT awty.register('pay'), awty.schedule('card', '1', 'pay', after => '1 day', args => '\"secret\"')",
    );
    let mut mallory = field.client("mallory");
    mallory.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").unwrap();
    for job in ["pay", "idle"] {
        field.sql("alice", &format!("SELECT awty.unregister('{job}')"));
        let register = format!("SAVEPOINT s; SELECT awty.register('{job}')");
        assert_eq!(answer(&mut mallory, &register), "55P03", "{job}");
        mallory.batch_execute("ROLLBACK TO s").unwrap();
    }
}
