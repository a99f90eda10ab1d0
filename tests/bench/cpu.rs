//! `bench cpu` prints the CPU time that awty's server processes take. `bench compare STAGE STAGE PAIRS` compares two
//! staged servers in pairs (A B A B …).
//!
//! Invariant: the CPU time comes from `/proc/PID/schedstat`, because other programs use the machine as well.

use crate::deadlines::{cpu, used_by};
use crate::progress::say;
use crate::results::readable;
use crate::shop::{Shop, one};
use crate::stats::{Spent, median, spread};
use awty_testkit::postgres::Client;
use std::collections::HashMap;
use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

const CHECKS: u32 = 5_000;
/// Minimum of the estimated noise. Without a minimum, a few measurements that agree by chance would turn any slowdown
/// into a regression.
const LEAST_NOISE: f64 = 0.02;

type Figure = (&'static str, fn(&Shop) -> f64);

/// Each figure is in microseconds for one check, row or lease.
const FIGURES: [Figure; 6] = [
    ("a check that ends", a_check),
    ("an occurrence", occurrence),
    ("awty.schedule()", schedule),
    ("an INSERT into a watched table", insert),
    ("a claimed lease beside 5,000", claim),
    ("an answer", answer),
];

const SET_UP: &str = "
SET ROLE shop;
CREATE TABLE shop.watched (LIKE shop.orders INCLUDING ALL);
SELECT awty.watch('shop.watched', since => 'placed_at', until => $$status <> 'UNSHIPPED'$$, within => '3 hours');
CREATE TABLE shop.claimed (batch integer, lease bigint);
SELECT awty.register('mail', timeout => '1 h');
SELECT awty.alter_target('mail', concurrency => 1000);
SELECT awty.schedule_many('target ' || t, array_agg(n::text), 'mail', after => '0')
FROM generate_series(1, 100) AS t, generate_series(1, 100) AS n GROUP BY t;
RESET ROLE";

pub fn run(arguments: &[String]) -> Option<Result<(), String>> {
    match arguments {
        [command] if command == "cpu" => Some(measure()),
        [command, base, now, pairs] if command == "compare" => {
            Some(pairs.parse().map_err(|_| "PAIRS is a number".to_owned()).and_then(|pairs| compare(base, now, pairs)))
        }
        _ => None,
    }
}

fn measure() -> Result<(), String> {
    let shop = Shop::with_orders(&[("awty.max_workers_per_role", "1")], 2 * CHECKS);
    shop.cluster.execute("postgres", &[SET_UP]);
    shop.cluster.await_sql("postgres", "the walk to end", "SELECT walk = 'done' FROM awty.rule");
    shop.cluster.await_sql("postgres", "due checks", "SELECT bool_and(next_check_at < now()) FROM awty.future_job");
    claims(&shop, 5, 1_000);
    shop.cluster.execute("postgres", &["TRUNCATE shop.claimed", "VACUUM ANALYZE awty.future_job, awty_internal.lease"]);
    a_check(&shop); // Starts a worker and fills its caches.
    for (name, figure) in FIGURES {
        println!("{name}\t{}", figure(&shop));
    }
    Ok(())
}

/// Returns the seconds of CPU time that the workers take meanwhile. Reads the CPU time every 2 ms, because the CPU time
/// of a worker is lost when the worker ends.
pub fn of_workers<T>(shop: &Shop, run: impl FnOnce() -> T) -> (T, f64) {
    let mut client = shop.client("postgres");
    let mut workers = || -> Vec<i32> {
        let sql = "SELECT pid FROM pg_stat_activity WHERE backend_type LIKE 'awty worker%'";
        client.query(sql, &[]).unwrap().iter().map(|row| row.get(0)).collect()
    };
    let before: HashMap<i32, f64> = workers().into_iter().filter_map(|pid| Some((pid, used_by(pid)?))).collect();
    let mut after = before.clone();
    let (end, is_over) = mpsc::channel::<()>();
    let done = std::thread::scope(|scope| {
        scope.spawn(|| {
            let is_over = is_over;
            loop {
                let pids = workers();
                for _ in 0..25 {
                    let waited = is_over.recv_timeout(Duration::from_millis(2));
                    after.extend(pids.iter().filter_map(|pid| Some((*pid, used_by(*pid)?))));
                    if waited != Err(RecvTimeoutError::Timeout) {
                        return;
                    }
                }
            }
        });
        let done = run();
        drop(end);
        done
    });
    let spent = after.into_iter().map(|(pid, used)| used - before.get(&pid).copied().unwrap_or(0.0));
    (done, spent.sum::<f64>() / 1e6)
}

/// Measures the time that `run` takes, and the CPU time of the client's server process.
pub fn session<T>(client: &mut Client, run: impl FnOnce(&mut Client) -> T) -> Spent {
    let pid: i32 = one(client, "SELECT pg_backend_pid()", &[]).get(0);
    let used = || used_by(pid).unwrap() / 1e6;
    let (before, began) = (used(), Instant::now());
    run(client);
    Spent { clock: began.elapsed().as_secs_f64(), cpu: used() - before }
}

/// Returns the CPU time of the workers in microseconds for each check.
fn for_each(shop: &Shop, run: impl FnOnce()) -> f64 {
    of_workers(shop, run).1 * 1e6 / f64::from(CHECKS)
}

fn a_check(shop: &Shop) -> f64 {
    for_each(shop, || {
        shop.run_due("postgres", &["one"], CHECKS);
    })
}

fn occurrence(shop: &Shop) -> f64 {
    for_each(shop, || {
        crate::again::run_slot(shop, CHECKS);
    })
}

fn schedule(shop: &Shop) -> f64 {
    let call = "count(awty.schedule('orders', n::text, 'one', after => '1 h'))";
    let used = cpu(shop, &format!("SELECT {call} FROM generate_series(1, {CHECKS}) AS n"));
    cpu(shop, "SELECT awty.cancel_many('orders', array_agg(entity_key)) FROM awty.future_job WHERE job = 'one'");
    used / f64::from(CHECKS)
}

fn insert(shop: &Shop) -> f64 {
    cpu(shop, &format!("CALL shop.one_by_one('shop.watched', {CHECKS}, false)")) / f64::from(CHECKS)
}

fn claims(shop: &Shop, count: u32, most: u32) -> f64 {
    let claim =
        format!("INSERT INTO shop.claimed SELECT {count} - n, lease FROM awty.claim('{{mail}}', 'bench', {most})");
    cpu(shop, &format!("DO $$ BEGIN FOR n IN 1 .. {count} LOOP {claim}; END LOOP; END $$"))
}

fn claim(shop: &Shop) -> f64 {
    claims(shop, 20, 100) / 2_000.0
}

fn answer(shop: &Shop) -> f64 {
    let answer = "PERFORM awty.complete_many(ARRAY(SELECT lease FROM shop.claimed WHERE batch = 20 - n))";
    cpu(shop, &format!("DO $$ BEGIN FOR n IN 1 .. 20 LOOP {answer}; END LOOP; END $$")) / 2_000.0
}

fn measured(stage: &str) -> Result<Vec<f64>, String> {
    // This link stays valid if a build replaces the program meanwhile. The path of the program would become invalid.
    let output = Command::new("/proc/self/exe").arg("cpu").env("AWTY_STAGE", stage).output();
    let output = output.map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("{stage}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('\t'));
        line.and_then(|value| value.parse().ok()).ok_or_else(|| format!("{stage}: no figure for {name}"))
    };
    FIGURES.iter().map(|(name, _)| value(name)).collect()
}

fn compare(base: &str, now: &str, pairs: usize) -> Result<(), String> {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for pair in 1..=pairs {
        say(&format!("pair {pair} of {pairs}"));
        before.push(measured(base)?);
        after.push(measured(now)?);
    }
    println!("| µs of CPU for | base | now | ratio | least to most | |\n|---|--:|--:|--:|---|---|");
    let mut worse = Vec::new();
    for (n, (name, _)) in FIGURES.iter().enumerate() {
        let values = |all: &[Vec<f64>]| all.iter().map(|figures| figures[n]).collect::<Vec<_>>();
        let (base, now) = (values(&before), values(&after));
        let ratios: Vec<f64> = now.iter().zip(&base).map(|(now, base)| now / base).collect();
        let [low, high] = spread(&ratios);
        let [base, now, ratio] = [&base, &now, &ratios].map(|values| readable(median(values)));
        let verdict = if is_worse(&ratios) { "**worse**" } else { "" };
        println!("| {name} | {base} | {now} | {ratio} | {low:.2} to {high:.2} | {verdict} |");
        worse.extend(is_worse(&ratios).then_some(*name));
    }
    if worse.is_empty() { Ok(()) } else { Err(format!("worse by more than the noise: {}", worse.join(", "))) }
}

/// The noise is half of the difference between the highest and the lowest ratio.
fn is_worse(ratios: &[f64]) -> bool {
    let [low, high] = spread(ratios);
    median(ratios) - 1.0 > ((high - low) / 2.0).max(LEAST_NOISE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_worse_only_by_more_than_its_noise() {
        assert!(is_worse(&[1.1, 1.12, 1.15]));
        assert!(!is_worse(&[0.95, 1.1, 1.2]));
        assert!(!is_worse(&[1.01, 1.01, 1.01]));
        assert!(!is_worse(&[0.5, 0.6, 0.7]));
    }
}
