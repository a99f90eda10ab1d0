//! Tests each cell of the documentation's table that says which roles can see failures, runs, figures and forecasts.

use crate::field::{DB, Field};

fn seen(field: &Field, role: &str, what: &str) -> String {
    let sql = format!("SELECT coalesce(string_agg(x::text, ' ' ORDER BY x::text), '') FROM ({what}) AS t (x)");
    field.one(role, &sql)
}

/// Alice owns the job, riva can read the job, and mona is a member of pg_monitor. Sam has lost the right to schedule
/// the job's checks, and mallory never had a right on the job.
fn field() -> Field {
    let field = Field::new();
    for role in ["riva", "sam", "mona"] {
        field.cluster.create_user(DB, role);
    }
    field.sql("postgres", "GRANT pg_monitor TO mona");
    field.sql(
        "alice",
        "CREATE FUNCTION alice.f(j awty.future_job) RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN
             IF j.entity_name = 'bad' THEN RAISE 'geheim error of %', j.entity_key; END IF;
             PERFORM pg_advisory_xact_lock(78);
             PERFORM pg_sleep(86400);
             RETURN NULL;
         END $$;
         SELECT awty.register('geheim job', 'alice.f', retry_after => '1 h', timeout => '1 day'),
             awty.allow('geheim job', 'riva', 'read'), awty.allow('geheim job', 'sam')",
    );
    field.sql("alice", "SELECT awty.schedule('bad', 'of alice', 'geheim job', at => now())");
    field.sql("sam", "SELECT awty.schedule('bad', 'of sam', 'geheim job', at => now())");
    field.cluster.await_sql(DB, "the failures", "SELECT count(*) = 2 FROM awty.failing");
    field.sql("sam", "SELECT awty.schedule('slow', 'of sam', 'geheim job', at => now())");
    field.await_sign(78);
    // Waits for the count, because a worker counts a run only after the commit of the run.
    field.cluster.await_sql(DB, "the failures to be counted", "SELECT retries = 2 FROM awty.job_status");
    field.sql("alice", "SELECT awty.disallow('geheim job', 'sam')");
    field
}

#[test]
fn each_role_sees_its_part_of_the_figures() {
    let field = field();
    let cells = [
        ("alice", "of alice of sam", "geheim job", "of sam", "2"),
        ("riva", "of alice of sam", "geheim job", "of sam", "2"),
        ("sam", "of sam", "", "of sam", ""),
        ("mona", "", "geheim job", "", ""),
        ("mallory", "", "", "", ""),
    ];
    for (role, failing, jobs, running, forecast) in cells {
        assert_eq!(seen(&field, role, "SELECT entity_key FROM awty.failing"), failing, "{role}");
        let with_error = "SELECT entity_key FROM awty.failing WHERE message = 'geheim error of ' || entity_key AND context IS NOT NULL";
        assert_eq!(seen(&field, role, with_error), failing, "{role}");
        let counted =
            "SELECT job FROM awty.job_status WHERE pending = 3 AND failing = 2 AND role = 'alice' AND retries = 2";
        assert_eq!(seen(&field, role, counted), jobs, "{role}");
        assert_eq!(seen(&field, role, "SELECT job FROM awty.job_status"), jobs, "{role}");
        let named = "SELECT entity_key FROM awty.running WHERE job = 'geheim job' AND entity_name = 'slow' AND id > 0 AND slot <= started_at";
        assert_eq!(seen(&field, role, named), running, "{role}");
        assert_eq!(
            seen(&field, role, "SELECT sum(checks) FROM awty.forecast() WHERE slot > now() + interval '30 min'"),
            forecast,
            "{role}"
        );
    }
    let whose = "SELECT concat_ws(' ', role, job, entity_name, entity_key, id, slot) FROM awty.running
                 WHERE pid > 0 AND started_at <= now() AND runs_for >= '0' AND timeout = '1 day' AND set_size = 1";
    assert_eq!(seen(&field, "mona", whose), "alice");
    assert_eq!(seen(&field, "mallory", "SELECT pid FROM awty.running"), "");
    field.job("mallory", "own", "BEGIN RETURN NULL; END");
    field.sql("mallory", "SELECT awty.schedule('thing', 'later', 'own', after => '1 hour')");
    assert_eq!(seen(&field, "mallory", "SELECT job FROM awty.job_status"), "own");
    assert_eq!(seen(&field, "mallory", "SELECT DISTINCT job FROM awty.forecast('10 years')"), "own");
}

/// PostgreSQL may call a user's function with a low COST before it applies a view's filter. The function then sees
/// hidden rows.
#[test]
fn nobody_gets_behind_the_views() {
    let field = field();
    for call in [
        "SELECT * FROM awty_internal.job_counter()",
        "SELECT * FROM awty_internal.job_pending('geheim job')",
        "SELECT * FROM awty_internal.worker()",
        "TABLE awty_internal.job_stat",
        "TABLE awty_internal.check_stat",
    ] {
        field.refused("mallory", call, "42501");
    }
    field.sql(
        "mallory",
        "CREATE TABLE mallory.leaked (what text);
         CREATE FUNCTION mallory.leak(text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS $$ BEGIN
             INSERT INTO mallory.leaked VALUES ($1); RETURN true;
         END $$",
    );
    for view in ["awty.failing", "awty.running", "awty.job_status"] {
        field.sql("mallory", &format!("SELECT * FROM {view} AS v WHERE mallory.leak(v::text)"));
    }
    assert_eq!(field.one::<i64>("mallory", "SELECT count(*) FROM mallory.leaked"), 0);
    field.sql("postgres", "GRANT pg_read_all_data TO mallory");
    for relation in ["awty_internal.job_counter()", "awty_internal.job_pending('geheim job')", "awty_internal.job_stat"]
    {
        assert_eq!(field.one::<i64>("mallory", &format!("SELECT count(*) FROM {relation}")), 0, "{relation}");
    }
}

/// Such a role sees the rows of jobs on which it has no right.
#[test]
fn who_reads_all_data_gets_a_forecast_whatever_calendars_others_use() {
    let field = Field::new();
    field.job("mallory", "own", "BEGIN RETURN NULL; END");
    field.sql(
        "mallory",
        "SELECT awty.create_calendar('c', '{mon-sun 00:00-24:00}', 'UTC');
         SELECT awty.repeat('own', every => '10 min', zone => 'UTC', calendar => 'c')",
    );
    field.sql("postgres", "GRANT pg_read_all_data TO alice");
    for role in ["mallory", "alice"] {
        let slots = "SELECT count(*) FROM awty.forecast('1 hour') WHERE job = 'own' AND slot = awty.next_slot(slot)";
        assert!(field.one::<i64>(role, slots) >= 5, "{role}");
    }
}
