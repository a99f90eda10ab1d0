//! A calendar that is replaced moves the checks of all roles that use it.

use crate::field::{DB, Field, answer, waits};

const NOTHING: &str = "BEGIN RETURN NULL; END";
const ALWAYS: &str = "'{mon-sun 00:00-24:00}', 'UTC'";
const CLOSED: &str = "SELECT awty.create_calendar('shared', '{mon-sun 00:00-24:00}', 'UTC', replace => true,
    closed => ARRAY(SELECT (now() AT TIME ZONE 'UTC')::date + day FROM generate_series(-1, 1) AS day))";

fn field() -> Field {
    let field = Field::new();
    field.sql("postgres", &format!("SELECT awty.create_calendar('shared', {ALWAYS})"));
    for role in ["alice", "mallory"] {
        field.job(role, &format!("{role}s"), NOTHING);
    }
    field
}

fn keep(key: usize) -> String {
    format!("SELECT awty.schedule('e', '{key:02}', 'mallorys', after => '2 days', on_conflict => 'keep')")
}

/// PostgreSQL's `lock_timeout` begins anew with each lock for which a statement waits.
#[test]
fn checks_that_are_given_back_one_by_one_share_the_patience_of_one() {
    const CHECKS: usize = 8;
    let field = field();
    let many = format!(
        "SELECT awty.repeat('mallorys', every => '1 day', zone => 'UTC', entity_name => 'e', entity_key => lpad(n::text, 2, '0'), calendar => 'shared')
         FROM generate_series(1, {CHECKS}) AS n"
    );
    field.sql("mallory", &many);
    let mut holding = field.client("mallory");
    holding.batch_execute("BEGIN").unwrap();
    for key in (1..=CHECKS).rev() {
        holding.batch_execute(&format!("SAVEPOINT s{key}; {}", keep(key))).unwrap();
    }
    let mut owner = field.client("postgres");
    let pid: i32 = owner.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0);
    let call = std::thread::spawn(move || answer(&mut owner, CLOSED));
    for key in 1..=CHECKS {
        let waiting = waits(pid);
        field.cluster.await_that("the call to wait or to end", awty_testkit::PATIENCE, || {
            if call.is_finished() || field.one("postgres", &waiting) { Ok(()) } else { Err(String::new()) }
        });
        if call.is_finished() {
            break;
        }
        holding.batch_execute(&format!("SELECT pg_sleep(1.5); ROLLBACK TO s{key}")).unwrap();
    }
    assert_eq!(call.join().unwrap(), "55P03");
    holding.batch_execute("ROLLBACK").unwrap();
    field.sql("postgres", CLOSED);
}

#[test]
fn a_run_that_ends_while_a_calendar_is_replaced_goes_on_by_the_new_one() {
    let field = field();
    let repeat = |role: &str, every: &str, name: &str| {
        format!(
            "SELECT awty.repeat('{role}s', every => '{every}', zone => 'UTC', entity_name => '{name}', entity_key => '01', calendar => 'shared')"
        )
    };
    field.sql("mallory", &repeat("mallory", "1 day", "e"));
    field.sql("alice", &repeat("alice", "1 s", "f"));
    let runs = "SELECT count(*) FROM awty.future_job_history WHERE job = 'alices'";
    field.cluster.await_sql(DB, "alice's runs", &format!("SELECT ({runs}) > 1"));
    let mut holding = field.client("mallory");
    holding.batch_execute(&format!("BEGIN; {}", keep(1))).unwrap();
    let mut owner = field.client("postgres");
    let pid: i32 = owner.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0);
    // On a busy machine, the other run may take longer than one call waits.
    let call = std::thread::spawn(move || {
        loop {
            match answer(&mut owner, CLOSED).as_str() {
                "55P03" => {}
                other => break other.to_owned(),
            }
        }
    });
    field.cluster.await_sql(DB, "the call to wait", &waits(pid));
    let before: i64 = field.one("postgres", runs);
    field.cluster.await_sql(DB, "another run", &format!("SELECT ({runs}) > {before}"));
    holding.batch_execute("ROLLBACK").unwrap();
    assert_eq!(call.join().unwrap(), "");
    let waits_for_the_opening =
        "SELECT bool_and(next_check_at > now() + interval '1 day') FROM awty.future_job WHERE job = 'alices'";
    assert!(field.one::<bool>("postgres", waits_for_the_opening));
}
