use super::say;
use super::targets::{add, claimed, counts, shop_with, state};
use awty_testkit::fixture::Shop;
use awty_testkit::postgres::Client;

/// Eleven failures in a row open the circuit breaker for longer than the test takes.
fn open(shop: &Shop, client: &mut Client, target: &str) {
    let (given, leases) = claimed(client, 11);
    assert_eq!(given, counts(&[(target, 11)]));
    let alter = |what: &str| {
        shop.cluster
            .execute("postgres", &[&format!("UPDATE awty_internal.breaker SET {what} WHERE target = '{target}'")]);
    };
    for (failures, lease) in leases.into_iter().enumerate() {
        if failures == 10 {
            alter("since = since - interval '11 s'");
        }
        assert_eq!(say(client, "fail($1, 'connection refused', target_down => true)", lease), "retrying");
    }
    alter("opens = 6");
    let told = state(shop, target);
    assert!(told.starts_with("open: has failed 11 times in a row"), "{told}");
    assert!(claimed(client, 100).1.is_empty());
}

#[test]
fn who_unblocks_a_target_closes_its_breaker_and_no_other() {
    let shop = shop_with(", max_attempts => 0, retry_after => '1 ms'", &[("a", 15)]);
    let mut client = shop.client();
    open(&shop, &mut client, "a");
    add(&shop, "b", 15);
    open(&shop, &mut client, "b");
    shop.run("SELECT awty.alter_target('mail', 'a', blocked_until => '-infinity')");
    let given = claimed(&mut client, 100).0;
    assert!(given.len() == 1 && given["a"] >= 4, "{given:?}");
    let told = state(&shop, "b");
    assert!(told.starts_with("open: "), "{told}");
    shop.run("SELECT awty.alter_target('mail', blocked_until => '-infinity')");
    let given = claimed(&mut client, 100).0;
    assert!(given["b"] >= 4, "{given:?}");
}

#[test]
fn checks_of_a_target_that_is_down_wait_until_they_are_too_late() {
    let shop = shop_with(", max_attempts => 0, retry_after => '1 ms'", &[("a", 15)]);
    let mut client = shop.client();
    open(&shop, &mut client, "a");
    add(&shop, "b", 1);
    shop.await_true(
        "all of them to be due",
        "SELECT count(*) = 15 FROM awty.future_job WHERE entity_name = 'a' AND next_check_at <= clock_timestamp()",
    );
    assert_eq!(claimed(&mut client, 100).0, counts(&[("b", 1)]));
    assert_eq!(
        shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM awty.future_job WHERE entity_name = 'a'"),
        15
    );
    shop.run("SELECT awty.alter('mail', max_lateness => '1 s')");
    let ended = "SELECT count(*) || ' ' || string_agg(DISTINCT outcome::text, ' ') FROM awty.future_job_history";
    shop.cluster.await_that("all of them to be too late", awty_testkit::PATIENCE, || {
        assert!(claimed(&mut client, 100).1.is_empty(), "a target that is down got a lease");
        match shop.cluster.psql("postgres", ended).trim() {
            "15 expired" => Ok(()),
            others => Err(others.to_owned()),
        }
    });
    let told = state(&shop, "a");
    assert!(told.starts_with("open: "), "{told}");
}
