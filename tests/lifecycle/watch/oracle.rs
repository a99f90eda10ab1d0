//! Clients write to a watched table at random. In each snapshot, the alerts must agree with the rows (promise P12).

use awty_testkit::PATIENCE;
use awty_testkit::fixture::Shop;
use awty_testkit::postgres::Client;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const CLIENTS: u64 = 8;
const KEYS: u64 = 60;
const LOAD: Duration = Duration::from_secs(20);

const TABLE: &str = "CREATE TABLE shop.orders (id bigint PRIMARY KEY DEFERRABLE, placed_at timestamptz, status text NOT NULL, note text);
    SELECT awty.watch('shop.orders', since => 'placed_at', until => $$status <> 'UNSHIPPED'$$, within => '2 s', escalate => '{5 s}')";

/// Finds rows with two open alerts. Also finds alerts whose row does not exist, is not late or has met `until`, and
/// alerts whose start time differs from `placed_at`.
const WRONG: &str = "SELECT coalesce(string_agg(concat_ws(' ', a.entity_key, a.level, a.since, 'but', o), E'\\n'), '')
    FROM (SELECT a.*, count(*) OVER (PARTITION BY a.entity_key) AS open FROM awty.alert AS a WHERE a.cleared_at IS NULL) AS a
    LEFT JOIN shop.orders AS o ON o.id::text = a.entity_key
    WHERE a.open > 1 OR o.id IS NULL OR o.status <> 'UNSHIPPED' OR o.placed_at IS NULL OR o.placed_at + interval '2 s' > now()
        OR a.since <> o.placed_at";

/// Finds late rows without an alert. A row is late if a check with a later due time has finished. The clock proves
/// nothing, because awty may lag behind the clock on a slow machine.
const MISSED: &str = "SELECT coalesce(string_agg(concat_ws(' ', o, (SELECT f FROM awty.future_job AS f WHERE f.entity_key = o.id::text)), E'\\n'), '')
    FROM shop.orders AS o LEFT JOIN awty.alert AS a ON a.entity_key = o.id::text AND a.cleared_at IS NULL
    WHERE o.status = 'UNSHIPPED' AND o.placed_at IS NOT NULL AND a.id IS NULL
        AND greatest(o.placed_at + interval '2 s', pg_xact_commit_timestamp(o.xmin)) + make_interval(secs => $1)
            < (SELECT max(next_check_at) FROM awty.future_job_history WHERE outcome = 'done')";
const GRACE: f64 = 3.0;

const LATE: &str = "SELECT coalesce(string_agg(o::text, E'\\n'), '') FROM shop.orders AS o
    WHERE o.status = 'UNSHIPPED' AND o.placed_at + interval '2 s' < now()
        AND NOT EXISTS (SELECT FROM awty.alert AS a WHERE a.entity_key = o.id::text AND a.cleared_at IS NULL)";

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

fn write(random: &mut Random) -> String {
    let key = random.below(KEYS);
    let back = random.below(8000);
    let since = format!("clock_timestamp() - interval '{back} ms' + interval '4 s'");
    match random.below(100) {
        0..25 => format!(
            "INSERT INTO shop.orders SELECT {key}, {since}, 'UNSHIPPED' WHERE NOT EXISTS (SELECT FROM shop.orders WHERE id = {key})"
        ),
        25..45 => format!("UPDATE shop.orders SET status = 'SHIPPED' WHERE id = {key}"),
        45..60 => format!("UPDATE shop.orders SET status = 'UNSHIPPED' WHERE id = {key}"),
        60..75 => format!("UPDATE shop.orders SET placed_at = {since} WHERE id = {key}"),
        75..80 => format!("UPDATE shop.orders SET placed_at = NULL WHERE id = {key}"),
        80..88 => format!("DELETE FROM shop.orders WHERE id = {key}"),
        88..92 => format!("UPDATE shop.orders SET note = '{back}' WHERE id = {key}"),
        92..96 => {
            let other = (key + 1) % KEYS;
            format!("UPDATE shop.orders SET id = {key} + {other} - id WHERE id IN ({key}, {other})")
        }
        96..99 => format!(
            "UPDATE shop.orders SET status = CASE status WHEN 'SHIPPED' THEN 'UNSHIPPED' ELSE 'SHIPPED' END WHERE id % 10 = {key} % 10"
        ),
        _ if random.below(5) == 0 => "TRUNCATE shop.orders".into(),
        _ => "DELETE FROM shop.orders WHERE status = 'SHIPPED'".into(),
    }
}

fn transaction(client: &mut Client, random: &mut Random) -> bool {
    let level = ["READ COMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"][random.below(4) as usize];
    let mut script = format!("BEGIN ISOLATION LEVEL {level};");
    for _ in 0..=random.below(3) {
        let (one, other) = (write(random), write(random));
        match random.below(5) {
            0 => script += &format!("SAVEPOINT s; {one}; ROLLBACK TO s; {other};"),
            1 => script += &format!("SAVEPOINT s; {one}; RELEASE s;"),
            _ => script += &format!("{one};"),
        }
    }
    script += if random.below(10) == 0 { "ROLLBACK" } else { "COMMIT" };
    match client.batch_execute(&script) {
        Ok(()) => true,
        Err(error) => {
            let code = error.code().map(|code| code.code().to_owned()).unwrap_or_default();
            assert!(["40001", "40P01", "23505"].contains(&code.as_str()), "{script}: {error:?}");
            client.batch_execute("ROLLBACK").unwrap();
            false
        }
    }
}

#[test]
fn no_snapshot_shows_an_alert_too_many_or_too_few() {
    let shop = Shop::on(
        awty_testkit::Cluster::builder().set("deadlock_timeout", "100ms").set("track_commit_timestamp", "on").start(),
    );
    shop.run(TABLE);
    let (over, commits) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut looks = 0;
    std::thread::scope(|scope| {
        for number in 1..=CLIENTS {
            let (shop, over, commits) = (&shop, &over, &commits);
            scope.spawn(move || {
                let (mut client, mut random) = (shop.client(), Random(number));
                while !over.load(Ordering::Relaxed) {
                    commits.fetch_add(transaction(&mut client, &mut random).into(), Ordering::Relaxed);
                    std::thread::park_timeout(Duration::from_millis(random.below(40)));
                }
            });
        }
        let seen = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let (mut client, began) = (shop.cluster.superuser("postgres"), Instant::now());
            while began.elapsed() < LOAD {
                let wrong: String = client.query_one(WRONG, &[]).unwrap().get(0);
                assert_eq!(wrong, "");
                let missed: String = client.query_one(MISSED, &[&GRACE]).unwrap().get(0);
                assert_eq!(missed, "");
                looks += 1;
            }
        }));
        over.store(true, Ordering::Relaxed);
        if let Err(panic) = seen {
            std::panic::resume_unwind(panic);
        }
    });
    let raised: i64 = shop.cluster.value("postgres", "SELECT count(*) FROM awty.alert");
    let commits = commits.into_inner();
    assert!(
        raised > 20 && commits > 100 && looks > 20,
        "{raised} alerts, {commits} commits, {looks} looks: too little was tried"
    );
    let mut client = shop.cluster.superuser("postgres");
    shop.cluster.await_that("every late row to have its alert", PATIENCE, || {
        let late =
            "SELECT EXISTS (SELECT FROM shop.orders WHERE status = 'UNSHIPPED' AND placed_at + interval '2 s' > now())";
        let missed: String = client.query_one(LATE, &[]).unwrap().get(0);
        match client.query_one(late, &[]).unwrap().get::<_, bool>(0) {
            false if missed.is_empty() => Ok(()),
            _ => Err(missed),
        }
    });
    assert_eq!(client.query_one(WRONG, &[]).unwrap().get::<_, String>(0), "");
}
