use crate::cpu::session;
use crate::options::Options;
use crate::pending::fill;
use crate::progress::say;
use crate::results::{Outcome, Wanted, readable};
use crate::shop::{Shop, one, sleep_until};
use crate::stats::{Pairs, median, spread};
use chrono::{DateTime, Utc};

pub fn entity(options: &Options) -> Outcome {
    let mut outcome = Outcome::new("entity");
    let times = options.size(1000, 1000);
    let (few, many) = (options.size(10_000, 10_000), options.size(1_000_000, 10_000_000));
    let shop = Shop::open(&[]);
    for (database, pending) in [("few", few), ("many", many)] {
        shop.add(database, 1);
        fill(&shop, database, pending);
    }
    let keys = |pending: u32| {
        format!(
            "FROM (SELECT (i * 7919::bigint % {pending} + 1)::text AS key FROM generate_series(1, {times}) AS i) AS k"
        )
    };
    let again = "awty.schedule('later', key, 'one', after => '1 day')";
    for (what, call) in [("replacing", again), ("cancelling", "awty.cancel('later', key)")] {
        let run = |database: &str, pending: u32| {
            let mut client = shop.client(database);
            let calls = format!("SELECT count({call}) {}", keys(pending));
            let spent = session(&mut client, |client| one(client, &calls, &[]));
            one(&mut client, &format!("SELECT count({again}) {}", keys(pending)), &[]);
            client.batch_execute("VACUUM awty.future_job").unwrap();
            spent
        };
        let pairs = Pairs::with_cpu(what, options.rounds(), || run("many", many), || run("few", few));
        let each = |seconds: &[f64]| readable(median(seconds) / f64::from(times) * 1e6);
        let detail = format!("{} µs each, {} µs with few", each(&pairs[0].ours), each(&pairs[0].theirs));
        let [many, few] = [many, few].map(|pending| format!("{} pending", readable(pending.into())));
        outcome.ratios(
            [&format!("{what} a check by its entity with {many}"), &format!("with {few}")],
            &pairs,
            Wanted::Nothing,
            detail,
        );
    }
    outcome
}

pub fn roles(options: &Options) -> Outcome {
    let mut outcome = Outcome::new("roles");
    let roles = options.size(200, 200);
    let n = options.size(2000, 2000);
    let shop = Shop::open(&[]);
    let names: Vec<String> = (1..=roles).map(|number| format!("role_{number}")).collect();
    for name in &names {
        let register = format!(
            "CREATE ROLE {name} LOGIN; GRANT USAGE ON SCHEMA awty TO {name}; GRANT shop TO {name};
             SET ROLE {name}; SELECT awty.register('{name}', 'shop.unshipped'); RESET ROLE"
        );
        shop.cluster.execute("postgres", &[&register]);
    }
    let jobs: Vec<&str> = names.iter().map(String::as_str).collect();
    let times = Pairs::with_cpu(
        &format!("{roles} roles, one"),
        options.rounds(),
        || shop.run_due("postgres", &jobs, n).spent,
        || shop.run_due("postgres", &["one"], n).spent,
    );
    let [ours, theirs] = [&times[0].ours, &times[0].theirs].map(|seconds| readable(median(seconds) * 1e3));
    let detail = format!("{ours} ms from the first start to the last end, {theirs} ms; {} checks", readable(n.into()));
    outcome.ratios([&format!("time for {roles} roles due in one slot"), "one role"], &times, Wanted::Nothing, detail);
    outcome
}

pub fn fairness(options: &Options) -> Outcome {
    let mut outcome = Outcome::new("fairness");
    let n = options.size(60_000, 100_000);
    let shop = Shop::open(&[]);
    let default: String =
        shop.cluster.value("postgres", "SELECT boot_val FROM pg_settings WHERE name = 'awty.max_workers'");
    for workers in [default.as_str(), "1"] {
        shop.set("awty.max_workers", workers);
        let mut lateness = Vec::new();
        for round in 1..=options.rounds() {
            let these = singles(&shop, n);
            say(&format!(
                "beside {} due, awty.max_workers = {workers}, round {round}: {these:.1?} ms",
                readable(n.into())
            ));
            lateness.extend(these);
        }
        if lateness.is_empty() {
            outcome.note(format!(
                "with awty.max_workers = {workers} the other role's backlog was over before anything could be late."
            ));
            continue;
        }
        let what = format!("a role's single check beside another role's {}, worst", readable(n.into()));
        let detail = format!(
            "median {} ms; {} single checks; awty.max_workers = {workers}",
            readable(median(&lateness)),
            lateness.len()
        );
        outcome.value([&what, "its slot's boundary"], spread(&lateness)[1], "ms", Wanted::AtMost(100.0), detail);
    }
    outcome
}

fn singles(shop: &Shop, n: u32) -> Vec<f64> {
    shop.tidy("postgres");
    let mut client = shop.client("postgres");
    let sql = "SELECT max(awty.schedule('orders', n::text, 'one', at => begin)), begin
               FROM (SELECT awty.next_slot(clock_timestamp() + ($1 / 8000 + 1) * interval '1 s') AS begin) AS b, generate_series(1, $1) AS n
               GROUP BY begin";
    let row = one(&mut client, sql, &[&(n as i32)]);
    let (last, begin): (i64, DateTime<Utc>) = (row.get(0), row.get(1));
    let single = "SELECT max(awty.schedule('single', s::text, 'other', at => $1::timestamptz + s * interval '1 s')) FROM generate_series(1, 60) AS s";
    one(&mut client, single, &[&begin]);
    sleep_until(&mut client, begin);
    shop.await_done(&mut client, &[last]);
    one(&mut client, "SELECT count(awty.cancel('single', s::text)) FROM generate_series(1, 60) AS s", &[]);
    let sql = "SELECT extract(epoch FROM h.lateness)::float8 * 1000
               FROM awty.future_job_history AS h,
                    (SELECT max(finished_at) AS over FROM awty.future_job_history WHERE job = 'one') AS o
               WHERE h.job = 'other' AND h.outcome = 'done' AND h.next_check_at < o.over";
    client.query(sql, &[]).unwrap().iter().map(|row| row.get(0)).collect()
}
