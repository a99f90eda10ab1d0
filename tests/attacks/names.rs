//! A check belongs to the job that had this name when the check was scheduled, also if another role gets the name.

use crate::alters::{beside, field_with_guild};
use crate::field::{DB, Field, answer};
use awty_testkit::Cluster;

/// The call waits for a transaction that uses the name of the job.
#[track_caller]
fn waits(field: &Field, role: &str, job: &str, call: &str) {
    let refusal = field.refused(role, &format!("SET lock_timeout = '2s'; {call}"), "55P03");
    let busy = format!("job \"{job}\" or one of its checks or targets is locked by another transaction");
    assert_eq!(refusal.message, busy, "{call}");
}

fn left(field: &Field, job: &str) -> String {
    let left = format!(
        "SELECT (SELECT count(*) FROM awty.future_job WHERE job = '{job}'), (SELECT count(*) FROM awty.repetition WHERE job = '{job}')"
    );
    field.cluster.psql(DB, &left).trim().into()
}

#[test]
fn a_check_of_an_open_transaction_reaches_no_job_of_another_role() {
    let field = Field::with(Cluster::builder().set("max_prepared_transactions", "2"));
    let function = |role| {
        format!(
            "CREATE FUNCTION {role}.f(j awty.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz'"
        )
    };
    for role in ["alice", "mallory"] {
        field.sql(role, &function(role));
    }
    let schedule = |job| format!("SELECT awty.schedule('secret', '1', '{job}', after => '1 day', args => '1')");
    for (job, call, commit) in [
        ("one", schedule("one"), "COMMIT"),
        ("many", "SELECT awty.schedule_many('secret', '{1,2}', 'many', after => '1 day')".into(), "COMMIT"),
        ("repeated", "SELECT awty.repeat('repeated', every => '1 h', entity_key => '1')".into(), "COMMIT"),
        ("held", format!("{}; SELECT awty.hold('secret', '1', 'held')", schedule("held")), "COMMIT"),
        ("prepared", format!("{}; PREPARE TRANSACTION 'p'", schedule("prepared")), "COMMIT PREPARED 'p'"),
    ] {
        // Only the first repetition of a job locks the job.
        field.sql("alice", &format!("SELECT awty.register('{job}', 'alice.f'), awty.repeat('{job}', every => '1 h')"));
        let mut open = field.client("alice");
        open.batch_execute(&format!("BEGIN; {call}")).unwrap();
        field.sql("alice", &format!("SELECT awty.unregister('{job}')"));
        let register = format!("SELECT awty.register('{job}', 'mallory.f')");
        let mut earlier = field.client("mallory");
        earlier.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT").unwrap();
        waits(&field, "mallory", job, &register);
        open.batch_execute(commit).unwrap();
        if job == "held" {
            assert_eq!(answer(&mut earlier, &register), "55P03", "the check is newer than the snapshot");
        }
        earlier.batch_execute("ROLLBACK").unwrap();
        field.sql("mallory", &register);
        assert_eq!(left(&field, job), "0|0", "{job}");
    }
}

#[test]
fn checks_of_a_new_job_stay_if_another_session_registers_it_too() {
    let field = Field::new();
    let register = "awty.register('twice', NULL)";
    let first = format!("{register}, awty.schedule('thing', '1', 'twice', after => '1 day')");
    assert_eq!(beside(&field, ("alice", &first), ("alice", register)), "");
    assert_eq!(left(&field, "twice"), "1|0");
}

#[test]
fn a_job_gets_another_role_only_after_open_transactions_that_scheduled_its_checks() {
    let field = field_with_guild(&["job"]);
    let mut mallory = field.client("mallory");
    mallory.batch_execute("BEGIN; SELECT awty.schedule('thing', '1', 'job', after => '1 day')").unwrap();
    for change in ["alter('job', run_as => 'alice')", "register('job', 'guild.f', run_as => 'alice', replace => true)"]
    {
        waits(&field, "alice", "job", &format!("SELECT awty.{change}"));
    }
    field.sql("alice", "SELECT awty.alter('job', run_as => 'guild', timeout => '7 s')");
    mallory.batch_execute("COMMIT").unwrap();
    field.sql("alice", "SELECT awty.alter('job', run_as => 'alice')");
    field.refused("mallory", "SELECT awty.schedule('thing', '2', 'job', after => '1 day')", "42501");
}

const RULES: [&str; 8] = ["r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8"];

fn watch(rule: &str, rest: &str) -> String {
    format!(
        "awty.watch('alice.{rule}', since => 'at', until => $$s = 'y'$$, within => '1 day', existing => 'all'{rest})"
    )
}

fn field_with_rules(rules: &[&str]) -> Field {
    let field = Field::new();
    field.cluster.create_user(DB, "bob");
    field.sql("postgres", "GRANT ALL ON SCHEMA alice TO bob");
    for rule in rules {
        let table = format!(
            "CREATE TABLE alice.{rule} (id bigint PRIMARY KEY, at timestamptz, s text);
             INSERT INTO alice.{rule} VALUES (1, now()), (4, now())"
        );
        field.sql("alice", &format!("{table}; SELECT {}", watch(rule, "")));
    }
    let known = format!("SELECT count(*) = {} FROM awty.future_job WHERE entity_key IN ('1', '4')", 2 * rules.len());
    field.cluster.await_sql(DB, "checks of all rows", &known);
    field
}

#[test]
fn a_repetition_of_an_open_transaction_does_not_outlive_the_hand_over_of_the_rule() {
    let field = field_with_rules(&["r1"]);
    let repeat =
        |key| format!("SELECT awty.repeat('r1', every => '1 min', entity_name => 'r1', entity_key => '{key}')");
    field.sql("alice", &format!("{}; UPDATE alice.r1 SET s = 'y' WHERE id = 4", repeat("1")));
    let mut alice = field.client("alice");
    let schedule = "SELECT awty.schedule('spy', '1', 'r1', after => '1 day')";
    alice.batch_execute(&format!("BEGIN; {}; {schedule}", repeat("4"))).unwrap();
    field.sql("postgres", "ALTER TABLE alice.r1 OWNER TO bob");
    let replace = format!("SELECT {}", watch("r1", ", replace => true"));
    waits(&field, "bob", "r1", &replace);
    alice.batch_execute("COMMIT").unwrap();
    field.sql("bob", &replace);
    let of_alice = "SELECT (SELECT count(*) FROM awty.repetition), (SELECT count(*) FROM awty.future_job WHERE scheduled_by = 'alice'::regrole)";
    assert_eq!(field.cluster.psql(DB, of_alice).trim(), "0|0");
}

#[test]
fn a_call_that_waited_for_the_hand_over_of_a_rule_is_judged_after_it() {
    let calls = [
        "awty.schedule('r1', '1', 'r1', after => '1 h')",
        "awty.schedule('r2', '1', 'r2', after => '1 h', on_conflict => 'keep')",
        "awty.schedule_many('r3', '{1,5}', 'r3', after => '1 h')",
        "awty.repeat('r4', every => '1 min', entity_name => 'r4', entity_key => '1')",
        "awty.cancel('r5', '1', 'r5')",
        "awty.cancel_many('r6', '{1}', 'r6')",
        "awty.check_now('r7', '1', 'r7')",
        "awty.hold('r8', '1', 'r8')",
    ];
    let field = field_with_rules(&RULES);
    for (rule, call) in RULES.iter().zip(calls) {
        field.sql("postgres", &format!("ALTER TABLE alice.{rule} OWNER TO bob"));
        assert_eq!(beside(&field, ("bob", &watch(rule, ", replace => true")), ("alice", call)), "42501", "{call}");
    }
}

#[test]
fn a_rule_ends_after_open_writes_of_its_table_which_lock_no_name() {
    let field = field_with_rules(&["r1"]);
    let mut alice = field.client("alice");
    alice.batch_execute("BEGIN; INSERT INTO alice.r1 VALUES (2, now())").unwrap();
    let names = "SELECT count(*) FROM pg_locks WHERE locktype = 'object' AND classid = 'awty.job'::regclass";
    assert_eq!(field.cluster.psql(DB, names).trim(), "0");
    field.refused("alice", "SET lock_timeout = '2s'; SELECT awty.unwatch('r1')", "55P03");
    alice.batch_execute("COMMIT").unwrap();
    field.sql("alice", "SELECT awty.unwatch('r1')");
    assert_eq!(left(&field, "r1"), "0|0");
}

#[test]
fn the_name_of_another_roles_job_is_refused_without_a_wait() {
    let field = Field::new();
    field.sql("alice", "SELECT awty.register('busy')");
    field.sql("mallory", "CREATE TABLE mallory.t (id bigint PRIMARY KEY, s text)");
    let mut open = field.client("alice");
    open.batch_execute("BEGIN; SELECT awty.schedule('e', '1', 'busy', after => '1 day')").unwrap();
    let mut mallory = field.client("mallory");
    for call in [
        "SELECT awty.register('busy')",
        "SELECT awty.watch('mallory.t', until => $$s = 'y'$$, within => '1 h', rule => 'busy')",
    ] {
        assert_eq!(answer(&mut mallory, call), "42710", "{call}");
    }
}

/// Returns the SQLSTATE of alice's call, which waits for a lock. `meanwhile` is executed while the call waits, and
/// releases the lock.
fn call_that_waits(field: &Field, call: &str, meanwhile: impl FnOnce()) -> String {
    let mut alice = field.client("alice");
    std::thread::scope(|scope| {
        let pid: i32 = alice.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0);
        let called = scope.spawn(move || answer(&mut alice, &format!("SELECT {call}")));
        field.cluster.await_sql(DB, "the call to wait", &crate::field::waits(pid));
        meanwhile();
        called.join().unwrap()
    })
}

/// The name is free for a moment, because a session that waits for the table keeps the call from going on.
#[test]
fn an_unwatch_that_waits_ends_no_job_of_another_role() {
    let field = field_with_rules(&["r1"]);
    let (mut first, mut next) = (field.client("alice"), field.client("alice"));
    first.batch_execute("BEGIN; LOCK TABLE alice.r1 IN SHARE ROW EXCLUSIVE MODE").unwrap();
    let next = std::thread::spawn(move || {
        next.batch_execute("BEGIN; LOCK TABLE alice.r1").unwrap();
        next
    });
    let waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 'alice.r1'::regclass AND NOT granted)";
    field.cluster.await_sql(DB, "the second lock to wait", waits);
    let ended = call_that_waits(&field, "awty.unwatch('r1')", || {
        first.batch_execute("SELECT awty.unwatch('r1'); COMMIT").unwrap();
        field.job("mallory", "r1", "BEGIN RETURN NULL; END");
        field.sql("mallory", "SELECT awty.schedule('thing', '1', 'r1', after => '1 day')");
        next.join().unwrap().batch_execute("COMMIT").unwrap();
    });
    assert_eq!((ended.as_str(), left(&field, "r1").as_str()), ("42704", "1|0"));
}

#[test]
fn an_unwatch_that_waits_for_the_hand_over_of_the_table_is_judged_after_it() {
    for (hand_over, refusal) in [("", "42501"), (", replace => true", "42704")] {
        let field = field_with_rules(&["r1"]);
        let mut open = field.client("postgres");
        open.batch_execute("BEGIN; ALTER TABLE alice.r1 OWNER TO bob").unwrap();
        if !hand_over.is_empty() {
            open.batch_execute(&format!("SET LOCAL ROLE bob; SELECT {}; RESET ROLE", watch("r1", hand_over))).unwrap();
        }
        let ended = call_that_waits(&field, "awty.unwatch('r1')", || open.batch_execute("COMMIT").unwrap());
        assert_eq!(ended, refusal, "{hand_over}");
        assert_eq!(field.one::<i64>("postgres", "SELECT count(*) FROM awty.rule"), 1);
    }
}

#[test]
fn a_replaced_calendar_reaches_no_job_that_took_the_name_of_a_rule_meanwhile() {
    let field = field_with_rules(&["r1", "r2"]);
    let calendar = |hours: &str, rest: &str| format!("awty.create_calendar('c', '{{mon-sun {hours}}}', 'UTC'{rest})");
    field.sql("alice", &format!("SELECT {}", calendar("00:00-24:00", "")));
    for rule in ["r1", "r2"] {
        field.sql("alice", &format!("SELECT {}", watch(rule, ", calendar => 'c', replace => true")));
    }
    let walked = "SELECT NOT EXISTS (SELECT FROM awty.future_job WHERE entity_name = 'awty.backfill')";
    field.cluster.await_sql(DB, "the walks", walked);
    let mut open = field.client("alice");
    open.batch_execute("BEGIN; SELECT awty.schedule('awty.backfill', 'r1', 'r1', after => '10 days')").unwrap();
    let replaced = call_that_waits(&field, &calendar("09:00-17:00", ", replace => true"), || {
        field.sql("alice", "SELECT awty.unwatch('r2')");
        field.job("mallory", "r2", "BEGIN RETURN NULL; END");
        open.batch_execute("COMMIT").unwrap();
    });
    assert_eq!(replaced, "");
    // If a check reaches the job, its function may have ended the check already.
    let reached = "SELECT (SELECT count(*) FROM awty.future_job WHERE job = 'r2')
                        + (SELECT count(*) FROM awty.future_job_history WHERE job = 'r2' AND role = 'mallory'::regrole)";
    assert_eq!(field.one::<i64>("postgres", reached), 0);
}

#[test]
fn a_cancel_without_a_job_keeps_the_names_of_its_jobs_until_it_ends() {
    let field = Field::new();
    for (name, call) in [("one", "awty.cancel('one', '1')"), ("many", "awty.cancel_many('many', '{1}')")] {
        let [first, last] = [format!("a_{name}"), format!("b_{name}")];
        let schedule = |job: &str, after| format!("SELECT awty.schedule('{name}', '1', '{job}', after => '{after}')");
        for job in [&first, &last] {
            field.job("alice", job, "BEGIN RETURN NULL; END");
            field.sql("alice", &schedule(job, "1 day"));
        }
        let mut open = field.client("alice");
        open.batch_execute(&format!("BEGIN; {}", schedule(&first, "2 days"))).unwrap();
        let register = format!("SELECT awty.register('{last}')");
        let cancelled = call_that_waits(&field, call, || {
            field.sql("alice", &format!("SELECT awty.unregister('{last}')"));
            waits(&field, "mallory", &last, &register);
            open.batch_execute("COMMIT").unwrap();
        });
        assert_eq!(cancelled, "");
        field.sql("mallory", &register);
    }
}

/// The setting decides whether a backslash before a quote keeps the quote from ending the text.
#[test]
fn the_name_of_a_rule_is_no_code_whatever_a_backslash_means() {
    let field = Field::new();
    field.sql("alice", "CREATE TABLE alice.t (id bigint PRIMARY KEY, s text); CREATE SEQUENCE alice.runs");
    let mut alice = field.client("alice");
    alice.batch_execute("SET standard_conforming_strings = off; SET escape_string_warning = off").unwrap();
    let name = r"x\';SELECT nextval($$alice.runs$$)--";
    let watch = "SELECT awty.watch('alice.t', until => $$s = 'y'$$, within => '1 h', rule => $1)";
    let watched = alice.query(watch, &[&name]);
    assert!(!field.one::<bool>("alice", "SELECT is_called FROM alice.runs"), "{watched:?}");
    watched.unwrap();
    let found: String = field.one("alice", "SELECT rule FROM awty.rule");
    assert_eq!(found, name);
    field.sql("alice", "INSERT INTO alice.t VALUES (1, 'n')");
    assert_eq!(field.one::<i64>("alice", "SELECT count(*) FROM awty.future_job WHERE entity_name = 't'"), 1);
}
