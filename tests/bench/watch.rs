use crate::cpu::{of_workers, session};
use crate::options::Options;
use crate::results::{Outcome, Wanted, readable};
use crate::shop::{Shop, one};
use crate::stats::{Pairs, Spent, median};

/// For comparison with awty's trigger, the trigger of `unwatched` executes INSERT … ON CONFLICT on a copy of the table
/// awty.future_job with all constraints and indexes.
const SET_UP: &str = "
SET ROLE shop;
CREATE TABLE shop.watched (LIKE shop.orders INCLUDING ALL);
CREATE TABLE shop.unwatched (LIKE shop.orders INCLUDING ALL);
CREATE TABLE shop.bare (LIKE shop.orders INCLUDING ALL);
SELECT awty.watch('shop.watched', since => 'placed_at', until => $$status <> 'UNSHIPPED'$$, within => '3 hours');
RESET ROLE;
CREATE TABLE shop.plain (LIKE awty.future_job INCLUDING ALL);
CREATE TABLE shop.plain_alert (LIKE awty.alert INCLUDING ALL);
CREATE TABLE shop.plain_history (LIKE awty.future_job_history INCLUDING ALL);
GRANT ALL ON shop.plain, shop.plain_alert, shop.plain_history TO shop;
GRANT USAGE ON SEQUENCE awty.future_job_id_seq TO shop;
SET ROLE shop;
CREATE FUNCTION shop.note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO shop.plain AS p (job, entity_name, entity_key, first_check_at, next_check_at, scheduled_by, scheduled_at)
    VALUES ('one', 'orders', NEW.id::text, NEW.placed_at + interval '3 hours', NEW.placed_at + interval '3 hours', 'shop'::regrole, now())
    ON CONFLICT (entity_name, entity_key, job)
    DO UPDATE SET first_check_at = excluded.first_check_at, next_check_at = excluded.next_check_at;
    RETURN NEW;
END $$;
CREATE TRIGGER watch AFTER INSERT ON shop.unwatched FOR EACH ROW EXECUTE FUNCTION shop.note();
RESET ROLE";

const CHECKS: &str = "SELECT (SELECT count(*) FROM awty.future_job WHERE entity_name NOT LIKE 'awty.%') + (SELECT count(*) FROM shop.plain)";

fn timed(shop: &Shop, n: u32, script: &str) -> Spent {
    // TRUNCATE locks the tables in the same order as runs, so that no deadlock occurs.
    let empty = "TRUNCATE awty.future_job, awty.future_job_history, awty.alert, shop.watched, shop.unwatched, shop.bare, shop.plain, shop.plain_alert, shop.plain_history";
    shop.cluster.execute("postgres", &[empty, "CHECKPOINT"]);
    let mut client = shop.cluster.client("postgres", "shop");
    let spent = session(&mut client, |client| client.batch_execute(script).unwrap());
    let written = one(&mut shop.client("postgres"), CHECKS, &[]).get::<_, i64>(0);
    assert_eq!(written, i64::from(n), "checks written by {script}");
    spent
}

fn orders(table: &str, n: u32, placed_at: &str) -> String {
    format!("INSERT INTO {table} SELECT i, 'UNSHIPPED', {placed_at}, 'somebody' FROM generate_series(1, {n}) AS i;")
}

fn each(seconds: &[f64], n: u32) -> String {
    readable(median(seconds) / f64::from(n) * 1e6)
}

fn detail(times: &Pairs, n: u32) -> String {
    let [ours, theirs] = [&times.ours, &times.theirs].map(|seconds| each(seconds, n));
    format!("awty {ours} µs, plain {theirs} µs; {} orders", readable(n.into()))
}

pub fn watch(options: &Options) -> Outcome {
    let mut outcome = Outcome::new("watch");
    let shop = Shop::open(&[]);
    shop.cluster.execute("postgres", &[SET_UP]);
    shop.cluster.await_sql("postgres", "the walk to end", "SELECT walk = 'done' FROM awty.rule");
    let ways = [
        ("INSERT into watched orders, each a transaction", options.size(1_000, 20_000), true),
        ("INSERT into watched orders, one by one in one transaction", options.size(20_000, 100_000), false),
    ];
    for (what, n, commits) in ways {
        let call = |table: &str| format!("CALL shop.one_by_one('{table}', {n}, {commits})");
        let pairs = Pairs::with_cpu(
            what,
            options.rounds(),
            || timed(&shop, n, &call("shop.watched")),
            || timed(&shop, n, &call("shop.unwatched")),
        );
        let detail = detail(&pairs[0], n);
        outcome.ratios(
            [what, "the plain trigger of the row insert"],
            &pairs,
            Wanted::AtMost(if commits { 1.2 } else { 1.15 }),
            detail,
        );
    }
    bulk(&mut outcome, &shop, options);
    late(&mut outcome, &shop, options);
    outcome
}

fn bulk(outcome: &mut Outcome, shop: &Shop, options: &Options) {
    let n = options.size(100_000, 1_000_000);
    let ours = orders("shop.watched", n, "now()");
    let theirs = format!(
        "BEGIN; {} INSERT INTO shop.plain (job, entity_name, entity_key, first_check_at, next_check_at, scheduled_by, scheduled_at)
         SELECT 'one', 'orders', id::text, placed_at + interval '3 hours', placed_at + interval '3 hours', 'shop'::regrole, now() FROM shop.bare; COMMIT",
        orders("shop.bare", n, "now()")
    );
    let what = "INSERT … SELECT into watched orders";
    let pairs = Pairs::with_cpu(what, options.rounds(), || timed(shop, n, &ours), || timed(shop, n, &theirs));
    let detail = detail(&pairs[0], n);
    outcome.ratios(
        [what, "the same without a watch, and one INSERT … SELECT of the checks"],
        &pairs,
        Wanted::AtMost(1.15),
        detail,
    );
}

fn late(outcome: &mut Outcome, shop: &Shop, options: &Options) {
    let n = options.size(100_000, 100_000);
    let past = "now() - interval '4 hours'";
    let by_hand = "
        WITH due AS (DELETE FROM shop.plain RETURNING *),
        late AS (SELECT d.*, o.placed_at FROM due AS d JOIN shop.bare AS o ON o.id = d.entity_key::bigint WHERE o.status = 'UNSHIPPED'),
        raised AS (INSERT INTO shop.plain_alert (rule, entity_name, entity_key, level, since, due_at, raised_at, role)
            SELECT job, entity_name, entity_key, 1, placed_at, placed_at + interval '3 hours', now(), scheduled_by FROM late)
        INSERT INTO shop.plain_history (id, job, entity_name, entity_key, first_check_at, next_check_at, scheduled_by, scheduled_at,
            started_at, finished_at, run_time, lateness, check_count, attempts, outcome, role)
        SELECT id, job, entity_name, entity_key, first_check_at, next_check_at, scheduled_by, scheduled_at, now(), now(), '0', '0', 1, 1, 'done', scheduled_by FROM due";
    let ours = || {
        timed(shop, n, &orders("shop.watched", n, "now() - interval '3 hours' + interval '10 s'"));
        shop.cluster.execute("postgres", &["VACUUM ANALYZE shop.watched, awty.future_job", "CHECKPOINT"]);
        let ended = "FROM awty.future_job_history WHERE job = 'watched' AND entity_name NOT LIKE 'awty.%'";
        let ((), cpu) = of_workers(shop, || {
            shop.cluster.await_sql("postgres", "all to be late", &format!("SELECT count(*) = {n} FROM awty.alert"));
            shop.cluster.await_sql("postgres", "all to be booked", &format!("SELECT count(*) = {n} {ended}"));
        });
        let clock = format!("SELECT extract(epoch FROM max(finished_at) - min(started_at))::float8 {ended}");
        Spent { clock: shop.cluster.value("postgres", &clock), cpu }
    };
    let theirs = || {
        let fill = format!(
            "{} INSERT INTO shop.plain (job, entity_name, entity_key, first_check_at, next_check_at, scheduled_by, scheduled_at)
             SELECT 'one', 'orders', id::text, placed_at + interval '3 hours', placed_at + interval '3 hours', 'shop'::regrole, now() FROM shop.bare",
            orders("shop.bare", n, past)
        );
        timed(shop, n, &fill);
        shop.cluster.execute("postgres", &["VACUUM ANALYZE shop.plain, shop.bare", "CHECKPOINT"]);
        let mut client = shop.cluster.client("postgres", "shop");
        session(&mut client, |client| client.batch_execute(by_hand).unwrap())
    };
    let what = "late rows, from the first start to the last end";
    let pairs = Pairs::with_cpu(what, options.rounds(), ours, theirs);
    let detail = format!(
        "awty {} µs, by hand {} µs; {} rows",
        each(&pairs[0].ours, n),
        each(&pairs[0].theirs, n),
        readable(n.into())
    );
    outcome.ratios([what, "one set statement by hand"], &pairs, Wanted::AtMost(1.3), detail);
}
