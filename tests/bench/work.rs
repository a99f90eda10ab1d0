use crate::options::Options;
use crate::results::{Outcome, Wanted, readable};
use crate::shop::{Ran, Shop};
use crate::stats::{Pairs, median};

pub fn rates(n: u32, [ours, theirs]: [&str; 2], pairs: &Pairs) -> String {
    let rate = |seconds: &[f64]| readable(f64::from(n) / median(seconds));
    format!("{ours} {}/s, {theirs} {}/s; {} checks", rate(&pairs.ours), rate(&pairs.theirs), readable(f64::from(n)))
}

/// Returns pairs whose ratios are the inverse ones.
pub fn speeds<const N: usize>(times: [Pairs; N]) -> [Pairs; N] {
    times.map(|Pairs { ours, theirs }| Pairs { ours: theirs, theirs: ours })
}

pub fn ceiling(options: &Options) -> Outcome {
    let mut outcome = Outcome::new("ceiling");
    let n = options.size(10_000, 200_000);
    let shop = Shop::open(&[("awty.max_workers_per_role", "1")]);
    let mut wal = Pairs { ours: Vec::new(), theirs: Vec::new() };
    let per_check = |ran: &Ran| ran.wal / f64::from(n);
    let times = Pairs::with_cpu(
        "one worker, the ceiling",
        options.rounds(),
        || {
            let ran = shop.run_due("postgres", &["one"], n);
            wal.ours.push(per_check(&ran));
            ran.spent
        },
        || {
            let ran = shop.ceiling("postgres", &["one"], n);
            wal.theirs.push(per_check(&ran));
            ran.spent
        },
    );
    let detail = rates(n, ["awty", "ceiling"], &times[0]);
    let what = ["due checks/s, one worker, a transaction each", "the ceiling: one SQL statement for all"];
    outcome.ratios(what, &speeds(times), Wanted::AtLeast(shop.goal(0.37, 0.5)), detail);
    let by_loop = Pairs::with_cpu(
        "one worker, a loop in PL/pgSQL that commits after each check",
        options.rounds(),
        || shop.run_due("postgres", &["one"], n).spent,
        || shop.loop_with_commits("postgres", n).spent,
    );
    let detail_of_loop = rates(n, ["awty", "the loop"], &by_loop[0]);
    let what = ["the same", "a loop in PL/pgSQL that commits after each check, without anything else"];
    outcome.ratios(what, &speeds(by_loop), Wanted::AtLeast(shop.goal(1.0, 1.05)), detail_of_loop);
    let detail = format!("awty {}, ceiling {}", readable(median(&wal.ours)), readable(median(&wal.theirs)));
    outcome.ratio(["bytes of write-ahead log per check", "the ceiling"], &wal, Wanted::AtMost(1.3), detail);
    outcome
}

pub fn set(options: &Options) -> Outcome {
    let mut outcome = Outcome::new("set");
    let n = options.size(10_000, 200_000);
    let shop = Shop::open(&[("awty.max_workers_per_role", "1")]);
    let default: String =
        shop.cluster.value("postgres", "SELECT boot_val FROM pg_settings WHERE name = 'awty.batch_size'");
    for size in [default.as_str(), "100"] {
        shop.set("awty.batch_size", size);
        let times = Pairs::with_cpu(
            &format!("sets of {size}, the ceiling"),
            options.rounds(),
            || shop.run_due("postgres", &["set"], n).spent,
            || shop.ceiling("postgres", &["one"], n).spent,
        );
        let detail = rates(n, ["awty", "ceiling"], &times[0]);
        let (what, wanted) = match size == default {
            true => (format!("the same as a set-based job, sets of {size} (the default)"), Wanted::AtLeast(1.2)),
            false => (format!("the same, sets of {size}"), Wanted::Nothing),
        };
        outcome.ratios([&what, "the ceiling"], &speeds(times), wanted, detail);
    }
    let times = Pairs::with_cpu(
        "the ceiling without the function, the ceiling",
        options.rounds(),
        || shop.tables_alone("postgres", n).spent,
        || shop.ceiling("postgres", &["one"], n).spent,
    );
    let detail = rates(n, ["tables alone", "ceiling"], &times[0]);
    let what = "for comparison: the ceiling's statement without a call of the function";
    outcome.ratios([what, "the ceiling"], &speeds(times), Wanted::Nothing, detail);
    outcome
}

pub fn workers(options: &Options) -> Outcome {
    let mut outcome = Outcome::new("workers");
    let n = options.size(20_000, 200_000);
    let shop = Shop::open(&[("awty.max_workers_per_role", "1")]);
    let one_worker = || shop.run_due("postgres", &["one"], n).spent;
    let times = Pairs::with_cpu(
        "two roles, one role",
        options.rounds(),
        || shop.run_due("postgres", &["one", "other"], n).spent,
        one_worker,
    );
    let detail = rates(n, ["two", "one"], &times[0]);
    outcome.ratios(["two workers: two roles", "one worker"], &speeds(times), Wanted::AtLeast(1.6), detail);
    let with_workers = |number: &str| {
        shop.set("awty.max_workers_per_role", number);
        one_worker()
    };
    let times =
        Pairs::with_cpu("two workers of one role, one", options.rounds(), || with_workers("2"), || with_workers("1"));
    let detail = rates(n, ["two", "one"], &times[0]);
    outcome.ratios(["two workers: one role", "one worker"], &speeds(times), Wanted::AtLeast(1.6), detail);
    let times = Pairs::with_cpu(
        "the ceiling by two sessions, by one",
        options.rounds(),
        || shop.ceiling("postgres", &["one", "other"], n).spent,
        || shop.ceiling("postgres", &["one"], n).spent,
    );
    let detail = rates(n, ["two", "one"], &times[0]);
    let what = ["for comparison: the ceiling's statement, half of it in each of two sessions", "all of it in one"];
    outcome.ratios(what, &speeds(times), Wanted::Nothing, detail);
    outcome
}
