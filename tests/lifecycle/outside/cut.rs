use super::wire::Wire;
use super::{EXPIRE, Leased, await_claim, claim, claim_one, expire, register, say, shop_with};
use crate::dump::{dump, restore};
use awty_testkit::fixture::Shop;
use std::collections::BTreeSet;

fn by_key(mut leased: Vec<Leased>) -> Vec<Leased> {
    leased.sort_by(|one, other| one.entity_key.cmp(&other.entity_key));
    leased
}

fn keys(leased: &[Leased]) -> Vec<&str> {
    leased.iter().map(|one| one.key.as_str()).collect()
}

#[test]
fn a_silent_worker_holds_up_only_the_check_that_it_has_answered() {
    let shop = shop_with(", heartbeat => '10 min'", 3);
    let (mut worker, wire) = Wire::connect(&shop.cluster, "wire");
    let leased = by_key(claim(&mut worker, 3));
    worker.batch_execute("BEGIN; INSERT INTO shop.note (entity_key) VALUES ('1')").unwrap();
    assert_eq!(say(&mut worker, "complete($1)", leased[0].lease), "ended");
    expire(&shop);
    let others = by_key(await_claim(&shop, 3));
    assert_eq!(keys(&others), keys(&leased[1..]));
    let mut client = shop.client();
    for one in &others {
        assert_eq!(say(&mut client, "complete($1)", one.lease), "ended");
    }
    assert!(claim(&mut client, 3).is_empty());
    wire.cut();
    let expired = format!("WITH expired AS ({EXPIRE} RETURNING id) SELECT count(*) = 1 FROM expired");
    shop.await_true("the end of the silent session", &expired);
    let again = claim_one(&shop);
    assert_eq!((&again.key, shop.notes("1")), (&leased[0].key, 0));
    assert_eq!(say(&mut client, "complete($1)", leased[0].lease), "void");
    assert_eq!(say(&mut client, "complete($1)", again.lease), "ended");
}

#[test]
fn an_answer_whose_commit_is_not_heard_of_is_booked_once() {
    let shop = shop_with("", 1);
    let (mut worker, wire) = Wire::connect(&shop.cluster, "wire");
    let one = claim_one(&shop);
    worker.batch_execute("BEGIN; INSERT INTO shop.note (entity_key) VALUES ('1')").unwrap();
    assert_eq!(say(&mut worker, "complete($1)", one.lease), "ended");
    wire.deafen();
    std::thread::scope(|scope| {
        let commit = scope.spawn(|| worker.batch_execute("COMMIT"));
        assert_eq!(shop.end_of("1").why(), ("done", None));
        wire.cut();
        assert!(commit.join().unwrap().is_err(), "the worker has heard of its commit");
    });
    assert_eq!(say(&mut shop.client(), "complete($1)", one.lease), "void");
    assert_eq!(shop.notes("1"), 1);
}

/// A dump contains ended attempts, but no leases, because a lease is valid only in the original database.
#[test]
fn a_restored_copy_shares_no_key_with_its_original() {
    let shop = Shop::open();
    register(&shop, ", retry_after => '1 ms', timeout => '10 min'", 3);
    let mut client = shop.client();
    let failed = claim_one(&shop);
    assert_eq!(say(&mut client, "fail($1, 'no')", failed.lease), "retrying");
    let leased = await_claim(&shop, 1);
    let script = dump(&shop.cluster, &[]);
    shop.cluster.execute("postgres", &["CREATE DATABASE restored"]);
    restore(&shop.cluster, "restored", &script);
    let mut there = shop.cluster.client("restored", "shop");
    assert!(claim(&mut there, 10).is_empty());
    assert_eq!(shop.cluster.psql("restored", "SELECT string_agg(message, ',') FROM awty.attempt").trim(), "no");

    shop.cluster.execute("restored", &["SELECT awty.adopt()"]);
    let mut copies = BTreeSet::new();
    shop.cluster.await_that("all checks of the copy", awty_testkit::PATIENCE, || {
        for one in claim(&mut there, 10) {
            assert_eq!(say(&mut there, "complete($1)", leased[0].lease), "void");
            assert_eq!(say(&mut there, "complete($1)", one.lease), "ended");
            copies.insert(one.key);
        }
        if copies.len() == 3 { Ok(()) } else { Err(format!("{copies:?}")) }
    });
    let mut own: BTreeSet<String> = leased.iter().map(|one| one.key.clone()).collect();
    shop.cluster.await_that("all checks of the original", awty_testkit::PATIENCE, || {
        own.extend(claim(&mut client, 10).into_iter().map(|one| one.key));
        if own.len() == 3 { Ok(()) } else { Err(format!("{own:?}")) }
    });
    assert!(own.contains(&failed.key) && own.is_disjoint(&copies), "{own:?} and {copies:?}");
    assert_eq!(say(&mut client, "complete($1)", leased[0].lease), "ended");
}
