//! What a role can hold up by keeping a transaction open.

use awty_testkit::{Cluster, PATIENCE, poll};
use std::time::Duration;

use crate::field::{DB, Field, answer};

/// P6, P7: who may schedule a job can keep its checks from being run as long as its transaction is open, and no longer.
#[test]
fn a_due_check_runs_soon_after_its_row_is_let_go() {
    let field = Field::new();
    field.job("alice", "shared", "BEGIN RETURN NULL; END");
    field.sql("alice", "SELECT awty.allow('shared', 'mallory')");
    for call in [
        "awty.schedule('thing', '1', 'shared', after => '1 day', on_conflict => 'keep')",
        "awty.schedule('thing', '1', 'shared', after => '1 day')",
        "awty.cancel('thing', '1', 'shared')",
    ] {
        let id: i64 = field.one("alice", "SELECT awty.schedule('thing', '1', 'shared', after => '2 seconds')");
        let mut holding = field.client("mallory");
        holding.batch_execute(&format!("BEGIN; SELECT {call}")).unwrap();
        // Longer than awty tried again at short intervals.
        let due = format!(
            "SELECT next_check_at < clock_timestamp() - interval '5 seconds' FROM awty.future_job WHERE id = {id}"
        );
        field.cluster.await_sql(DB, "the check to have been held up for a while", &due);
        holding.batch_execute("ROLLBACK").unwrap();
        let mut client = field.client("postgres");
        let ended = poll("the check to run", Duration::from_secs(5), || {
            let done = "SELECT outcome FROM awty.future_job_history WHERE id = $1";
            let row = client.query_opt(done, &[&id]).map_err(|error| format!("{error:?}"))?;
            row.map(|row| row.get::<_, String>(0)).ok_or_else(|| "not in the history".into())
        });
        assert_eq!(ended, Ok("done".into()), "{call}");
    }
}

/// P9: a name that an open transaction has registered, or a prepared one, is refused after a while; nobody waits for ever.
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
        alice.batch_execute("SET statement_timeout = '15s'").unwrap();
        assert_eq!(answer(&mut alice, register), "55P03", "{keep}");
        // What she may wait for is her own to say.
        alice.batch_execute("SET lock_timeout = '100ms'").unwrap();
        assert_eq!(answer(&mut alice, register), "55P03", "{keep}");
        holding.batch_execute(let_go).unwrap();
    }
    field.cluster.await_that("the name to be free", PATIENCE, || {
        let mut alice = field.client("alice");
        let answer = answer(&mut alice, register);
        if answer.is_empty() { Ok(()) } else { Err(answer) }
    });
}
