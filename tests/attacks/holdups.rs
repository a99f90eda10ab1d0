use awty_testkit::{Cluster, PATIENCE, poll};
use std::time::Duration;

use crate::field::{DB, Field, answer};

#[test]
fn a_due_check_runs_soon_after_its_row_is_let_go() {
    let field = Field::new();
    field.job("alice", "shared", "BEGIN RETURN NULL; END");
    field.sql("alice", "SELECT awty.allow('shared', 'mallory')");
    let calls = [
        "awty.schedule('thing', '1', 'shared', after => '1 day', on_conflict => 'keep')",
        "awty.schedule('thing', '2', 'shared', after => '1 day')",
        "awty.cancel('thing', '3', 'shared')",
    ];
    let schedule = "SELECT awty.schedule('thing', i::text, 'shared', at => now()) FROM generate_series(1, 3) AS i";
    field.sql("alice", "SELECT awty.pause('shared')");
    field.sql("alice", schedule);
    let mut holding = calls.map(|call| {
        let mut client = field.client("mallory");
        client.batch_execute(&format!("BEGIN; SELECT {call}")).unwrap();
        client
    });
    field.sql("alice", "SELECT awty.resume('shared')");
    field.cluster.await_sql(
        DB,
        "the checks to have been held up for a while",
        "SELECT count(*) = 3 AND max(next_check_at) < clock_timestamp() - interval '6 seconds' FROM awty.future_job",
    );
    holding.iter_mut().for_each(|client| client.batch_execute("ROLLBACK").unwrap());
    let mut client = field.client("postgres");
    let ran = poll("the checks to run", Duration::from_secs(20), || {
        let done = "SELECT entity_key || ' ' || outcome FROM awty.future_job_history ORDER BY entity_key";
        let done = client.query(done, &[]).map_err(|error| format!("{error:?}"))?;
        let done: Vec<String> = done.iter().map(|row| row.get(0)).collect();
        if done.len() == calls.len() { Ok(done) } else { Err(format!("{done:?}")) }
    });
    assert_eq!(ran, Ok(["1 done", "2 done", "3 done"].map(str::to_owned).to_vec()));
}

#[test]
fn a_name_is_not_waited_for_without_end() {
    let field = Field::with(Cluster::builder().set("max_prepared_transactions", "2"));
    field.job("mallory", "own", "BEGIN RETURN NULL; END");
    field.job("alice", "hers", "BEGIN RETURN NULL; END");
    let register = "SELECT awty.register('wanted', 'alice.hers')";
    for (keep, let_go) in [("SELECT 1", "ROLLBACK"), ("PREPARE TRANSACTION 'kept'", "ROLLBACK PREPARED 'kept'")] {
        let mut holding = field.client("mallory");
        holding.batch_execute("BEGIN; SELECT awty.register('wanted', 'mallory.own')").unwrap();
        holding.batch_execute(keep).unwrap();
        let mut alice = field.client("alice");
        alice.batch_execute("SET statement_timeout = '2min'").unwrap();
        assert_eq!(answer(&mut alice, register), "55P03", "{keep}");
        holding.batch_execute(let_go).unwrap();
    }
    field.cluster.await_that("the name to be free", PATIENCE, || {
        let mut alice = field.client("alice");
        let answer = answer(&mut alice, register);
        if answer.is_empty() { Ok(()) } else { Err(answer) }
    });
}

#[test]
fn a_calendar_is_not_waited_for_without_end() {
    let field = Field::with(Cluster::builder().set("max_prepared_transactions", "2"));
    let always = "'{mon-sun 00:00-24:00}', 'UTC'";
    field.sql("postgres", &format!("SELECT awty.create_calendar('shared', {always})"));
    field.job("mallory", "his", "BEGIN RETURN NULL; END");
    let repeat = "SELECT awty.repeat('his', every => '1 day', zone => 'UTC', calendar => 'shared'";
    field.sql("mallory", &format!("{repeat})"));
    let other = "SELECT awty.create_calendar('shared', '{mon-fri 09:00-17:00}', 'UTC', replace => true)";
    let same_name = format!("SELECT awty.create_calendar('wanted', {always})");
    let keep = "SELECT awty.schedule('job', 'his', 'his', after => '2 days', on_conflict => 'keep')";
    for (held, wanted) in [
        (same_name.as_str(), same_name.as_str()),
        (&format!("{repeat}, entity_key => 'new')"), other),
        (&format!("{repeat}, entity_key => 'new')"), "SELECT awty.drop_calendar('shared')"),
        (keep, other),
    ] {
        let mut holding = field.client("mallory");
        holding.batch_execute(&format!("BEGIN; {held}; PREPARE TRANSACTION 'kept'")).unwrap();
        let mut owner = field.client("postgres");
        owner.batch_execute("SET statement_timeout = '2min'").unwrap();
        assert_eq!(answer(&mut owner, wanted), "55P03", "{held}");
        holding.batch_execute("ROLLBACK PREPARED 'kept'").unwrap();
    }
    field.sql("postgres", other);
}

#[test]
fn checks_that_stay_locked_keep_no_other_check_from_its_hold() {
    let field = Field::new();
    for role in ["mallory", "alice"] {
        field.job(role, &format!("{role}s"), "BEGIN RETURN NULL; END");
    }
    let many = "SELECT awty.schedule_many('e', array_agg(n::text), 'mallorys', after => '1 day') FROM generate_series(1, 1001) AS n";
    field.sql("mallory", many);
    field.sql("alice", "SELECT awty.schedule('e', '1', 'alices', after => '1 day')");
    let mut holding = field.client("mallory");
    let keep = many.replace("after =>", "on_conflict => 'keep', after =>");
    holding.batch_execute(&format!("BEGIN; {keep}")).unwrap();
    field.sql(
        "postgres",
        "INSERT INTO awty_internal.hold (check_id, job, held_by, held_at) SELECT id, job, scheduled_by, now() FROM awty.future_job ORDER BY id",
    );
    field.job("alice", "another", "BEGIN RETURN NULL; END");
    field.cluster.await_sql(DB, "the hold", "SELECT bool_and(held) FROM awty.future_job WHERE job = 'alices'");
}

#[test]
fn leases_of_locked_checks_keep_no_other_lease_from_its_end() {
    let field = Field::new();
    for role in ["mallory", "alice"] {
        field.sql(role, &format!("SELECT awty.register('{role}s', timeout => '1 s')"));
    }
    let many = "SELECT awty.schedule_many('e', array_agg(n::text), 'mallorys', after => '0') FROM generate_series(1, 1500) AS n";
    field.sql("mallory", many);
    field.sql("alice", "SELECT awty.schedule('e', '1', 'alices', after => '0')");
    let due = "SELECT bool_and(next_check_at <= clock_timestamp()) FROM awty.future_job";
    field.cluster.await_sql(DB, "the slot", due);
    field.sql("mallory", "SELECT count(*) FROM awty.claim('{mallorys}', 'w', 1000); SELECT count(*) FROM awty.claim('{mallorys}', 'w', 1000)");
    let mut holding = field.client("mallory");
    let keep = many.replace("after =>", "on_conflict => 'keep', after =>");
    holding.batch_execute(&format!("BEGIN; {keep}")).unwrap();
    field.sql("alice", "SELECT count(*) FROM awty.claim('{alices}', 'w')");
    field.sql("postgres", "UPDATE awty_internal.lease SET lease = 9223372036854775807 WHERE job = 'alices'");
    field.cluster.await_sql(
        DB,
        "the failure of alice's check",
        "SELECT bool_and(attempt = 1) FROM awty.future_job WHERE job = 'alices'",
    );
}

/// Creates repetitions for which awty must try thousands of planned times, because nearly all planned times are just
/// after opening hours.
fn search_long(field: &Field, role: &str, job: &str, count: usize) {
    field.sql(
        role,
        &format!(
            "SELECT awty.create_calendar('rare', ARRAY(SELECT format('mon-sun %s:29-%s:30', h, h) FROM (SELECT lpad(n::text, 2, '0') AS h FROM generate_series(0, 23) AS n) AS h)
                 || '{{mon 12:30-12:31}}'::text[], 'UTC', ARRAY(SELECT date_trunc('week', now())::date + 7 * n FROM generate_series(0, 25) AS n));
             SELECT count(awty.repeat('{job}', cron => '30 * * * *', zone => 'UTC', entity_name => 'rare', entity_key => n::text, calendar => 'rare'))
             FROM generate_series(1, {count}) AS n"
        ),
    );
}

#[test]
fn holds_of_repetitions_that_search_long_keep_no_other_hold_from_its_end() {
    const MANY: usize = 500;
    let field = Field::new();
    let roles: String = field.one(
        "postgres",
        "SELECT string_agg(rolname, ' ' ORDER BY oid) FROM pg_roles WHERE rolname IN ('alice', 'mallory')",
    );
    let (first, second) = roles.split_once(' ').unwrap();
    for (role, job) in [(first, "slow"), (second, "quick")] {
        field.job_with(role, job, "BEGIN RETURN NULL; END", "on_missed => 'skip'");
    }
    search_long(&field, first, "slow", MANY);
    field.sql(second, "SELECT awty.schedule('e', '1', 'quick', after => '1 day')");
    field.sql(
        "postgres",
        "UPDATE awty.future_job SET first_check_at = now() - interval '1 h', next_check_at = now() - interval '1 h', held = true;
         INSERT INTO awty_internal.hold (check_id, job, held_by, held_at, held_until)
         SELECT id, job, scheduled_by, now() - interval '2 h', now() FROM awty.future_job",
    );
    inspect(&field);
    let ended = "SELECT count(*) = 1 FROM awty.future_job_history WHERE job = 'quick' AND outcome = 'missed'";
    field.cluster.await_sql(DB, "the end of the other hold", ended);
    // awty alternates between the two roles when it ends holds, so the hold of the quick job need not wait for all
    // holds of the slow job.
    let before = "SELECT count(*) FROM awty.future_job_history WHERE job = 'slow' AND finished_at <= (
                      SELECT finished_at FROM awty.future_job_history WHERE job = 'quick')";
    let before: i64 = field.one("postgres", before);
    assert!((before as usize) < MANY, "{before} holds have ended before");
    let left = "SELECT NOT EXISTS (SELECT FROM awty_internal.hold)";
    field.cluster.await_sql(DB, "the other ends", left);
}

/// Makes all checks an hour late, and claims the check of a quick job together with the job. Returns how many checks of
/// the job the claim has ended.
fn ends_beside_a_quick_job(field: &Field, job: &str) -> i64 {
    field.sql("alice", "SELECT awty.register('quick'); SELECT awty.schedule('e', '1', 'quick', after => '0')");
    field.sql(
        "postgres",
        "UPDATE awty.future_job SET first_check_at = now() - interval '1 h', next_check_at = now() - interval '1 h'",
    );
    let claimed: i64 = field.one("postgres", &format!("SELECT count(*) FROM awty.claim('{{{job},quick}}', 'w')"));
    assert_eq!(claimed, 1);
    field.one("postgres", &format!("SELECT count(*) FROM awty.future_job_history WHERE job = '{job}'"))
}

#[test]
fn checks_that_search_long_delay_no_claim_of_several_jobs() {
    let field = Field::new();
    field.sql("mallory", "SELECT awty.register('slow', max_lateness => '1 min')");
    search_long(&field, "mallory", "slow", 600);
    let ended = ends_beside_a_quick_job(&field, "slow");
    // The claim stops at its time limit before it reaches its limit of 500 checks, because each of these checks takes
    // long.
    assert!((1..400).contains(&ended), "{ended} checks have ended");
    // A gateway that claims from one of its jobs names it twice.
    let claimed: i64 = field.one("postgres", "SELECT count(*) FROM awty.claim('{slow,slow}', 'w')");
    assert_eq!(claimed, 0);
    let left: i64 =
        field.one("postgres", "SELECT count(*) FROM awty.future_job WHERE job = 'slow' AND next_check_at < now()");
    assert!((1..600 - ended).contains(&left), "{left} late checks are left");
}

/// The end of a large check takes long, because its arguments go to the history.
#[test]
fn large_checks_that_are_too_late_delay_no_claim_of_several_jobs() {
    let field = Field::new();
    field.sql(
        "mallory",
        "SELECT awty.register('large', max_lateness => '1 min');
         SELECT count(awty.schedule('e', n::text, 'large', after => '1 h', args => jsonb_build_object('a', (
             SELECT string_agg(md5(m::text), '') FROM generate_series(1, 2000) AS m)))) FROM generate_series(1, 500) AS n",
    );
    let ended = ends_beside_a_quick_job(&field, "large");
    // The claim stops at its time limit before it reaches its limit of 500 checks.
    assert!((1..400).contains(&ended), "{ended} checks have ended");
}

/// The rule has a second level after one day, so that a row at level 1 still has a pending check for the second level.
fn watch(field: &Field, role: &str, rule: &str) {
    let table = format!("{role}.{rule}");
    field.sql(
        role,
        &format!(
            "CREATE TABLE {table} (id bigint PRIMARY KEY, at timestamptz NOT NULL, s text);
             SELECT awty.watch('{table}', since => 'at', until => $$s = 'y'$$, within => '1 s', escalate => '{{1 day}}', rule => '{rule}');
             INSERT INTO {table} VALUES (1, now(), 'n')"
        ),
    );
    let alert = format!("SELECT count(*) = 1 FROM awty.alert WHERE rule = '{rule}'");
    field.cluster.await_sql(DB, "the alert", &alert);
}

/// Registers a job, so that awty inspects the database.
fn inspect(field: &Field) {
    field.job("alice", "another", "BEGIN RETURN NULL; END");
}

#[test]
fn a_rule_that_stays_locked_keeps_no_other_rule_from_its_end() {
    let field = Field::new();
    watch(&field, "mallory", "first");
    watch(&field, "alice", "second");
    let mut holding = field.client("mallory");
    holding.batch_execute("BEGIN; SELECT awty.check_now('first', '1', 'first')").unwrap();
    for (role, table) in [("mallory", "first"), ("alice", "second")] {
        field.sql(role, &format!("DROP TABLE {table}"));
    }
    inspect(&field);
    field.cluster.await_sql(DB, "the end of the rule", "SELECT array_agg(rule) = '{first}' FROM awty.rule");
}

#[test]
fn a_sweep_that_stays_locked_keeps_no_other_sweep_waiting() {
    let field = Field::new();
    watch(&field, "mallory", "first");
    watch(&field, "alice", "second");
    let mut holding = field.client("mallory");
    holding.batch_execute("BEGIN; SELECT awty.schedule('awty.sweep', 'first', 'first', after => '1 day')").unwrap();
    field.sql("postgres", "UPDATE awty.rule SET swept_at = now() - interval '2 days'");
    inspect(&field);
    let swept = "SELECT array_agg(rule) = '{second}' FROM awty.rule WHERE swept_at > now() - interval '1 day'";
    field.cluster.await_sql(DB, "the sweep", swept);
}

#[test]
fn a_hold_keeps_no_lock_on_the_table_of_the_rule() {
    let field = Field::new();
    watch(&field, "alice", "t");
    field.sql("alice", "SELECT awty.allow('t', 'mallory')");
    let mut holding = field.client("mallory");
    holding.batch_execute("BEGIN; SELECT awty.hold('t', '1', 't')").unwrap();
    field.sql("alice", "BEGIN; LOCK TABLE alice.t IN ACCESS EXCLUSIVE MODE NOWAIT");
    holding.batch_execute("COMMIT").unwrap();
    assert!(field.one::<bool>("postgres", "SELECT held_by = 'mallory'::regrole FROM awty.alert"));
}

#[test]
fn rows_of_a_rule_that_stay_locked_keep_no_reader_of_the_table_waiting() {
    let field = Field::new();
    watch(&field, "alice", "checks");
    field.sql(
        "alice",
        "CREATE TABLE alice.alerts (id bigint PRIMARY KEY, at timestamptz, s text);
         SELECT awty.watch('alice.alerts', since => 'at', until => $$s = 'y'$$, within => '1 s');
         INSERT INTO alice.alerts VALUES (1, now())",
    );
    let at_last_level = "SELECT (SELECT count(*) FROM awty.alert WHERE rule = 'alerts') = 1
        AND NOT EXISTS (SELECT FROM awty.future_job WHERE job = 'alerts' AND entity_name = 'alerts')";
    field.cluster.await_sql(DB, "the alert without a check", at_last_level);
    for (rule, held, wanted) in [
        ("checks", "awty.hold('checks', '1', 'checks')", "SELECT awty.unwatch('checks')"),
        ("alerts", "awty.hold('alerts', '1', 'alerts')", "SELECT awty.unwatch('alerts')"),
    ] {
        field.sql("alice", &format!("SELECT awty.allow('{rule}', 'mallory')"));
        let mut holding = field.client("mallory");
        holding.batch_execute(&format!("BEGIN; SELECT {held}")).unwrap();
        let mut alice = field.client("alice");
        let waiting = std::thread::spawn(move || answer(&mut alice, wanted));
        let locks = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE usename = 'alice' AND wait_event_type = 'Lock'),
            EXISTS (SELECT FROM pg_locks WHERE relation = ANY ('{alice.checks,alice.alerts}'::regclass[]) AND mode = 'AccessExclusiveLock')";
        let mut postgres = field.client("postgres");
        field.cluster.await_that("alice to wait", PATIENCE, || {
            let row = postgres.query_one(locks, &[]).unwrap();
            assert!(!row.get::<_, bool>(1), "{wanted} keeps readers waiting");
            if row.get(0) || waiting.is_finished() { Ok(()) } else { Err(String::new()) }
        });
        assert_eq!(waiting.join().unwrap(), "55P03", "{wanted}");
        holding.batch_execute("ROLLBACK").unwrap();
        field.sql("alice", wanted);
    }
}

#[test]
fn an_open_claim_or_report_is_not_waited_for_without_end() {
    let field = Field::new();
    field.job("alice", "f", "BEGIN RETURN NULL; END");
    field.sql(
        "alice",
        "SELECT awty.register('hers', max_attempts => 0); SELECT awty.allow('hers', 'mallory', 'claim');
         SELECT awty.schedule('target', n::text, 'hers', after => '0') FROM generate_series(1, 3) AS n",
    );
    let due = "SELECT awty.next_claim_in('{hers}') = '0' AND bool_and(next_check_at <= clock_timestamp()) FROM awty.future_job";
    field.cluster.await_sql(DB, "the checks to be due", due);
    let claim = "SELECT lease FROM awty.claim('{hers}', 'w', 1)";
    let report = || {
        let lease: i64 = field.one("mallory", claim);
        format!("SELECT awty.fail({lease}, 'down', target_down => true)")
    };
    let [report, second_report] = [report(), report()];
    let alter_target = "SELECT awty.alter_target('hers', 'target', concurrency => 1)";
    let unregister = "SELECT awty.unregister('hers')";
    for (kept, wanted) in [
        (claim, [unregister, "SELECT awty.alter('hers', function => 'alice.f')"]),
        (report.as_str(), [unregister, alter_target]),
    ] {
        let mut holding = field.client("mallory");
        holding.batch_execute(&format!("BEGIN; {kept}")).unwrap();
        for wanted in wanted {
            let mut alice = field.client("alice");
            alice.batch_execute("SET statement_timeout = '2min'").unwrap();
            assert_eq!(answer(&mut alice, wanted), "55P03", "{kept}: {wanted}");
        }
        holding.batch_execute("ROLLBACK").unwrap();
    }
    field.sql("mallory", &report);
    let mut holding = field.client("mallory");
    holding.batch_execute(&format!("BEGIN; {second_report}")).unwrap();
    let alter_all = "SELECT awty.alter_target('hers', blocked_until => '-infinity')";
    assert_eq!(answer(&mut field.client("alice"), alter_all), "55P03");
    holding.batch_execute("ROLLBACK").unwrap();
    for wanted in [alter_target, alter_all, unregister] {
        field.sql("alice", wanted);
    }
}
