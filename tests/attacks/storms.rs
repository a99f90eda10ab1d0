use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use awty_testkit::Cluster;

use crate::field::{DB, Field, HELD_UP};

fn worst_lateness(field: &Field) -> f64 {
    field.one(
        "postgres",
        "SELECT max(extract(epoch FROM lateness))::float8 FROM awty.future_job_history WHERE job = 'pulse'",
    )
}

fn pulse(field: &Field, slots: i32) {
    field.job("alice", "pulse", "BEGIN RETURN NULL; END");
    field.sql(
        "alice",
        &format!("SELECT awty.schedule('thing', i::text, 'pulse', after => make_interval(secs => i)) FROM generate_series(1, {slots}) AS i"),
    );
}

#[track_caller]
fn pulse_was_kept(field: &Field, slots: i32) {
    field.cluster.await_sql(
        DB,
        "the pulse",
        &format!("SELECT count(*) = {slots} FROM awty.future_job_history WHERE job = 'pulse'"),
    );
    let done = "SELECT bool_and(outcome = 'done') FROM awty.future_job_history WHERE job = 'pulse'";
    assert!(field.one::<bool>("postgres", done));
    let worst = worst_lateness(field);
    assert!(worst < HELD_UP, "a check of alice's started {worst} s late");
}

#[test]
fn a_job_that_schedules_without_end_starves_nobody() {
    let field = Field::new();
    field.job_with(
        "mallory",
        "storm",
        "BEGIN
             IF j.entity_key = 'first' THEN
                 PERFORM awty.schedule('storm', i::text, 'storm', at => now()) FROM generate_series(1, 100000) AS i;
             END IF;
             RETURN NULL;
         END",
        "timeout => '5 minutes'",
    );
    pulse(&field, 15);
    let first = field.schedule("mallory", "storm", "first");
    field.end_within(first, Duration::from_secs(300)).is_done();
    pulse_was_kept(&field, 15);
    let all = "SELECT (SELECT count(*) FROM awty.future_job WHERE job = 'storm')
                    + (SELECT count(*) FROM awty.future_job_history WHERE job = 'storm')";
    assert_eq!(field.one::<i64>("postgres", all), 100_001);
    field.sql("mallory", "SELECT awty.unregister('storm')");
    field.alice_goes_on();
}

#[test]
fn checks_that_double_starve_nobody() {
    let field = Field::new();
    field.job(
        "mallory",
        "fork",
        "BEGIN
             PERFORM awty.schedule('fork', j.entity_key || '0', 'fork', at => now());
             PERFORM awty.schedule('fork', j.entity_key || '1', 'fork', at => now());
             RETURN now();
         END",
    );
    pulse(&field, 12);
    field.schedule("mallory", "fork", "x");
    pulse_was_kept(&field, 12);
    field.sql("mallory", "SELECT awty.pause('fork')");
    field.alice_goes_on();
}

#[test]
fn runs_that_take_all_their_time_starve_nobody() {
    let field = Field::with(Cluster::builder().set("awty.max_workers", "3"));
    field.job_with("mallory", "slow", "BEGIN PERFORM pg_sleep(86400); RETURN NULL; END", "timeout => '1 day'");
    for key in 0..20 {
        field.schedule("mallory", "slow", &key.to_string());
    }
    pulse(&field, 8);
    pulse_was_kept(&field, 8);
}

#[test]
fn notifications() {
    let field = Field::new();
    field.try_job("mallory", "listening", "BEGIN LISTEN x; RETURN NULL; END").failed_with("0A000");
    let flood =
        "BEGIN PERFORM pg_notify('flood', repeat('x', 900) || i) FROM generate_series(1, 50000) AS i; RETURN NULL; END";
    let mut listener = field.client("alice");
    listener.batch_execute("LISTEN flood").unwrap();
    field.try_job("mallory", "flooding", flood).is_done();
    field.alice_goes_on();
    let text = "BEGIN PERFORM pg_notify('flood', repeat('x', 8000)); RETURN NULL; END";
    field.try_job("mallory", "too_long", text).failed_with("22023");
}

#[test]
fn ten_thousand_subtransactions() {
    let field = Field::new();
    field.sql("mallory", "CREATE TABLE mallory.t (i int)");
    field
        .try_job(
            "mallory",
            "sub",
            "BEGIN
                 FOR i IN 1..10000 LOOP
                     BEGIN INSERT INTO mallory.t VALUES (i); IF i % 2 = 0 THEN RAISE 'undo'; END IF; EXCEPTION WHEN raise_exception THEN END;
                 END LOOP;
                 RETURN NULL;
             END",
        )
        .is_done();
    assert_eq!(field.one::<i64>("mallory", "SELECT count(*) FROM mallory.t"), 5000);
    field.alice_goes_on();
}

#[test]
fn catching_up_is_shared_between_roles() {
    let mut field = Field::with(Cluster::builder().with_movable_clock().set("awty.catch_up_rate", "10"));
    for (role, job, checks) in [("mallory", "many", 600), ("alice", "few", 10)] {
        field.job(role, job, "BEGIN RETURN NULL; END");
        let schedule = format!(
            "SELECT awty.schedule('thing', i::text, '{job}', after => '1 hour') FROM generate_series(1, {checks}) AS i"
        );
        field.sql(role, &schedule);
    }
    field.cluster.stop(awty_testkit::Stop::Fast);
    field.cluster.set_clock(2 * 60 * 60);
    field.cluster.start();
    field.cluster.await_sql(
        DB,
        "alice's checks",
        "SELECT count(*) = 10 FROM awty.future_job_history WHERE job = 'few'",
    );
    let before: i64 = field.one(
        "postgres",
        "SELECT count(*) FROM awty.future_job_history WHERE job = 'many'
         AND started_at < (SELECT max(started_at) FROM awty.future_job_history WHERE job = 'few')",
    );
    assert!(before < 300, "alice's ten checks waited until {before} of mallory's had run");
}

#[test]
fn two_roles_together_starve_nobody() {
    let field = Field::new();
    field.cluster.create_user(DB, "eve");
    for (role, job) in [("mallory", "his"), ("eve", "theirs")] {
        field.job_with(role, job, "BEGIN PERFORM pg_sleep(86400); RETURN NULL; END", "timeout => '1 day'");
        for key in 0..10 {
            field.schedule(role, job, &key.to_string());
        }
    }
    field.cluster.await_sql(
        DB,
        "the first helper",
        "SELECT count(*) >= 3 FROM pg_stat_activity WHERE backend_type = 'awty worker'",
    );
    pulse(&field, 4);
    pulse_was_kept(&field, 4);
}

/// PostgreSQL replaces a queue of more than 4,096 invalidations by a single reset, so the test makes fewer changes.
#[test]
fn thousands_of_changes_of_a_job_end_no_query() {
    let field = Field::new();
    for role in ["alice", "mallory"] {
        field.job(role, &format!("{role}s"), "BEGIN RETURN NULL; END");
    }
    field.sql(
        "alice",
        "CREATE FUNCTION alice.waits() RETURNS bigint LANGUAGE plpgsql AS
         $$ BEGIN PERFORM pg_advisory_lock(1); RETURN (SELECT count(*) FROM pg_sequences); END $$",
    );
    // Waits until awty has created its partitions, because new partitions would add many messages to the invalidation
    // queue.
    field.run("alice", "alices").is_done();
    let [mut alice, mut mallory] = ["alice", "mallory"].map(|role| field.client(role));
    mallory.batch_execute("SELECT pg_advisory_lock(1)").unwrap();
    std::thread::scope(|scope| {
        let answered = scope.spawn(move || alice.simple_query("SELECT job, alice.waits() FROM awty.job"));
        let waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)";
        field.cluster.await_sql(DB, "the query of alice", waits);
        let changes = "DO $$ BEGIN FOR i IN 1..2500 LOOP PERFORM awty.alter('mallorys', max_attempts => 1 + i % 9); END LOOP; END $$";
        mallory.batch_execute(changes).unwrap();
        mallory.batch_execute("SELECT pg_advisory_unlock(1)").unwrap();
        answered.join().unwrap().unwrap();
    });
}

#[test]
fn failing_checks_of_others_have_nothing_compiled() {
    let field = Field::new();
    field.job("mallory", "mallorys", "BEGIN RETURN NULL; END");
    field.sql("mallory", "SELECT awty.schedule_many('e', array_agg(n::text), 'mallorys', after => '1 day') FROM generate_series(1, 2000) AS n");
    field.sql(
        "postgres",
        "UPDATE awty.future_job SET attempt = 1;
         INSERT INTO awty_internal.check_stat (check_id, failed_at) SELECT id, now() FROM awty.future_job;
         ANALYZE awty.future_job; ANALYZE awty_internal.check_stat; ALTER ROLE alice SET jit_above_cost = 2000",
    );
    let mut alice = field.client("alice");
    let is_compiled = |alice: &mut postgres::Client, relation: &str| {
        let rows = alice.query(&format!("EXPLAIN (ANALYZE) SELECT * FROM {relation}"), &[]).unwrap();
        rows.iter().any(|row| row.get::<_, String>(0).contains("JIT"))
    };
    assert!(is_compiled(&mut alice, "generate_series(1, 1000000) AS n ORDER BY 1"), "PostgreSQL cannot compile");
    assert!(!is_compiled(&mut alice, "awty.failing"));
}

#[test]
fn failing_and_held_checks_of_others_hide_none() {
    let field = Field::new();
    for role in ["mallory", "alice"] {
        field.job(role, &format!("{role}s"), "BEGIN RETURN NULL; END");
    }
    let many = "SELECT awty.schedule_many('e', array_agg(n::text), 'mallorys', after => '1 day') FROM generate_series(1, 100001) AS n";
    field.sql("mallory", many);
    field
        .sql("alice", "SELECT awty.schedule('e', n::text, 'alices', after => '1 day') FROM generate_series(1, 2) AS n");
    field.sql(
        "postgres",
        "UPDATE awty.future_job SET attempt = 1, held = true WHERE job = 'mallorys' OR entity_key = '1';
         INSERT INTO awty_internal.check_stat (check_id, failed_at) SELECT id, now() FROM awty.future_job WHERE attempt > 0",
    );
    let seen = "SELECT job || ': ' || failing || ' ' || held FROM awty.job_status WHERE job = $1 || 's'";
    for (role, figures) in [("alice", "alices: 1 1"), ("mallory", "mallorys: 100001 100001")] {
        assert_eq!(field.client(role).query_one(seen, &[&role]).unwrap().get::<_, String>(0), figures);
    }
}

#[test]
fn overdue_jobs_and_ends_of_others_hide_no_finding() {
    let field = Field::new();
    field.sql(
        "mallory",
        "SELECT awty.register('a' || i), awty.schedule('e', '1', 'a' || i, after => '0'), awty.allow('a' || i, 'alice', 'read')
         FROM generate_series(1, 1000) AS i",
    );
    field.job("alice", "broken", "BEGIN RETURN NULL; END");
    field.sql(
        "alice",
        "DROP FUNCTION alice.broken; SELECT awty.register('alices'), awty.schedule('e', '1', 'alices', after => '1 s')",
    );
    field.sql(
        "postgres",
        "UPDATE awty.future_job SET next_check_at = next_check_at - interval '1 hour' WHERE job <> 'alices';
         UPDATE awty.future_job SET next_check_at = now() - interval '1 minute' WHERE job = 'alices';
         INSERT INTO awty.future_job_history (id, job, entity_name, entity_key, first_check_at, next_check_at, scheduled_by, scheduled_at,
             finished_at, run_time, check_count, attempts, outcome, sqlstate, message, role)
         SELECT n, CASE WHEN n > 10 THEN 'a1' ELSE 'alices' END, 'e', n::text, now(), now(), r.role, now(), now() + n * interval '1 us',
             '0', 1, 1, CASE WHEN n > 10 THEN 'done' ELSE 'failed' END, CASE WHEN n <= 10 THEN 'P0001' END, CASE WHEN n <= 10 THEN 'no luck' END, r.role
         FROM generate_series(1, 10011) AS n
         CROSS JOIN LATERAL (SELECT CASE WHEN n > 10 THEN 'mallory' ELSE 'alice' END::regrole AS role) AS r",
    );
    for (finding, detail) in [
        ("no external worker claims checks of job \"alices\"", "%the oldest has been due since%"),
        ("the function of job \"broken\" cannot be called", "%does not exist%"),
        ("job \"alices\" fails with the same error again and again", "10 times since %: P0001: no luck"),
    ] {
        let named =
            format!("SELECT count(*) FROM awty.doctor() WHERE finding = '{finding}' AND detail LIKE '{detail}'");
        assert_eq!(field.one::<i64>("alice", &named), 1, "{finding}");
    }
}

#[test]
fn due_checks_of_others_make_no_status_slow() {
    let field = Field::new();
    field.sql("mallory", "SELECT awty.register('m' || i) FROM generate_series(1, 400) AS i");
    field.sql(
        "postgres",
        "INSERT INTO awty_internal.target (job, target, blocked_until) SELECT j.job, '', now() + interval '1 day' FROM awty.job AS j;
         INSERT INTO awty.future_job (job, entity_name, entity_key, first_check_at, next_check_at, scheduled_by, scheduled_at)
         SELECT j.job, 'e', n::text, now(), now(), j.role, now() FROM awty.job AS j, generate_series(1, 400) AS n;
         ANALYZE awty.future_job",
    );
    let mut alice = field.client("alice");
    let mut reader = alice.transaction().unwrap();
    reader.query("SELECT why FROM awty.status", &[]).unwrap();
    let read = "SELECT (seq_tup_read + idx_tup_fetch)::bigint FROM pg_stat_xact_all_tables WHERE relid = 'awty.future_job'::regclass";
    let read: i64 = reader.query_one(read, &[]).unwrap().get(0);
    assert!((1000..130_000).contains(&read), "{read} rows were read");
}

/// Each change of a job makes all sessions read their jobs again. Mallory changes her jobs so fast that alice's worker
/// cannot read all of alice's 3,000 jobs between two changes. The worker must still run alice's checks.
#[test]
fn changes_of_a_job_in_a_loop_stop_no_run_of_others() {
    let field = Field::new();
    field.job("alice", "pulse", "BEGIN RETURN NULL; END");
    field.sql(
        "alice",
        "CREATE FUNCTION alice.nothing(awty.future_job) RETURNS timestamptz LANGUAGE sql RETURN NULL::timestamptz;
         SELECT awty.register('many ' || i, 'alice.nothing') FROM generate_series(1, 3000) AS i",
    );
    let (stop, changes) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for number in 0..4 {
            let (field, stop, changes) = (&field, &stop, &changes);
            scope.spawn(move || {
                let mut mallory = field.client("mallory");
                let job = format!("changed {number}");
                mallory.batch_execute(&format!("SET synchronous_commit = off; SELECT awty.register('{job}')")).unwrap();
                for note in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    mallory.batch_execute(&format!("SELECT awty.pause('{job}', '{note}')")).unwrap();
                    changes.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let ends = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for key in 0..5 {
                let (before, id) =
                    (changes.load(Ordering::Relaxed), field.schedule("alice", "pulse", &key.to_string()));
                field.end_of(id).is_done();
                assert!(changes.load(Ordering::Relaxed) > before, "mallory has changed nothing meanwhile");
            }
        }));
        stop.store(true, Ordering::Relaxed);
        ends.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

/// Mallory's query calls pg_sleep() in its parallel workers, so that they occupy background worker processes during the
/// whole test.
#[test]
fn parallel_queries_take_no_process_that_awty_needs() {
    let field = Field::with(Cluster::builder().set("max_worker_processes", "20"));
    field.job("mallory", "hers", "BEGIN RETURN NULL; END");
    field.sql(
        "mallory",
        "CREATE TABLE mallory.big WITH (parallel_workers = 20, fillfactor = 10) AS
             SELECT n, repeat('x', 500) AS filler FROM generate_series(1, 100) AS n",
    );
    let mut mallory = field.client("mallory");
    let pid: i32 = mallory.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0);
    let sleeping = std::thread::spawn(move || {
        mallory.batch_execute(
            "SET max_parallel_workers_per_gather = 20; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
             SET min_parallel_table_scan_size = 0; SELECT count(*) FROM mallory.big WHERE pg_sleep(600) IS NULL",
        )
    });
    field.cluster.await_sql(
        "postgres",
        "the parallel workers",
        "SELECT count(*) = 8 FROM pg_stat_activity WHERE backend_type = 'parallel worker'",
    );
    field.alice_goes_on();
    let said = "SELECT coalesce(string_agg(concat_ws('; ', level, detail, fix), ' '), '') FROM awty.doctor() WHERE finding LIKE 'parallel%'";
    assert_eq!(field.one::<String>("postgres", said), "");
    field.sql("postgres", "ALTER SYSTEM SET awty.max_workers = 5");
    field.sql("postgres", "SELECT pg_reload_conf()");
    field.cluster.await_sql(
        "postgres",
        "the finding",
        &format!(
            "SELECT ({said}) = 'notice; max_worker_processes is 20; parallel queries and logical replication may take 13, and awty needs 8; \
             ALTER SYSTEM SET max_worker_processes = 21; -- then restart the server' AND awty.healthy()"
        ),
    );
    assert_eq!(field.one::<String>("alice", said), "", "a role that sees no job of another role is told nothing");
    field.sql("postgres", &format!("SELECT pg_terminate_backend({pid})"));
    assert!(sleeping.join().unwrap().is_err());
}
