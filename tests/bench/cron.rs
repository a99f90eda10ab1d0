//! Compares awty with cron jobs that search a whole table each minute for orders that have not shipped after three
//! hours.

use crate::options::Options;
use crate::progress::say;
use crate::results::{Chart, Outcome, Wanted, readable};
use crate::shop::Shop;
use crate::stats::{Pairs, median};
use std::time::Instant;

const DUE: u32 = 1000;

fn tables(orders: u32) -> String {
    format!(
        "INSERT INTO shop.orders
         SELECT n, CASE WHEN n % 100 = 0 THEN 'UNSHIPPED' ELSE 'SHIPPED' END, now() - interval '4 h' - n * interval '1 s',
                'customer ' || n % 1000 FROM generate_series({DUE} + 1, {orders}) AS n;
         -- No index helps.
         CREATE TABLE shop.scanned AS SELECT * FROM shop.orders;
         CREATE TABLE shop.scanned_reported (order_id bigint PRIMARY KEY);
         INSERT INTO shop.scanned_reported SELECT id FROM shop.orders WHERE status = 'UNSHIPPED' AND id > {DUE};
         -- A partial index, and a table of the reported orders.
         CREATE TABLE shop.indexed AS SELECT * FROM shop.orders;
         CREATE INDEX ON shop.indexed (placed_at) WHERE status = 'UNSHIPPED';
         CREATE TABLE shop.indexed_reported AS SELECT * FROM shop.scanned_reported;
         ALTER TABLE shop.indexed_reported ADD PRIMARY KEY (order_id);
         CREATE TABLE shop.watched AS SELECT * FROM shop.orders;
         ALTER TABLE shop.watched ADD PRIMARY KEY (id);
         ALTER TABLE shop.watched OWNER TO shop;
         -- A partial index, and a column for reported orders.
         CREATE TABLE shop.flagged AS SELECT *, id > {DUE} AS reported FROM shop.orders;
         CREATE INDEX ON shop.flagged (placed_at) WHERE status = 'UNSHIPPED' AND NOT reported;
         ALTER TABLE shop.flagged ADD PRIMARY KEY (id)"
    )
}

const CRONS: [(&str, &str, &str); 3] = [
    (
        "cron: scan of the table",
        "INSERT INTO shop.scanned_reported SELECT id FROM shop.scanned AS o WHERE status = 'UNSHIPPED'
         AND placed_at < now() - interval '3 h' AND NOT EXISTS (SELECT FROM shop.scanned_reported AS r WHERE r.order_id = o.id)",
        "DELETE FROM shop.scanned_reported WHERE order_id <= 1000",
    ),
    (
        "cron: partial index on what is unshipped",
        "INSERT INTO shop.indexed_reported SELECT id FROM shop.indexed AS o WHERE status = 'UNSHIPPED'
         AND placed_at < now() - interval '3 h' AND NOT EXISTS (SELECT FROM shop.indexed_reported AS r WHERE r.order_id = o.id)",
        "DELETE FROM shop.indexed_reported WHERE order_id <= 1000",
    ),
    (
        "cron: partial index and a flag in the order",
        "WITH late AS (UPDATE shop.flagged SET reported = true WHERE status = 'UNSHIPPED' AND NOT reported
                       AND placed_at < now() - interval '3 h' RETURNING id)
         INSERT INTO shop.alert (order_id, level) SELECT id, 0 FROM late",
        "UPDATE shop.flagged SET reported = false WHERE id <= 1000 AND reported",
    ),
];

fn minute(shop: &Shop, database: &str, [find, forget]: [&str; 2]) -> f64 {
    let mut client = shop.client(database);
    let began = Instant::now();
    let found = client.execute(find, &[]).unwrap();
    let seconds = began.elapsed().as_secs_f64();
    assert_eq!(found, u64::from(DUE / 10), "late orders that a cron found: {find}");
    client.batch_execute(forget).unwrap();
    seconds
}

const WATCH: &str = "SELECT awty.watch('shop.watched', since => 'placed_at', until => $$status <> 'UNSHIPPED'$$, within => '3 hours', existing => 'none')";

fn watched(shop: &Shop, database: &str) -> f64 {
    shop.cluster.execute(
        database,
        &[
            &format!("DELETE FROM shop.watched WHERE id <= {DUE}"),
            "TRUNCATE awty.future_job_history",
            &format!(
                "INSERT INTO shop.watched SELECT n, 'UNSHIPPED', now() - interval '3 h' + interval '4 s', 'customer ' || n FROM generate_series(1, {DUE}) AS n"
            ),
            &format!("UPDATE shop.watched SET status = 'SHIPPED' WHERE id <= {DUE} AND id % 10 <> 0"),
            "VACUUM awty.future_job, shop.watched",
        ],
    );
    let late = "FROM awty.future_job_history WHERE job = 'watched' AND outcome = 'done'";
    shop.cluster.await_sql(database, "all late orders to be found", &format!("SELECT count(*) = {} {late}", DUE / 10));
    let open = format!("SELECT count(*) FROM awty.alert WHERE cleared_at IS NULL AND entity_key::bigint <= {DUE}");
    assert_eq!(shop.cluster.value::<i64>(database, &open), i64::from(DUE / 10), "alerts of a watch");
    shop.cluster
        .value(database, &format!("SELECT extract(epoch FROM max(finished_at) - min(started_at))::float8 {late}"))
}

pub fn cron(options: &Options) -> Outcome {
    let mut outcome = Outcome::new("cron");
    let mut sizes = vec![options.size(10_000, 10_000).max(2 * DUE), options.size(1_000_000, 1_000_000).max(4 * DUE)];
    if options.full {
        sizes.push(options.size(10_000_000, 10_000_000));
    }
    let shop = Shop::open(&[("awty.max_workers_per_role", "1")]);
    let names = std::iter::once("the watch").chain(CRONS.map(|cron| cron.0));
    let mut lines: Vec<_> = names.map(|name| (name.to_owned(), Vec::new())).collect();
    for orders in sizes {
        let database = format!("orders_{orders}");
        say(&format!("   {} orders", readable(orders.into())));
        shop.add(&database, DUE);
        shop.cluster
            .execute(&database, &[&tables(orders), "VACUUM ANALYZE", "CHECKPOINT", &format!("SET ROLE shop; {WATCH}")]);
        let names: Vec<String> = lines.iter().map(|(name, _)| name.clone()).collect();
        let mut seconds = vec![Vec::new(); names.len()];
        for round in 1..=options.rounds() {
            seconds[0].push(watched(&shop, &database));
            for (line, (_, find, forget)) in CRONS.iter().enumerate() {
                seconds[line + 1].push(minute(&shop, &database, [find, forget]));
            }
            say(&format!(
                "round {round} of {}: {:.4?} s",
                options.rounds(),
                seconds.iter().map(|all| all[round - 1]).collect::<Vec<_>>()
            ));
        }
        for (line, name) in names.iter().enumerate() {
            let milliseconds = median(&seconds[line]) * 1e3;
            lines[line].1.push((f64::from(orders), milliseconds));
            if line > 0 {
                let pairs = Pairs { ours: seconds[0].clone(), theirs: seconds[line].clone() };
                let detail =
                    format!("{} ms against {} ms", readable(median(&seconds[0]) * 1e3), readable(milliseconds));
                let what = format!("a minute of the watch; {} orders", readable(orders.into()));
                outcome.ratio([&what, name], &pairs, Wanted::Nothing, detail);
            }
        }
    }
    outcome.charts.push(Chart {
        name: "cron".into(),
        title: "Finding the late orders of a minute".into(),
        x: "orders in the table".into(),
        y: "milliseconds a minute".into(),
        is_over_time: false,
        lines,
    });
    outcome.note("the watch's minute is from the first start to the last end, a cron's is its statement. The row `watch` has the cost for writers.");
    outcome
}
