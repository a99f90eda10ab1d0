use crate::cpu::session;
use crate::options::Options;
use crate::results::{Outcome, Wanted, readable};
use crate::shop::{Shop, one};
use crate::stats::{Pairs, Spent, median};

const SET_UP: &str = "
CREATE TABLE shop.plain (LIKE awty.future_job INCLUDING ALL);
GRANT INSERT, SELECT ON shop.plain TO shop;
CREATE TABLE shop.placed (id bigint, placed_at timestamptz NOT NULL);
GRANT SELECT ON shop.placed TO shop";

const MANY: &str = "SELECT awty.schedule_many('orders', array_agg(id::text), 'one', at => array_agg(placed_at + interval '3 hours')) FROM shop.placed";
const PLAIN: &str = "
    INSERT INTO shop.plain (job, entity_name, entity_key, first_check_at, next_check_at, scheduled_by, scheduled_at)
    SELECT 'one', 'orders', id::text, placed_at + interval '3 hours', placed_at + interval '3 hours', 'shop'::regrole, now() FROM shop.placed";
const EMPTY: &str = "SELECT awty.cancel_many('orders', array_agg(entity_key), 'one') FROM awty.future_job";

fn timed(shop: &Shop, n: u32, statement: &str) -> Spent {
    shop.cluster.execute("postgres", &["TRUNCATE shop.plain, awty.future_job, awty.future_job_history", "CHECKPOINT"]);
    let mut client = shop.cluster.client("postgres", "shop");
    let spent = session(&mut client, |client| client.batch_execute(statement).unwrap());
    let sql = "SELECT (SELECT count(*) FROM awty.future_job) + (SELECT count(*) FROM shop.plain)";
    assert_eq!(
        one(&mut shop.client("postgres"), sql, &[]).get::<_, i64>(0),
        i64::from(n),
        "rows written by {statement}"
    );
    spent
}

pub fn bulk(options: &Options) -> Outcome {
    let mut outcome = Outcome::new("bulk");
    let n = options.size(100_000, 1_000_000);
    let shop = Shop::open(&[]);
    let fill = format!("INSERT INTO shop.placed SELECT i, now() + interval '1 day' FROM generate_series(1, {n}) AS i");
    shop.cluster.execute("postgres", &[SET_UP, &fill, "VACUUM ANALYZE shop.placed"]);
    let what = "awty.schedule_many()";
    let times = Pairs::with_cpu(what, options.rounds(), || timed(&shop, n, MANY), || timed(&shop, n, PLAIN));
    let each = |seconds: &[f64]| readable(median(seconds) / f64::from(n) * 1e6);
    let detail = format!(
        "awty {} µs, plain {} µs a check; {} checks",
        each(&times[0].ours),
        each(&times[0].theirs),
        readable(f64::from(n))
    );
    let what = [what, "one INSERT … SELECT of the same rows"];
    outcome.ratios(what, &times, Wanted::AtMost(1.15), detail);
    let mut cancel = Vec::new();
    for _ in 0..options.rounds() {
        timed(&shop, n, MANY);
        let mut client = shop.cluster.client("postgres", "shop");
        cancel.push(session(&mut client, |client| client.batch_execute(EMPTY).unwrap()).clock);
    }
    outcome.note(format!("awty.cancel_many() takes {} µs a check, with its row of history.", each(&cancel)));
    outcome
}
