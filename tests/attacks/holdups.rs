use awty_testkit::{Cluster, PATIENCE, poll};
use std::time::Duration;

use crate::field::{DB, Field, answer};

/// The delay lasts while the role's transaction is open.
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
    // The checks run before the inspection that follows each minute.
    let ran = poll("the checks to run", Duration::from_secs(20), || {
        let done = "SELECT entity_key || ' ' || outcome FROM awty.future_job_history ORDER BY entity_key";
        let done = client.query(done, &[]).map_err(|error| format!("{error:?}"))?;
        let done: Vec<String> = done.iter().map(|row| row.get(0)).collect();
        if done.len() == calls.len() { Ok(done) } else { Err(format!("{done:?}")) }
    });
    assert_eq!(ran, Ok(["1 done", "2 done", "3 done"].map(str::to_owned).to_vec()));
}

/// An open or prepared transaction has registered the name.
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
