use super::{await_ends, expect_each_has_its_check, plan, seconds};
use awty_testkit::fixture::{GATE, Shop};

#[test]
fn an_occurrence_that_was_due_is_moved_alone() {
    let shop = Shop::open();
    shop.job("bad", "BEGIN RAISE 'no'; END", ", retry_after => '1 hour', max_attempts => 2");
    let first = shop.ahead(2, &plan("1", "bad", "every => '3 hours', starts => {first}"));
    shop.await_true("its first failure", "SELECT attempt = 1 FROM awty.future_job");
    shop.run("SELECT awty.check_now('orders', '1')");
    let ends = await_ends(&shop, "1", 1);
    assert_eq!((ends[0].first, ends[0].attempts), (first, 2), "{ends:?}");
    assert_eq!(ends[0].why(), ("failed", Some("P0001")), "{ends:?}");
    assert_eq!(shop.slot_of("1"), first + seconds(3 * 3600));
    expect_each_has_its_check(&shop);
}

#[test]
fn a_slot_that_comes_during_its_run_is_left_out() {
    let shop = Shop::open();
    shop.job("gated", &format!("BEGIN {GATE} RETURN NULL; END"), "");
    let gate = shop.close_gate();
    let now = "SELECT awty.check_now('orders', '1')";
    let first = shop.ahead(8, &(plan("1", "gated", "every => '1 hour', starts => {first}") + now));
    shop.await_at_gate();
    shop.await_time(first, 1);
    drop(gate);
    let ends = await_ends(&shop, "1", 1);
    assert!(ends[0].first < first && ends[0].why() == ("done", None), "{ends:?}");
    assert_eq!(shop.slot_of("1"), first + seconds(3600));
    expect_each_has_its_check(&shop);
}
