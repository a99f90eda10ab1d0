use super::{claim, claim_one, say, shop_with};
use awty_testkit::postgres::error::SqlState;

#[test]
fn what_is_cancelled_or_replaced_meanwhile_is_void() {
    let shop = shop_with("", 3);
    let mut client = shop.client();
    let mut leased = claim(&mut client, 3);
    leased.sort_by_key(|one| one.entity_key.clone());
    client.batch_execute("SET statement_timeout = '20 s'").unwrap();
    client
        .batch_execute("SELECT awty.cancel('orders', '1'); SELECT awty.schedule('orders', '2', 'mail', after => '1 h')")
        .unwrap();
    let all: Vec<i64> = leased.iter().map(|one| one.lease).collect();
    let void: Vec<i64> = client.query_one("SELECT awty.heartbeat($1)", &[&all]).unwrap().get(0);
    assert_eq!(void, all[..2]);
    assert_eq!(say(&mut client, "complete($1)", all[0]), "void");
    client.batch_execute("SELECT awty.unregister('mail')").unwrap();
    assert_eq!(say(&mut client, "complete($1)", all[1]), "void");
    assert_eq!(say(&mut client, "fail($1, 'late')", all[2]), "void");
    let ends = "SELECT string_agg(outcome, ',' ORDER BY id) FROM awty.future_job_history";
    assert_eq!(shop.cluster.psql("postgres", ends).trim(), "cancelled,replaced,cancelled,cancelled");
}

#[test]
fn a_cancel_waits_for_the_commit_of_an_answer() {
    let shop = shop_with("", 1);
    let one = claim_one(&shop);
    let mut worker = shop.client();
    worker.batch_execute("BEGIN").unwrap();
    assert_eq!(say(&mut worker, "complete($1)", one.lease), "ended");
    std::thread::scope(|scope| {
        let cancel =
            scope.spawn(|| shop.client().query_one("SELECT awty.cancel('orders', '1')", &[]).unwrap().get::<_, i64>(0));
        shop.await_true(
            "the cancel to wait",
            "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND locktype = 'transactionid')",
        );
        worker.batch_execute("COMMIT").unwrap();
        assert_eq!(cancel.join().unwrap(), 0);
    });
    assert_eq!(shop.end_of("1").why(), ("done", None));
}

#[test]
fn a_hold_or_a_pause_lets_a_lease_go_on() {
    let shop = shop_with(", retry_after => '1 ms'", 1);
    shop.run("CREATE FUNCTION shop.f() RETURNS void LANGUAGE sql AS ''");
    let one = claim_one(&shop);
    let mut client = shop.client();
    for refused in [
        "check_now('orders', '1')",
        "alter('mail', function => 'shop.f')",
        "register('mail', 'shop.f', replace => true)",
    ] {
        let error = client.batch_execute(&format!("SELECT awty.{refused}")).unwrap_err();
        assert_eq!(error.code(), Some(&SqlState::OBJECT_IN_USE), "{refused}: {error:?}");
    }
    shop.run("SELECT awty.hold('orders', '1'), awty.pause('mail')");
    assert_eq!(say(&mut client, "fail($1, 'no')", one.lease), "held");
    shop.run("SELECT awty.release('orders', '1'), awty.resume('mail')");
    assert_eq!(say(&mut client, "complete($1)", claim_one(&shop).lease), "ended");
    shop.run("SELECT awty.alter('mail', function => 'shop.f')");
    let refused = client.batch_execute("SELECT awty.claim('{mail}', 'x')").unwrap_err();
    assert_eq!(refused.code(), Some(&SqlState::WRONG_OBJECT_TYPE));
    shop.schedule("2", "mail", "after => '0'");
    assert_eq!(shop.end_of("2").why(), ("done", None));
}

#[test]
fn the_extension_can_be_dropped_under_leases() {
    let shop = shop_with("", 2);
    let mut client = shop.client();
    let one = claim(&mut client, 1).remove(0);
    client.batch_execute("BEGIN").unwrap();
    assert_eq!(claim(&mut client, 1).len(), 1);
    std::thread::scope(|scope| {
        let drop = scope.spawn(|| shop.cluster.execute("postgres", &["DROP EXTENSION awty"]));
        shop.await_true("DROP EXTENSION to wait", "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)");
        assert_eq!(say(&mut client, "complete($1)", one.lease), "ended");
        client.batch_execute("COMMIT").unwrap();
        drop.join().unwrap();
    });
    assert!(client.query_one("SELECT awty.complete($1)", &[&one.lease]).is_err());
}

#[test]
fn an_alter_moves_no_lease() {
    let shop = shop_with(", timeout => '10 min'", 2);
    let leased = super::await_claim(&shop, 2);
    let mut client = shop.client();
    let terms = "SELECT string_agg(concat(leased_at, expires_at, deadline), ',' ORDER BY id) FROM awty.lease";
    let before = shop.cluster.psql("postgres", terms);
    shop.run(
        "SELECT awty.alter('mail', timeout => '9 min', heartbeat => '8 min', max_attempts => 2, retry_after => '1 ms')",
    );
    shop.run("SELECT awty.pause('mail')");
    let all: Vec<i64> = leased.iter().map(|one| one.lease).collect();
    let void: Vec<i64> = client.query_one("SELECT awty.heartbeat($1)", &[&all]).unwrap().get(0);
    assert_eq!((void.len(), shop.cluster.psql("postgres", terms)), (0, before));
    assert_eq!(say(&mut client, "fail($1, 'no')", all[0]), "retrying");
    shop.run("SELECT awty.resume('mail')");
    let again = claim_one(&shop);
    assert!(
        shop.cluster.value::<bool>(
            "postgres",
            "SELECT deadline = leased_at + interval '9 min' FROM awty.lease WHERE attempt = 2"
        )
    );
    shop.run("SELECT awty.alter('mail', timeout => '10 min', reset => '{heartbeat}', delivery => 'at_most_once')");
    assert_eq!(say(&mut client, "fail($1, 'no')", again.lease), "ended");
    assert_eq!(shop.end_of(&again.entity_key).attempts, 2);
    assert_eq!(say(&mut client, "fail($1, 'no')", all[1]), "ended");
}

#[test]
fn neither_claims_nor_heartbeats_wait_for_what_is_not_committed() {
    let shop = shop_with(", heartbeat => '10 min'", 1);
    shop.run("SELECT awty.register('other')");
    shop.run("SELECT awty.schedule('orders', n::text, 'other', after => '0') FROM generate_series(1, 2) AS n");
    shop.await_true("the other job's checks to be claimable", "SELECT awty.next_claim_in('{other}') = '0'");
    let mut slow = shop.client();
    slow.batch_execute("BEGIN").unwrap();
    let of_other = "SELECT count(*) = 1 FROM awty.claim('{other}', 'slow')";
    assert!(slow.query_one(of_other, &[]).unwrap().get::<_, bool>(0));

    let mut client = shop.client();
    client.batch_execute("SET statement_timeout = '20 s'").unwrap();
    let of_both = "SELECT lease, job FROM awty.claim('{other,mail}', 'quick', 10)";
    let leased = client.query(of_both, &[]).unwrap();
    assert_eq!(leased.iter().map(|row| row.get::<_, &str>(1)).collect::<Vec<_>>(), ["mail"]);
    let wait = "SELECT awty.next_claim_in('{other,mail}') BETWEEN '1 us' AND '100 ms'";
    assert!(
        client.query_one(wait, &[]).unwrap().get::<_, bool>(0),
        "what is due of the other job cannot be claimed yet"
    );

    let lease: i64 = leased[0].get(0);
    assert_eq!(say(&mut slow, "complete($1)", lease), "ended");
    let until = "SELECT expires_at FROM awty.lease WHERE job = 'mail'";
    let before = shop.cluster.psql("postgres", until);
    let void: Vec<i64> = client.query_one("SELECT awty.heartbeat(ARRAY[$1::bigint])", &[&lease]).unwrap().get(0);
    assert_eq!((void, shop.cluster.psql("postgres", until)), (Vec::new(), before), "its answer is not committed");
    slow.batch_execute("ROLLBACK").unwrap();
    let void: Vec<i64> = client.query_one("SELECT awty.heartbeat(ARRAY[$1::bigint])", &[&lease]).unwrap().get(0);
    assert!(void.is_empty() && say(&mut client, "complete($1)", lease) == "ended");
    assert_eq!(client.query(of_both, &[]).unwrap().len(), 2);
}

#[test]
fn a_heartbeat_promises_no_expired_lease_that_it_cannot_extend() {
    let shop = shop_with(", heartbeat => '1 s'", 1);
    let lease = claim_one(&shop).lease;
    let mut other = shop.cluster.superuser("postgres");
    other.batch_execute("BEGIN; SELECT FROM awty_internal.lease FOR UPDATE").unwrap();
    shop.await_true("the lease to expire", "SELECT expires_at < clock_timestamp() FROM awty_internal.lease");
    let mut client = shop.client();
    let void: Vec<i64> = client.query_one("SELECT awty.heartbeat(ARRAY[$1::bigint])", &[&lease]).unwrap().get(0);
    assert_eq!(void, [lease]);
}
