use awty_testkit::Cluster;
use awty_testkit::fixture::{NOTE, Shop};
use std::time::Duration;

/// Maximum time until a check ends. A minute would be too long, because awty finds forgotten checks within a minute.
const SOON: Duration = Duration::from_secs(40);

fn open() -> Shop {
    let shop = Shop::on(Cluster::builder().set("max_prepared_transactions", "4").start());
    shop.job("note", NOTE, "");
    shop.schedule("first", "note", "after => '0'");
    shop.end_of("first");
    let no_inspection = "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'awty maintainer')";
    shop.await_true("the inspection to be over", no_inspection);
    shop
}

/// Sends the statements one by one, because PostgreSQL executes a batch as one transaction.
fn prepare(shop: &Shop, name: &str, call: &str) {
    let mut client = shop.client();
    for statement in ["BEGIN", call, &format!("PREPARE TRANSACTION '{name}'")] {
        client.batch_execute(statement).unwrap();
    }
}

#[test]
fn a_check_of_a_prepared_transaction_runs_soon_after_its_commit() {
    let shop = open();
    for key in ["at once", "late"] {
        prepare(&shop, key, &format!("SELECT awty.schedule('orders', '{key}', 'note', after => '0')"));
        if key == "late" {
            let late = "SELECT clock_timestamp() > prepared + interval '3 s' FROM pg_prepared_xacts";
            shop.await_true("its slot to be over", late);
            shop.await_workers_gone();
        }
        shop.cluster.execute("postgres", &[&format!("COMMIT PREPARED '{key}'")]);
        let end = shop.end_within(key, SOON);
        assert_eq!((end.why(), end.attempts, shop.notes(key)), (("done", None), 1, 1), "{end:?}");
    }
}

#[test]
fn a_check_of_a_prepared_transaction_that_is_rolled_back_never_runs() {
    let shop = open();
    prepare(&shop, "never", "SELECT awty.schedule('orders', 'never', 'note', after => '0')");
    shop.cluster.execute("postgres", &["ROLLBACK PREPARED 'never'"]);
    shop.schedule("after", "note", "after => '2 s'");
    shop.end_of("after");
    shop.await_workers_gone();
    assert_eq!((shop.notes("never"), shop.ends("never").len()), (0, 0));
}

#[test]
fn a_prepared_transaction_that_holds_a_row_holds_up_no_other_check() {
    let shop = open();
    for (key, end_it, why, notes) in
        [("rolled back", "ROLLBACK PREPARED", "done", 1), ("committed", "COMMIT PREPARED", "cancelled", 0)]
    {
        // Pauses the job, so that the check does not run before the prepared transaction locks the check's row.
        shop.run("SELECT awty.pause('note')");
        shop.schedule(key, "note", "after => '0'");
        prepare(&shop, key, &format!("SELECT awty.cancel('orders', '{key}')"));
        shop.run("SELECT awty.resume('note')");
        let other = format!("beside {key}");
        shop.schedule(&other, "note", "after => '0'");
        let end = shop.end_of(&other);
        assert_eq!(end.why(), ("done", None));
        shop.await_time(end.started(), 4);
        assert_eq!((shop.notes(key), shop.ends(key).len()), (0, 0), "it ran, although its row was locked");
        shop.cluster.execute("postgres", &[&format!("{end_it} '{key}'")]);
        let end = shop.end_within(key, SOON);
        assert_eq!((end.why(), shop.notes(key)), ((why, None), notes), "{end:?}");
    }
}

#[test]
fn a_prepared_transaction_that_outlives_a_restart_holds_up_nothing() {
    let mut shop = open();
    shop.schedule("due", "note", "after => '3 s'");
    prepare(&shop, "p", "SELECT awty.schedule('orders', 'new', 'note', after => '0')");
    shop.cluster.restart();
    assert_eq!(shop.end_of("due").why(), ("done", None));
    shop.cluster.execute("postgres", &["COMMIT PREPARED 'p'"]);
    // Pauses the job to cause an inspection, because only an inspection finds the new check after the restart.
    shop.run("SELECT awty.pause('note'), awty.resume('note')");
    let end = shop.end_within("new", SOON);
    assert_eq!((end.why(), shop.notes("new")), (("done", None), 1), "{end:?}");
}
