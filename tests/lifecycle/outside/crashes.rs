use super::{EXPIRE, await_claim, claim, claim_one, expire, register, say, shop_with};
use awty_testkit::fixture::Shop;
use awty_testkit::postgres::error::SqlState;
use awty_testkit::{Cluster, Stop};

#[test]
fn a_worker_that_dies_is_replaced_until_its_check_is_held() {
    let shop = Shop::on(Cluster::builder().set("awty.max_crashes", "2").start());
    register(&shop, ", heartbeat => '10 min'", 1);
    let first = claim_one(&shop);
    expire(&shop);
    let second = claim_one(&shop);
    assert_eq!((&second.key, second.attempt), (&first.key, 1));
    let mut client = shop.client();
    assert_eq!(say(&mut client, "complete($1)", first.lease), "void");
    let crashes = "SELECT exits FROM awty_internal.check_stat";
    assert_eq!(shop.cluster.value::<i32>("postgres", crashes), 1);
    expire(&shop);
    shop.cluster.await_that("the check to be held", std::time::Duration::from_secs(30), || {
        assert!(claim(&mut client, 1).is_empty());
        let held: bool = shop.cluster.value("postgres", "SELECT held FROM awty.future_job");
        if held { Ok(()) } else { Err("not yet".to_owned()) }
    });
    assert_eq!(say(&mut client, "complete($1)", second.lease), "void");
    let attempts = "SELECT count(*) = 2 AND bool_and(NOT ok AND sqlstate = '08006') AND array_agg(held ORDER BY ended_at) = '{f, t}' FROM awty.attempt";
    assert!(shop.cluster.value::<bool>("postgres", attempts));
    shop.run("SELECT awty.release('orders', '1')");
    assert_eq!(say(&mut client, "complete($1)", claim_one(&shop).lease), "ended");
}

#[test]
fn an_answer_after_the_expiry_counts_while_nobody_else_has_the_check() {
    let shop = shop_with(", heartbeat => '10 min'", 2);
    let mut client = shop.client();
    let leased = await_claim(&shop, 2);
    // Locks the leases, so that no inspection ends expired leases before the workers answer.
    let mut admin = shop.cluster.superuser("postgres");
    admin.batch_execute(&format!("BEGIN; {EXPIRE}")).unwrap();
    let beat: Vec<i64> = admin.query_one("SELECT awty.heartbeat($1)", &[&vec![leased[0].lease, 7]]).unwrap().get(0);
    assert_eq!(beat, [7]);
    assert_eq!(say(&mut admin, "complete($1)", leased[1].lease), "ended");
    admin.batch_execute("COMMIT").unwrap();
    assert!(claim(&mut client, 2).is_empty(), "the other one lives");
    assert_eq!(say(&mut client, "complete($1)", leased[0].lease), "ended");
}

const DEADLINE: &str = "SELECT NOT EXISTS (SELECT FROM awty.lease WHERE deadline >= clock_timestamp())";

/// Without heartbeats, awty cannot distinguish a slow worker from a dead worker. Therefore awty keeps the lease until
/// the job's timeout.
#[test]
fn what_is_not_answered_by_its_deadline_has_failed() {
    let shop = shop_with(", timeout => '500 ms', max_attempts => 1", 1);
    let one = claim_one(&shop);
    let mut client = shop.client();
    shop.await_true("the deadline", DEADLINE);
    assert_eq!(say(&mut client, "complete($1)", one.lease), "void");
    assert!(claim(&mut client, 1).is_empty());
    let end = shop.end_of("1");
    assert_eq!((end.why(), end.attempts), (("timed_out", Some("57014")), 1));
}

#[test]
fn the_maintainer_books_what_nobody_claims() {
    let shop = shop_with(", timeout => '500 ms', max_attempts => 1", 1);
    claim_one(&shop);
    shop.await_true("the deadline", DEADLINE);
    // Triggers an inspection, which ends the expired lease.
    shop.run("SELECT awty.register('other')");
    assert_eq!(shop.end_of("1").why(), ("timed_out", Some("57014")));
}

#[test]
fn at_most_once_goes_out_once() {
    let shop = shop_with(", delivery => 'at_most_once', heartbeat => '10 min'", 3);
    let mut client = shop.client();
    let leased = await_claim(&shop, 3);
    assert_eq!(say(&mut client, "fail($1, 'refused', not_started => true)", leased[0].lease), "retrying");
    assert_eq!(say(&mut client, "fail($1, 'no answer')", leased[1].lease), "ended");
    expire(&shop);
    assert!(claim(&mut client, 3).is_empty());
    assert_eq!(shop.end_of(&leased[1].entity_key).why(), ("failed", Some("38000")));
    assert_eq!(shop.end_of(&leased[2].entity_key).why(), ("timed_out", Some("08006")));
}

#[test]
fn a_server_that_is_killed_loses_and_repeats_nothing_that_was_committed() {
    let mut shop = shop_with(", timeout => '10 min'", 3);
    let mut client = shop.client();
    let leased = claim(&mut client, 2);
    assert_eq!(leased.len(), 2);
    client.batch_execute("BEGIN").unwrap();
    let uncommitted = claim(&mut client, 1).remove(0);
    let mut other = shop.client();
    other.batch_execute("BEGIN").unwrap();
    assert_eq!(say(&mut other, "complete($1)", leased[0].lease), "ended");
    shop.cluster.kill_server();
    drop((client, other));
    shop.cluster.start();
    let again = claim_one(&shop);
    assert_eq!((&again.key, &again.entity_key), (&uncommitted.key, &uncommitted.entity_key));
    let mut client = shop.client();
    assert_eq!(say(&mut client, "complete($1)", uncommitted.lease), "void");
    for lease in [leased[0].lease, leased[1].lease, again.lease] {
        assert_eq!(say(&mut client, "complete($1)", lease), "ended");
    }
    assert_eq!(
        shop.cluster.psql("postgres", "SELECT count(*), sum(attempts) FROM awty.future_job_history").trim(),
        "3|3"
    );
}

#[test]
fn leases_outlive_a_promotion() {
    let mut shop = shop_with(", timeout => '10 min'", 2);
    let mut standby = shop.cluster.standby();
    let mut client = shop.client();
    let one = claim(&mut client, 1).remove(0);
    drop(client);
    let lsn: String = shop.cluster.value("postgres", "SELECT pg_current_wal_flush_lsn()::text");
    standby.await_sql("postgres", "the standby to follow", &format!("SELECT pg_last_wal_replay_lsn() >= '{lsn}'"));
    for call in ["claim('{mail}', 'x')", "complete(1)", "heartbeat('{1}')", "requeue('{1}')", "next_claim_in('{mail}')"]
    {
        let refused = standby.client("postgres", "shop").batch_execute(&format!("SELECT awty.{call}")).unwrap_err();
        assert_eq!(refused.code(), Some(&SqlState::READ_ONLY_SQL_TRANSACTION), "{call}: {refused:?}");
    }
    shop.cluster.stop(Stop::Immediate);
    standby.promote();
    let second = standby.await_that("the other check", std::time::Duration::from_secs(60), || {
        let mut client = standby.client("postgres", "shop");
        claim(&mut client, 2).pop().ok_or_else(|| "nothing".to_owned())
    });
    assert_ne!(second.entity_key, one.entity_key);
    let mut client = standby.client("postgres", "shop");
    assert_eq!(say(&mut client, "complete($1)", one.lease), "ended");
    assert_eq!(say(&mut client, "complete($1)", second.lease), "ended");
}
