use super::{expect_each_has_its_check, plan, seconds};
use awty_testkit::fixture::{GATE, Shop};

/// If the client rolls back `awty.release()`, an inspection puts the check on hold again.
#[test]
fn a_release_that_is_committed_after_the_end_of_the_run_leaves_nothing_held() {
    let shop = Shop::open();
    shop.job("next", &format!("BEGIN {GATE} RETURN NULL; END"), "");
    shop.job("later", &format!("BEGIN {GATE} RETURN j.next_check_at + interval '30 min'; END"), "");
    for (key, job, end) in
        [("1", "next", "COMMIT"), ("2", "later", "COMMIT"), ("3", "next", "ROLLBACK"), ("4", "later", "ROLLBACK")]
    {
        let gate = shop.close_gate();
        let first = shop.ahead(2, &plan(key, job, "every => '1 hour', starts => {first}"));
        shop.await_at_gate();
        shop.run(&format!("SELECT awty.hold('orders', '{key}', note => 'invoice open')"));
        let mut client = shop.client();
        client.batch_execute(&format!("BEGIN; SELECT awty.release('orders', '{key}')")).unwrap();
        drop(gate);
        shop.await_true("the end of the run", &format!("SELECT next_check_at > '{first}' FROM awty.future_job"));
        client.batch_execute(end).unwrap();
        let slot = first + seconds(if job == "next" { 3600 } else { 1800 });
        assert_eq!(shop.slot_of(key), slot, "{}", shop.pending(key));
        // Pausing a job makes awty inspect the database.
        shop.run(&format!("SELECT awty.pause('{job}'), awty.resume('{job}')"));
        if end == "COMMIT" {
            shop.await_true("what was said to go", "SELECT NOT EXISTS (SELECT FROM awty_internal.hold)");
            assert!(!shop.cluster.value::<bool>("postgres", "SELECT held FROM awty.future_job"), "{key}");
        } else {
            shop.await_true("it to be held", "SELECT held FROM awty.future_job");
            shop.run(&format!("SELECT awty.release('orders', '{key}')"));
        }
        expect_each_has_its_check(&shop);
        shop.run(&format!("SELECT awty.cancel('orders', '{key}')"));
    }
}
