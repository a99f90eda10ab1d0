//! Mallory and alice have jobs for external workers. One call, such as a call of the gateway, handles leases of both.

use crate::field::{DB, Field, answer};
use awty_testkit::PATIENCE;
use std::sync::atomic::{AtomicBool, Ordering};

const MANY: usize = 2_000;

/// Registers the job `{role}s`, and claims its checks, whose targets are all the same.
fn leased(field: &Field, role: &str, count: usize) -> Vec<i64> {
    let job = format!("{role}s");
    field.sql(
        role,
        &format!(
            "SELECT awty.register('{job}', heartbeat => '1 min', timeout => '1 h', max_attempts => 0);
             SELECT awty.schedule('target', n::text, '{job}', after => '0') FROM generate_series(1, {count}) AS n"
        ),
    );
    field.await_claimable(&job);
    field.one(role, &format!("SELECT array_agg(lease) FROM awty.claim('{{{job}}}', 'w', {count})"))
}

#[test]
fn a_locked_lease_delays_no_report_and_no_return_of_another() {
    let field = Field::new();
    let (his, hers) = (leased(&field, "mallory", 2), leased(&field, "alice", 4));
    for (place, call) in ["requeue", "heartbeat"].iter().enumerate() {
        let mut holding = field.client("mallory");
        holding.batch_execute(&format!("BEGIN; SELECT awty.{call}('{{{}}}')", his[place])).unwrap();
        let [both, others] = [0, 1].map(|other| format!("'{{{}, {}}}'", his[place], hers[2 * place + other]));
        let mut worker = field.client("postgres");
        worker.batch_execute("SET statement_timeout = '1min'").unwrap();
        let mut one = |sql: &str| worker.query_one(sql, &[]).unwrap_or_else(|error| panic!("{call}: {sql}: {error:?}"));
        let answers: Vec<String> = one(&format!("SELECT awty.complete_many({both})")).get(0);
        assert_eq!(answers, ["busy", "ended"], "{call}");
        let given_back: i64 = one(&format!("SELECT awty.requeue({others})")).get(0);
        assert_eq!(given_back, 1, "{call}");
        holding.batch_execute("ROLLBACK").unwrap();
        let answers: Vec<String> = one(&format!("SELECT awty.complete_many('{{{}}}')", his[place])).get(0);
        assert_eq!(answers, ["ended"], "{call}");
    }
}

#[test]
fn locked_breakers_delay_no_report_of_another_role() {
    let field = Field::new();
    let (his, hers) = (leased(&field, "mallory", 3), leased(&field, "alice", 2));
    field.sql("mallory", &format!("SELECT awty.fail({}, 'down', target_down => true)", his[0]));
    let mut holding = field.client("mallory");
    holding.batch_execute("BEGIN; SELECT awty.alter_target('mallorys', blocked_until => '-infinity')").unwrap();
    let both = |place: usize| format!("'{{{}, {}}}'", his[place + 1], hers[place]);
    let mut worker = field.client("postgres");
    worker.batch_execute("SET statement_timeout = '1min'").unwrap();
    for (report, answer) in [
        (format!("awty.complete_many({})", both(0)), "ended"),
        (format!("awty.fail_many({}, '{{down, down}}', target_down => '{{true, true}}')", both(1)), "retrying"),
    ] {
        let answers = worker.query_one(&format!("SELECT {report}"), &[]);
        let answers: Vec<String> = answers.unwrap_or_else(|error| panic!("{report}: {error:?}")).get(0);
        assert_eq!(answers, [answer, answer], "{report}");
    }
}

/// awty notes in shared memory that a job was claimed. Another process sees some jobs of a claim noted and others not,
/// because the claim gives back the lock on shared memory meanwhile.
#[test]
fn a_claim_of_thousands_of_jobs_gives_back_the_lock_on_shared_memory() {
    let field = Field::new();
    let jobs = format!("generate_series(1, {MANY}) AS n");
    let name = "'m' || lpad(n::text, 4, '0')";
    field.sql("mallory", &format!("SELECT awty.register({name}) FROM {jobs}; SELECT awty.pause({name}) FROM {jobs}"));
    let is_seen = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let mut mallory = field.client("mallory");
            let claim = format!("SELECT count(*) FROM awty.claim(ARRAY(SELECT {name} FROM {jobs}), 'w')");
            while !is_seen.load(Ordering::Relaxed) {
                mallory.batch_execute(&claim).unwrap();
            }
        });
        let mut postgres = field.client("postgres");
        let partly = format!(
            "SELECT bool_or(awty_internal.last_claim('m0001') > awty_internal.last_claim('m{MANY:04}')) IS TRUE FROM generate_series(1, 1000)"
        );
        let seen = awty_testkit::poll("a claim that is noted in part", PATIENCE, || {
            let seen: bool = postgres.query_one(&partly, &[]).map_err(|error| format!("{error:?}"))?.get(0);
            if seen { Ok(()) } else { Err("each claim is noted as a whole".to_owned()) }
        });
        is_seen.store(true, Ordering::Relaxed);
        seen.unwrap();
    });
}

#[test]
fn expired_leases_of_many_jobs_do_not_keep_the_maintainer() {
    const JOBS: usize = 500;
    let field = Field::new();
    leased(&field, "alice", 1);
    field.sql(
        "mallory",
        &format!(
            "SELECT awty.register('m' || n, max_attempts => 0, timeout => '1 h') FROM generate_series(1, {JOBS}) AS n;
             SELECT awty.schedule_many('e', ARRAY(SELECT k::text FROM generate_series(1, 10) AS k), 'm' || n, after => '0') FROM generate_series(1, {JOBS}) AS n"
        ),
    );
    let due = "SELECT bool_and(next_check_at <= clock_timestamp()) FROM awty.future_job";
    field.cluster.await_sql(DB, "the slot", due);
    let claim = format!(
        "SELECT count(*) FROM awty.claim(ARRAY(SELECT 'm' || n FROM generate_series(1, {JOBS}) AS n), 'w', 1000)"
    );
    let leased: Vec<i64> = (0..JOBS / 100).map(|_| field.one("mallory", &claim)).collect();
    assert_eq!(leased, [1000; JOBS / 100]);
    let past = "leased_at + interval '1 us'";
    field.sql("postgres", &format!("UPDATE awty_internal.lease SET expires_at = {past}, deadline = {past}"));
    field.job("alice", "another", "BEGIN RETURN NULL; END"); // triggers an inspection
    let ended = "SELECT NOT EXISTS (SELECT FROM awty_internal.lease WHERE job = 'alices')";
    field.cluster.await_sql(DB, "the end of alice's lease", ended);
    // One transaction of the maintainer ends leases of both roles, but only for a limited time for each role.
    let left: i64 = field.one("postgres", "SELECT count(*) FROM awty_internal.lease");
    assert!(left > 0, "the maintainer has ended all leases at once");
}

#[test]
fn a_claim_that_waited_is_judged_after_the_wait() {
    let field = Field::new();
    field.sql("alice", "SELECT awty.register('pay'), awty.allow('pay', 'mallory', 'claim')");
    field.sql("alice", "SELECT awty.schedule('order', n::text, 'pay', after => '0') FROM generate_series(1, 4) AS n");
    field.await_claimable("pay");
    let claim = |worker| format!("SELECT count(*) FROM awty.claim('{{pay}}', '{worker}', 1)");
    let (mut alice, mut mallory) = (field.client("alice"), field.client("mallory"));
    alice.batch_execute(&format!("BEGIN; {}", claim("alice"))).unwrap();
    let waiting = std::thread::spawn(move || answer(&mut mallory, &claim("mallory")));
    let waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND classid = 'awty_internal.lease'::regclass)";
    field.cluster.await_sql(DB, "the second claim to wait", waits);
    alice.batch_execute("SELECT awty.disallow('pay', 'mallory'); COMMIT").unwrap();
    assert_eq!(waiting.join().unwrap(), "");
    let workers: String = field.one("alice", "SELECT string_agg(worker, ' ') FROM awty.lease");
    assert_eq!(workers, "alice");
}

/// Otherwise, no claim of the next owner of the name could take the job's checks.
#[test]
fn a_claim_that_waited_for_the_end_of_its_job_keeps_no_lock_on_the_name() {
    let field = Field::new();
    field.sql("mallory", "SELECT awty.register('pay'), awty.schedule('order', '1', 'pay', after => '0')");
    field.await_claimable("pay");
    let (mut ends, mut claims) = (field.client("mallory"), field.client("mallory"));
    ends.batch_execute("BEGIN; SELECT awty.unregister('pay')").unwrap();
    let claim = "SELECT count(*) FROM awty.claim('{pay}', 'w', 1)";
    let waiting = std::thread::spawn(move || {
        claims.batch_execute(&format!("BEGIN; {claim}")).unwrap();
        claims
    });
    let waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND classid = 'awty_internal.lease'::regclass)";
    field.cluster.await_sql(DB, "the claim to wait", waits);
    ends.batch_execute("COMMIT").unwrap();
    let _open = waiting.join().unwrap();
    field.sql("alice", "SELECT awty.register('pay'), awty.schedule('order', '2', 'pay', after => '0')");
    field.await_claimable("pay");
    let mut alice = field.client("alice");
    alice.batch_execute("SET statement_timeout = '20s'").unwrap();
    let claimed = alice.query_one(claim, &[]).map(|row| row.get::<_, i64>(0));
    assert_eq!(claimed.ok(), Some(1), "the claim waited in vain");
}

/// Otherwise, the claims of the new role would wait for the former role.
#[test]
fn a_job_with_an_open_claim_gets_no_new_role() {
    let field = Field::new();
    field.sql("mallory", "SELECT awty.register('pay'), awty.schedule('order', '1', 'pay', after => '0')");
    field.await_claimable("pay");
    let mut open = field.client("mallory");
    open.batch_execute("BEGIN; SELECT count(*) FROM awty.claim('{pay}', 'w', 1)").unwrap();
    let alter = "SELECT awty.alter('pay', run_as => 'alice')";
    field.refused("postgres", alter, "55P03");
    open.batch_execute("COMMIT").unwrap();
    field.sql("postgres", alter);
}
