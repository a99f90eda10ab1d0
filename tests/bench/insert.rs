use crate::cpu::session;
use crate::options::Options;
use crate::results::{Outcome, Wanted, readable};
use crate::shop::{Shop, one};
use crate::stats::{Pairs, Spent, median};
use awty_testkit::postgres::Client;

/// The second table's trigger executes INSERT … ON CONFLICT on a copy of awty.future_job with all constraints and
/// indexes. Unlike `awty.schedule()`, the trigger does not round the check's time.
const SET_UP: &str = "
SET ROLE shop;
CREATE TABLE shop.watched (LIKE shop.orders INCLUDING ALL);
CREATE TABLE shop.unwatched (LIKE shop.orders INCLUDING ALL);
RESET ROLE;
CREATE TABLE shop.plain (LIKE awty.future_job INCLUDING ALL);
GRANT INSERT, SELECT, UPDATE ON shop.plain TO shop;
SET ROLE shop;
CREATE FUNCTION shop.schedule() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM awty.schedule('orders', NEW.id::text, 'one', after => '3 hours');
    RETURN NEW;
END $$;
CREATE FUNCTION shop.note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO shop.plain AS p (job, entity_name, entity_key, first_check_at, next_check_at, scheduled_by, scheduled_at)
    VALUES ('one', 'orders', NEW.id::text, now() + interval '3 hours', now() + interval '3 hours', 'shop'::regrole, now())
    ON CONFLICT (entity_name, entity_key, job)
    DO UPDATE SET first_check_at = excluded.first_check_at, next_check_at = excluded.next_check_at;
    RETURN NEW;
END $$;
CREATE TRIGGER watch AFTER INSERT ON shop.watched FOR EACH ROW EXECUTE FUNCTION shop.schedule();
CREATE TRIGGER watch AFTER INSERT ON shop.unwatched FOR EACH ROW EXECUTE FUNCTION shop.note();
RESET ROLE";

const AGAINST: &str = "the same with a plain INSERT … ON CONFLICT";
const AT_MOST: Wanted = Wanted::AtMost(1.3);

fn timed(shop: &Shop, orders: &str, n: u32, place: impl Fn(&mut Client, &str, u32)) -> Spent {
    let empty = "TRUNCATE shop.watched, shop.unwatched, shop.plain, awty.future_job";
    shop.cluster.execute("postgres", &[empty, "CHECKPOINT"]);
    let mut client = shop.cluster.client("postgres", "shop");
    let spent = session(&mut client, |client| place(client, orders, n));
    let sql = "SELECT (SELECT count(*) FROM awty.future_job) + (SELECT count(*) FROM shop.plain)";
    assert_eq!(one(&mut shop.client("postgres"), sql, &[]).get::<_, i64>(0), i64::from(n), "rows written by {orders}");
    spent
}

fn each_in_a_transaction(client: &mut Client, orders: &str, n: u32) {
    client.batch_execute(&format!("CALL shop.one_by_one('{orders}', {n}, true)")).unwrap();
}

fn in_one_transaction(client: &mut Client, orders: &str, n: u32) {
    client.batch_execute(&format!("CALL shop.one_by_one('{orders}', {n}, false)")).unwrap();
}

fn in_one_statement(client: &mut Client, orders: &str, n: u32) {
    let insert =
        format!("INSERT INTO {orders} SELECT i, 'UNSHIPPED', now(), 'somebody' FROM generate_series(1, {n}) AS i");
    client.batch_execute(&insert).unwrap();
}

pub fn insert(options: &Options) -> Outcome {
    let mut outcome = Outcome::new("insert");
    let shop = Shop::open(&[]);
    shop.cluster.execute("postgres", &[SET_UP]);
    type Place = fn(&mut Client, &str, u32);
    let ways: [(&str, u32, Place); 3] = [
        ("INSERT into orders, each a transaction", options.size(1_000, 20_000), each_in_a_transaction),
        ("INSERT into orders, one by one in one transaction", options.size(20_000, 100_000), in_one_transaction),
        ("INSERT … SELECT in bulk", options.size(50_000, 1_000_000), in_one_statement),
    ];
    for (what, n, place) in ways {
        let times = Pairs::with_cpu(
            what,
            options.rounds(),
            || timed(&shop, "shop.watched", n, place),
            || timed(&shop, "shop.unwatched", n, place),
        );
        let each = |seconds: &[f64]| readable(median(seconds) / f64::from(n) * 1e6);
        let (ours, theirs) = (each(&times[0].ours), each(&times[0].theirs));
        let detail = format!("awty {ours} µs, plain {theirs} µs; {} orders", readable(f64::from(n)));
        outcome.ratios([what, AGAINST], &times, AT_MOST, detail);
    }
    outcome
}
