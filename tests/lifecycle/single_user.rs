//! awty starts no processes in single-user mode and during pg_upgrade. All pending checks must stay pending.

use awty_testkit::Stop;
use awty_testkit::fixture::{NOTE, Shop};

#[test]
fn what_is_scheduled_in_single_user_mode_runs_after_the_start() {
    let mut shop = Shop::open();
    shop.job("note", NOTE, "");
    shop.cluster.stop(Stop::Fast);
    let printed = shop.cluster.single_user(
        &[],
        "postgres",
        "SELECT awty.schedule('orders', '1', 'note', after => '0')
SELECT awty.schedule('orders', '2', 'note', after => '0')
SELECT awty.cancel('orders', '2')
SELECT awty.pause('note')
SELECT awty.resume('note')
SELECT awty.alter('note', max_checks => 3)
SELECT 'pending: ' || count(*) FROM awty.future_job
SELECT awty.schedule(NULL, NULL, NULL)
",
    );
    assert!(printed.contains("pending: 1") && printed.contains("must not be null"), "{printed}");
    assert_eq!(printed.matches("ERROR:").count(), 1, "{printed}");
    shop.cluster.start();
    shop.await_all_ended();
    assert_eq!(shop.cluster.psql("postgres", "SELECT string_agg(entity_key, ' ') FROM shop.note").trim(), "1");
}

#[test]
fn nothing_runs_in_a_binary_upgrade() {
    let mut shop = Shop::open();
    shop.job("note", NOTE, "");
    shop.cluster.stop(Stop::Fast);
    let printed = shop.cluster.single_user(
        &["-b"],
        "postgres",
        "SELECT 'jobs: ' || count(*) FROM awty.job
SELECT 'enabled: ' || enabled FROM awty.status
SELECT awty.schedule('orders', '1', 'note', after => '0')
SELECT awty.adopt()
",
    );
    assert!(printed.contains("jobs: 1") && printed.contains("enabled: false"), "{printed}");
    assert_eq!(printed.matches("ERROR:  awty must be loaded by \"shared_preload_libraries\"").count(), 1, "{printed}");
    assert!(printed.contains("WARNING:  awty is not loaded"), "{printed}");
    shop.cluster.start();
    shop.run("SELECT awty.schedule('orders', '2', 'note', after => '0')");
    shop.await_all_ended();
    assert_eq!(
        shop.cluster.psql("postgres", "SELECT string_agg(entity_key, ' ' ORDER BY entity_key) FROM shop.note").trim(),
        "1 2"
    );
}
