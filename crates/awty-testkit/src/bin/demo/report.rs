use awty_testkit::Cluster;
use awty_testkit::postgres::Row;

use crate::shop::{SHOP, text};

const BY_OUTCOME: &str = "
SELECT outcome, check_count AS checks, count(*) AS orders,
       round(avg(extract(epoch FROM lateness)) * 1000, 1) AS \"avg lateness (ms)\",
       round(max(extract(epoch FROM lateness)) * 1000, 1) AS \"max lateness (ms)\"
FROM awty.future_job_history WHERE entity_name = 'orders' GROUP BY outcome, check_count ORDER BY outcome, check_count";

const EXAMPLES: &str = "
SELECT DISTINCT ON (outcome, check_count) entity_key AS \"order\", first_check_at::time(3) AS first_check_at,
       next_check_at::time(3) AS next_check_at, started_at::time(3) AS started_at, lateness, check_count, outcome
FROM awty.future_job_history WHERE entity_name = 'orders' ORDER BY outcome, check_count, id";

pub(crate) fn print(cluster: &Cluster) -> bool {
    println!("== the history, by outcome");
    table(cluster, BY_OUTCOME);
    println!("== an order of each kind, in awty.future_job_history");
    table(cluster, EXAMPLES);

    println!("== is it right?");
    verify(cluster)
}

pub(crate) fn print_end(cluster: &Cluster) {
    let host = cluster.socket_directory().display();
    println!(
        "\nThe cluster is still there:\n  psql -h {host} -U {SHOP} {SHOP}\nStop and remove all of it:\n  make demo-stop"
    );
}

pub(crate) fn table(cluster: &Cluster, sql: &str) {
    let status = cluster.tool("psql").args(["-X", "-P", "pager=off", "-U", SHOP, "-d", SHOP, "-c", sql]).status();
    if !status.is_ok_and(|status| status.success()) {
        println!("(psql failed)");
    }
}

fn verify(cluster: &Cluster) -> bool {
    let mut client = cluster.client(SHOP, SHOP);
    let sql = text("verify.sql");
    let wrong = client.query(&sql, &[]).unwrap_or_else(|error| panic!("demo/verify.sql: {error:?}"));
    let counts =
        "SELECT (SELECT count(*) FROM shop.orders), (SELECT count(*) FROM shop.orders WHERE status = 'UNSHIPPED'),
                         (SELECT count(*) FROM awty.alert), (SELECT count(*) FROM awty.alert WHERE level = 2)";
    let counts = client.query_one(counts, &[]).unwrap_or_else(|error| panic!("{counts}: {error:?}"));
    let n = |column: usize| -> i64 { counts.get(column) };
    println!("{} orders, {} never shipped; {} alerts, {} of them escalated again", n(0), n(1), n(2), n(3));
    for row in wrong.iter().take(20) {
        println!("WRONG: {}", complaint(row));
    }
    match wrong.len() {
        0 if n(0) > 0 && n(2) > 0 => println!("Every order that did not ship in time has its alert, and no other has."),
        0 => println!("WRONG: there were no orders or no alerts"),
        more => println!("WRONG: {more} findings in all (demo/verify.sql)"),
    }
    wrong.is_empty() && n(0) > 0 && n(2) > 0
}

fn complaint(row: &Row) -> String {
    let level = row.get::<_, Option<i32>>("level").map(|level| format!(" (level {level})")).unwrap_or_default();
    format!("order {}{level} {}", row.get::<_, i64>("order_id"), row.get::<_, &str>("wrong"))
}
