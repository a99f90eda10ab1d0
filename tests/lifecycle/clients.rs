//! A client can change a check during a run without waiting for the run. The client's change takes precedence over the
//! run's result.

use awty_testkit::fixture::{GATE, NOTE, Shop};

fn gated() -> String {
    format!("BEGIN INSERT INTO shop.note (entity_key) VALUES (j.entity_key); {GATE} RETURN NULL; END")
}

#[test]
fn a_check_that_is_cancelled_while_it_runs_commits_nothing() {
    let shop = Shop::open();
    shop.job("gated", &gated(), "");
    let gate = shop.close_gate();
    shop.schedule("1", "gated", "after => '0'");
    shop.await_at_gate();
    shop.run("SELECT awty.cancel('orders', '1')");
    assert!(shop.is_at_gate(), "the cancelling client waited for the run");
    assert_eq!(shop.end_of("1").outcome, "cancelled");
    drop(gate);
    shop.await_workers_gone();
    assert_eq!((shop.notes("1"), shop.ends("1").len()), (0, 1));
}

#[test]
fn a_check_that_is_replaced_while_it_runs_commits_nothing() {
    let shop = Shop::open();
    shop.job("gated", &gated(), "");
    let gate = shop.close_gate();
    let old = shop.schedule("1", "gated", "after => '0'");
    shop.await_at_gate();
    let new = shop.schedule("1", "gated", "after => '1 s'");
    assert!(shop.is_at_gate(), "the replacing client waited for the run");
    drop(gate);
    shop.await_all_ended();
    let ends: Vec<(i64, String)> = shop.ends("1").into_iter().map(|end| (end.id, end.outcome)).collect();
    assert_eq!(ends, [(old, "replaced".into()), (new, "done".into())]);
    assert_eq!(shop.notes("1"), 1);
}

#[test]
fn an_uncommitted_cancellation_keeps_the_run_out_until_it_is_decided() {
    let shop = Shop::open();
    shop.job("gated", &gated(), "");
    for (key, decision, outcome, notes) in [("1", "ROLLBACK", "done", 1), ("2", "COMMIT", "cancelled", 0)] {
        let gate = shop.close_gate();
        shop.schedule(key, "gated", "after => '0'");
        shop.await_at_gate();
        let mut client = shop.client();
        client.batch_execute(&format!("BEGIN; SELECT awty.cancel('orders', '{key}')")).unwrap();
        drop(gate);
        shop.await_true("the run to be over", "SELECT NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory')");
        assert_eq!(shop.ends(key).len(), 0, "the run ended a check that is being cancelled");
        client.batch_execute(decision).unwrap();
        assert_eq!(shop.end_of(key).outcome, outcome);
        shop.await_workers_gone();
        assert_eq!((shop.notes(key), shop.ends(key).len()), (notes, 1));
    }
}

#[test]
fn a_check_that_is_committed_after_its_slot_runs_at_once() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    let mut client = shop.client();
    client.batch_execute("BEGIN").unwrap();
    let slot =
        client.query_one("SELECT awty.next_slot(now()) FROM awty.schedule('orders', '1', 'note', at => now())", &[]);
    shop.await_time(slot.unwrap().get(0), 2);
    assert_eq!((shop.pending("1").as_str(), shop.notes("1")), ("", 0));
    client.batch_execute("COMMIT").unwrap();
    let end = shop.end_of("1");
    assert_eq!((end.why(), shop.notes("1")), (("done", None), 1), "{end:?}");
}

#[test]
fn a_schedule_that_is_rolled_back_leaves_nothing() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    shop.run(
        "BEGIN; SELECT awty.schedule('orders', '1', 'note', after => '0'); ROLLBACK;
         BEGIN; SAVEPOINT s; SELECT awty.schedule('orders', '2', 'note', after => '0'); ROLLBACK TO s;
         SELECT awty.schedule('orders', '3', 'note', after => '0'); COMMIT",
    );
    assert_eq!(shop.end_of("3").outcome, "done");
    shop.await_workers_gone();
    assert_eq!(
        ["1", "2"].map(|key| (shop.pending(key), shop.ends(key).len())),
        [(String::new(), 0), (String::new(), 0)]
    );
}
