//! awty must run its checks even while another session's old snapshot keeps dead rows in awty's tables.

use crate::clients::{self, NOTE_ID};
use awty_testkit::Cluster;
use awty_testkit::fixture::Shop;

#[test]
fn beside_an_old_snapshot_nothing_is_skipped_or_run_twice() {
    let shop = Shop::on(Cluster::builder().set("autovacuum_naptime", "1s").start());
    shop.job("note", NOTE_ID, "");
    let mut old = shop.client();
    old.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ").unwrap();
    let first: i64 =
        old.query_one("SELECT awty.schedule('orders', 'first', 'note', after => '0')", &[]).unwrap().get(0);
    let seen = "SELECT (SELECT count(*) FROM shop.note) + (SELECT count(*) FROM awty.future_job_history)";
    assert_eq!(old.query_one(seen, &[]).unwrap().get::<_, i64>(0), 0);

    let placing = [(); 2].map(|()| clients::place(&shop, &[]));
    let mut dba = shop.cluster.superuser("postgres");
    for _ in 0..4 {
        clients::await_more_runs(&shop.cluster, "postgres");
        dba.batch_execute("VACUUM awty.future_job").unwrap();
    }
    let logs = placing.map(clients::Placing::stop);
    clients::await_all_done(&shop.cluster, "postgres");
    assert_eq!(old.query_one(seen, &[]).unwrap().get::<_, i64>(0), 0, "it is no old snapshot");
    assert_eq!(shop.ends("first").len(), 0);
    old.batch_execute("COMMIT").unwrap();
    assert_eq!(shop.end_of("first").id, first);
    for log in logs {
        log.judge(&shop.cluster, "postgres");
    }
}
