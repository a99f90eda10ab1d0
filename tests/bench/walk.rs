use crate::cpu::of_workers;
use crate::options::Options;
use crate::progress::say;
use crate::results::{Outcome, Wanted, readable};
use crate::shop::Shop;
use awty_testkit::{Signal, poll};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(600);

const WATCH: &str = "BEGIN;
    SELECT awty.watch('shop.full', since => 'placed_at', until => $$status <> 'UNSHIPPED'$$, within => '3 hours');
    SELECT awty.alter('full', timeout => '4 s');
    COMMIT";

const MISSING: &str = "SELECT count(*) FILTER (WHERE f.next_check_at IS DISTINCT FROM awty.next_slot(o.placed_at + interval '3 hours'))
    FROM shop.full AS o LEFT JOIN awty.future_job AS f ON f.job = 'full' AND f.entity_key = o.id::text WHERE o.status = 'UNSHIPPED'";
const CHECKS: &str = "SELECT count(*) FROM awty.future_job WHERE job = 'full' AND entity_name = 'full'";

fn watch_beside_a_writer(shop: &Shop) -> [f64; 2] {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let (mut client, mut longest) = (shop.cluster.client("postgres", "shop"), 0.0_f64);
            while !over.load(Ordering::Relaxed) {
                let began = Instant::now();
                client.batch_execute("UPDATE shop.full SET customer = 'x' WHERE id = 1").unwrap();
                longest = longest.max(began.elapsed().as_secs_f64());
            }
            longest
        });
        let mut client = shop.cluster.client("postgres", "shop");
        std::thread::park_timeout(Duration::from_millis(300));
        let began = Instant::now();
        client.batch_execute(WATCH).unwrap();
        let took = began.elapsed().as_secs_f64();
        std::thread::park_timeout(Duration::from_millis(300));
        over.store(true, Ordering::Relaxed);
        [took, writer.join().unwrap()]
    })
}

fn kill_in_the_middle(shop: &Shop) {
    shop.cluster.await_sql(
        "postgres",
        "the walk to be in the middle",
        "SELECT walk <> 'done' AND walked_to IS NOT NULL FROM awty.rule",
    );
    let worker = shop.cluster.pids("awty worker")[0];
    let position = shop.cluster.log_position();
    shop.cluster.kill(Signal::KILL, worker);
    shop.cluster.await_log(&["all server processes terminated; reinitializing"], position);
    let back = poll("the server to be back", PATIENCE, || {
        shop.cluster.try_client("postgres", "shop").map(|_| ()).map_err(|error| error.to_string())
    });
    back.unwrap();
}

fn one(shop: &Shop, rows: u32, crash: bool) -> [f64; 3] {
    let began = Instant::now();
    let [call, write] = watch_beside_a_writer(shop);
    if crash {
        kill_in_the_middle(shop);
    }
    let ended = poll("the walk to end", PATIENCE, || {
        match shop.cluster.value::<String>("postgres", "SELECT concat_ws(' ', walk, 'at', walked_to) FROM awty.rule") {
            walk if walk.starts_with("done") => Ok(()),
            walk => Err(walk),
        }
    });
    ended.unwrap();
    let walk = began.elapsed().as_secs_f64();
    assert_eq!(shop.cluster.value::<i64>("postgres", MISSING), 0, "rows without a check at their time");
    assert_eq!(shop.cluster.value::<i64>("postgres", CHECKS), i64::from(rows - rows / 10), "checks");
    shop.cluster.execute("postgres", &["TRUNCATE awty.future_job", "SELECT awty.unwatch('full')"]);
    [call, write, walk]
}

pub fn walk(options: &Options) -> Outcome {
    let mut outcome = Outcome::new("walk");
    let rows = options.size(1_000_000, 1_000_000).max(300_000);
    let shop = Shop::open(&[("awty.catch_up_rate", "0")]);
    shop.cluster.execute(
        "postgres",
        &[
            "SET ROLE shop; CREATE TABLE shop.full (LIKE shop.orders INCLUDING ALL); RESET ROLE",
            &format!(
                "INSERT INTO shop.full SELECT n, CASE n % 10 WHEN 0 THEN 'SHIPPED' ELSE 'UNSHIPPED' END, now() - n % 3600 * interval '1 s', \
                 'somebody' FROM generate_series(1, {rows}) AS n"
            ),
            "VACUUM ANALYZE shop.full",
            "CHECKPOINT",
        ],
    );
    for (what, crash) in [("", false), (", whose worker is killed in the middle", true)] {
        // The crash of a worker closes the connection of `of_workers`.
        let run = || one(&shop, rows, crash);
        let ([call, write, walk], cpu) = if crash { (run(), f64::NAN) } else { of_workers(&shop, run) };
        say(&format!("watch {call:.3} s, longest write {write:.3} s, walk {walk:.1} s{what}"));
        let detail = format!("{} rows; awty.watch() took {} ms", readable(rows.into()), readable(call * 1e3));
        if !crash {
            let longest = "the longest write while awty.watch() comes to a full table";
            outcome.value([longest, "at once"], write * 1e3, "ms", Wanted::AtMost(1000.0), detail);
        }
        let each = |seconds: f64| readable(seconds / f64::from(rows) * 1e6);
        let cpu = if crash { String::new() } else { format!(", {} µs of CPU", each(cpu)) };
        let each = format!("{} rows; {} µs each{cpu}", readable(rows.into()), each(walk));
        outcome.value(
            [&format!("the walk over its rows{what}"), "none is left out, none has two checks"],
            walk,
            "s",
            if crash { Wanted::Nothing } else { Wanted::AtMost(15e-6 * f64::from(rows)) },
            each,
        );
    }
    outcome
}
