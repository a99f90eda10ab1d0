use awty_testkit::Cluster;
use awty_testkit::fixture::{NOTE, Shop};

const SERVERS: [(&str, &str, &str); 4] = [
    ("the launcher", "1", "4"),
    ("any worker", "2", "4"),
    ("any worker beside the launcher", "1", "0"),
    ("the maintainer beside a worker", "2", "0"),
];

#[test]
fn a_server_without_a_process_for_awty_is_shown() {
    for (missing, processes, replication) in SERVERS {
        let server = Cluster::builder()
            .set("max_worker_processes", processes)
            .set("max_logical_replication_workers", replication);
        let mut shop = Shop::on(server.start());
        shop.job("note", NOTE, "");
        shop.schedule("1", "note", "after => '0'");
        shop.await_true(
            &format!("the check, or the reason, where {missing} is missing"),
            "SELECT EXISTS (SELECT FROM awty.future_job_history)
                    OR lag > '2 s' AND pending = 1 AND concat_ws('; ', why, fix, last_error) LIKE '%max_worker_processes%' FROM awty.status",
        );
        let ended = "SELECT EXISTS (SELECT FROM awty.future_job_history)";
        if !shop.cluster.value::<bool>("postgres", ended) {
            let said = "SELECT EXISTS (SELECT FROM awty.future_job_history)
                               OR coalesce(why, last_error) IS NOT NULL AND lag > '4 s' FROM awty.status";
            shop.await_true(&format!("the reason still to be there, where {missing} is missing"), said);
        }
        shop.cluster.configure("max_worker_processes = 8");
        shop.cluster.restart();
        assert_eq!(shop.end_of("1").why(), ("done", None), "{missing}");
        let over = "SELECT why IS NULL AND last_error IS NULL AND lag = '0' FROM awty.status";
        shop.await_true(&format!("the end of it, where {missing} was missing"), over);
    }
}

#[test]
fn each_database_says_that_no_process_is_free() {
    let mut shop = Shop::on(Cluster::builder().set("max_logical_replication_workers", "0").start());
    shop.job("note", NOTE, "");
    shop.cluster.execute("template1", &["CREATE DATABASE last TEMPLATE postgres"]);
    shop.cluster.execute("last", &["SELECT awty.adopt()"]);
    for database in ["postgres", "last"] {
        let inspected = "SELECT why IS NULL AND heartbeat IS NOT NULL FROM awty.status";
        shop.cluster.await_sql(database, "the inspection", inspected);
        shop.cluster
            .client(database, "shop")
            .batch_execute("SELECT awty.schedule('orders', 'first', 'note', after => '0')")
            .unwrap();
        shop.cluster.await_sql(database, "the first check", "SELECT count(*) = 1 FROM awty.future_job_history");
        shop.cluster
            .client(database, "shop")
            .batch_execute("SELECT awty.schedule('orders', '1', 'note', after => '2 s')")
            .unwrap();
    }
    shop.cluster.configure("max_worker_processes = 1");
    shop.cluster.restart();
    let since = |database: &str| -> chrono::DateTime<chrono::Utc> {
        let said = "SELECT last_error LIKE '%max_worker_processes%' FROM awty.status";
        shop.cluster.await_sql(database, "the reason", said);
        shop.cluster.value(database, "SELECT last_error_at FROM awty.status")
    };
    assert_eq!(since("postgres"), since("last"), "one of them heard of it later");
}
