use crate::options::Options;
use crate::progress::say;
use crate::results::{Outcome, Wanted, readable};
use crate::shop::{Shop, one};
use crate::stats::{Pairs, median};
use crate::work::{rates, speeds};

/// Writes checks directly to the table, because scheduling millions of them takes much longer.
pub fn fill(shop: &Shop, database: &str, n: u32) {
    say(&format!("   {} pending in {database}", readable(f64::from(n))));
    let insert = format!(
        "INSERT INTO awty.future_job (job, entity_name, entity_key, first_check_at, next_check_at, scheduled_by, scheduled_at)
         SELECT 'one', 'later', i::text, slot, slot, 'shop'::regrole, now()
         FROM (SELECT i, date_trunc('day', now()) + interval '1 day' + mod(i * 7919::bigint, 86400) * interval '1 s' AS slot
               FROM generate_series(1, {n}) AS i) AS s"
    );
    shop.cluster.execute(database, &[&insert, "VACUUM ANALYZE awty.future_job", "CHECKPOINT"]);
}

pub fn pending(options: &Options) -> Outcome {
    let mut outcome = Outcome::new("pending");
    let due = options.size(10_000, 10_000);
    let mut numbers = vec![options.size(10_000, 10_000), options.size(1_000_000, 1_000_000)];
    if options.full {
        numbers.push(options.size(10_000_000, 10_000_000));
    }
    let shop = Shop::open(&[("awty.max_workers_per_role", "1")]);
    for number in &numbers {
        let database = name(*number);
        shop.add(&database, crate::shop::ORDERS);
        fill(&shop, &database, *number);
    }
    let run = |number: u32| shop.run_due(&name(number), &["one"], due).spent;
    for number in &numbers[1..] {
        let what = format!("{} due with {} pending", readable(f64::from(due)), readable(f64::from(*number)));
        let times = Pairs::with_cpu(&what, options.rounds(), || run(*number), || run(numbers[0]));
        let detail = rates(due, ["with many", "with few"], &times[0]);
        let against = format!("with {} pending", readable(f64::from(numbers[0])));
        outcome.ratios([&what, &against], &times, Wanted::AtMost(1.15), detail);
    }
    outcome
}

fn name(pending: u32) -> String {
    format!("pending_{pending}")
}

pub fn snapshot(options: &Options) -> Outcome {
    let mut outcome = Outcome::new("snapshot");
    let n = options.size(20_000, 200_000);
    let shop = Shop::open(&[("awty.max_workers_per_role", "1")]);
    let mut tenths = Vec::new();
    let times = Pairs::with_cpu(
        "an old snapshot, none",
        options.rounds(),
        || {
            let mut holder = shop.client("postgres");
            holder.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM shop.orders LIMIT 1").unwrap();
            let spent = shop.run_due("postgres", &["one"], n).spent;
            tenths.push(last_tenth_by_first(&shop));
            holder.batch_execute("COMMIT").unwrap();
            spent
        },
        || shop.run_due("postgres", &["one"], n).spent,
    );
    let detail = rates(n, ["with", "without"], &times[0]);
    let what = ["due checks/s while another session holds an old snapshot", "without"];
    outcome.ratios(what, &speeds(times), Wanted::AtLeast(0.8), detail);
    let what = ["there: time for the last tenth", "time for the first tenth"];
    outcome.value(what, median(&tenths), "×", Wanted::AtMost(1.0), String::new());
    outcome.note("the last tenth by the first should be at most 1; by chance it is above about as often as below.");
    outcome
}

fn last_tenth_by_first(shop: &Shop) -> f64 {
    let sql = "SELECT (extract(epoch FROM max(at) FILTER (WHERE tenth = 10) - min(at) FILTER (WHERE tenth = 10))
                     / extract(epoch FROM max(at) FILTER (WHERE tenth = 1) - min(at) FILTER (WHERE tenth = 1)))::float8
               FROM (SELECT finished_at AS at, ntile(10) OVER (ORDER BY finished_at) AS tenth FROM awty.future_job_history) AS h";
    one(&mut shop.client("postgres"), sql, &[]).get(0)
}
