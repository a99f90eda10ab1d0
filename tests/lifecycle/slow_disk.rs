//! Before a worker runs its next checks, it writes their ids to disk.

use awty_testkit::Cluster;
use awty_testkit::fixture::{NOTE, Shop};
use std::time::Duration;

const CHECKS: i64 = 2_000;
/// Duration of a flush to the slow disk, longer than the usual 20 ms of runs between two flushes.
const FLUSH: Duration = Duration::from_millis(50);

#[test]
fn where_flushes_are_slow_turns_do_not_shrink_to_one_check() {
    let server = Cluster::builder().with_failing_disk().set("awty.max_workers_per_role", "1");
    let shop = Shop::on(server.start());
    shop.job("note", NOTE, "");
    shop.cluster.slow_down_flushes(FLUSH);
    shop.run(&format!(
        "SELECT count(awty.schedule('orders', n::text, 'note', after => '0')) FROM generate_series(1, {CHECKS}) AS n"
    ));
    shop.await_all_ended();
    let flushes = shop.cluster.slow_flushes();
    shop.cluster.slow_down_flushes(Duration::ZERO);
    assert!(flushes > 0, "the disk was not slow");
    assert!(flushes * 20 < CHECKS, "{flushes} flushes for {CHECKS} checks");
}
