use crate::load::Shared;
use awty_testkit::Cluster;
use std::time::Duration;

/// Each row fills one page, so that the table has pages for many parallel workers.
const TABLE: &str =
    "CREATE TABLE IF NOT EXISTS hog (n integer, filler text) WITH (fillfactor = 10, parallel_workers = 1000);
    ALTER TABLE hog ALTER filler SET STORAGE PLAIN;
    INSERT INTO hog SELECT n, repeat('x', 500) FROM generate_series(1, 200) AS n WHERE NOT EXISTS (SELECT FROM hog)";

const QUERY: &str =
    "SET statement_timeout = '2s'; SET max_parallel_workers = 1000; SET max_parallel_workers_per_gather = 1000;
    SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
    SELECT count(pg_sleep(0.3)) FROM hog";

const SAID: &str = "awty could not start a worker process";

pub fn take_all(cluster: &Cluster, shared: &Shared) -> bool {
    let Ok(mut admin) = shared.connect("postgres", "postgres") else { return false };
    if admin.batch_execute(TABLE).is_err() {
        return false;
    }
    let position = cluster.log_position();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let hog = shared.connect("postgres", "postgres");
            scope.spawn(move || hog.map(|mut hog| hog.batch_execute(QUERY)));
            std::thread::park_timeout(Duration::from_millis(400));
        }
    });
    cluster.log_since(position).contains(SAID)
}
