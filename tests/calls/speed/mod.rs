//! Deliveries per second of one gateway, beside what one would pick instead and beside its own ceilings; and what it needs at rest.
//!
//! Invariant: the ways are measured in turn, round by round, on one server with the same origins.
//! Does not: guess. What is not installed is reported as missing.

mod field;
mod rest;
mod ways;

use crate::page::Page;
use crate::{Options, percentile};
use field::Field;

/// The rivals' settings; each is tried once, and the best is used.
const BATCHES: [u32; 4] = [200, 1_000, 2_500, 5_000];
/// What pg_net has by default.
const DEFAULT_BATCH: u32 = BATCHES[0];
const LOOPS: [[u32; 2]; 5] = [[1, 500], [1, 2_000], [2, 500], [2, 2_000], [4, 500]];

/// The best setting, by one try each; an error of any is none.
fn best<T: Copy + std::fmt::Debug>(name: &str, all: &[T], mut run: impl FnMut(T) -> Result<f64, String>) -> Option<T> {
    let mut found: Option<(f64, T)> = None;
    for settings in all {
        match run(*settings) {
            Ok(rate) => {
                println!("{name}, {settings:?}: {rate:.0}/s");
                found = found.filter(|(best, _)| *best >= rate).or(Some((rate, *settings)));
            }
            Err(error) => println!("{name}, {settings:?}: {error}"),
        }
    }
    found.map(|(_, settings)| settings)
}

/// How many calls are enough for that batch size: 25 batches, each of which takes more than a second.
fn share(calls: u32, batch: u32) -> u32 {
    calls.min(25 * batch)
}

/// Calls per second of each round.
#[derive(Default)]
struct Rates {
    gateway: Vec<f64>,
    pg_net: Vec<f64>,
    by_default: Vec<f64>,
    pg_boss: Vec<f64>,
    http: Vec<f64>,
    sql: Vec<f64>,
}

fn middle(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    percentile(&sorted, 50.0)
}

/// The gateway's by the others', of each round: the median, the least and the most, the goal, and the rates.
fn row(ours: &[f64], theirs: &[f64], goal: Option<f64>) -> String {
    if theirs.is_empty() {
        return "not measured: missing here".into();
    }
    let mut ratios: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
    ratios.sort_by(f64::total_cmp);
    let median = percentile(&ratios, 50.0);
    let verdict = goal.map(|goal| {
        let word = if median >= goal { "kept" } else { "**missed**" };
        format!("; goal: at least {goal} ×: {word}")
    });
    format!(
        "{median:.2} × ({:.2} to {:.2}){}; {:.0}/s against {:.0}/s",
        ratios[0],
        ratios[ratios.len() - 1],
        verdict.unwrap_or_default(),
        middle(ours),
        middle(theirs)
    )
}

pub fn speed(options: &Options) -> Result<(), String> {
    let calls = options.schedules;
    let with_pg_net = std::env::var("AWTY_PG_NET").is_ok_and(|value| !value.is_empty());
    let mut field = Field::open(calls, with_pg_net);
    field.superuser().batch_execute(include_str!("ceiling.sql")).unwrap();
    let mut batch = None;
    if with_pg_net {
        field.superuser().batch_execute("CREATE EXTENSION pg_net").unwrap();
        batch = best("pg_net, batch", &BATCHES, |batch| ways::pg_net(&field, share(calls, batch), batch));
    }
    let loops = if ways::packages().join("node_modules/undici").is_dir() {
        best("pg-boss, loops and batch", &LOOPS, |settings| ways::pg_boss(&field, settings))
    } else {
        None
    };
    // What is kept warm for one is kept warm for all.
    println!("gateway, not counted: {:.0}/s", ways::gateway(&mut field)?);
    let mut rates = Rates::default();
    for round in 1..=options.rounds {
        rates.gateway.push(ways::gateway(&mut field)?);
        if let Some(batch) = batch {
            rates.pg_net.push(ways::pg_net(&field, share(calls, batch), batch)?);
            rates.by_default.push(ways::pg_net(&field, share(calls, DEFAULT_BATCH), DEFAULT_BATCH)?);
        }
        if let Some(loops) = loops {
            rates.pg_boss.push(ways::pg_boss(&field, loops)?);
        }
        rates.http.push(ways::http_alone(&field)?);
        rates.sql.push(ways::sql_alone(&field)?);
        let last = [&rates.gateway, &rates.pg_net, &rates.by_default, &rates.pg_boss, &rates.http, &rates.sql]
            .map(|rates| rates.last().map_or_else(|| "-".into(), |rate| format!("{rate:.0}")));
        println!("{round} of {}: gateway, pg_net, by default, pg-boss, HTTP, SQL: {}", options.rounds, last.join(", "));
    }
    drop(field);
    let smaller: Vec<f64> = rates.http.iter().zip(&rates.sql).map(|(http, sql)| http.min(*sql)).collect();
    let ours = &rates.gateway;
    let mut figures = vec![
        ("deliveries, by pg_net's at its best", row(ours, &rates.pg_net, Some(10.0))),
        ("the same, pg_net by default", row(ours, &rates.by_default, None)),
        ("deliveries, by those of pg-boss with undici", row(ours, &rates.pg_boss, Some(3.0))),
        ("deliveries, by the smaller of the two ceilings", row(ours, &smaller, Some(0.6))),
        ("the same, by the gateway's HTTP without a database", row(ours, &rates.http, None)),
        ("the same, by plain SQL without HTTP", row(ours, &rates.sql, None)),
    ];
    figures.extend(rest::figures(options)?);
    let page = Page {
        name: "gateway-performance",
        title: "How fast the gateway is",
        what: what(calls, batch, loops),
        figures,
        charts: Vec::new(),
    };
    page.write(options)
}

fn what(calls: u32, batch: Option<u32>, loops: Option<[u32; 2]>) -> String {
    let batch = batch.map_or("missing here".into(), |batch| format!("its best batch size of {BATCHES:?} was {batch}"));
    let loops = loops.map_or("missing here".into(), |[loops, batch]| {
        format!("its best setting of {LOOPS:?} was {loops} loops that fetch {batch} at a time")
    });
    format!(
        "{calls} calls over 100 origins, all due at once, POST with a small JSON, answered at once by the same receiver on the same machine; \
         from the moment they are due to the last arrival. Each call must arrive once, or the run fails. Values are medians of the rounds, with least \
         and most; rates hold for this machine only. The server has `synchronous_commit = off` for all.\n\n\
         - The gateway: one process with its default settings, `awty_http.send`, signed, ten calls at once to an origin (the default).\n\
         - pg_net: built from source, `net.http_post`; {batch}. It rests for a second after each batch, so 25 batches are enough. It keeps its queue in unlogged tables, signs \
         nothing and does not repeat.\n\
         - pg-boss with undici: one process of Node.js, ten connections an origin, kept; {loops}.\n\
         - HTTP without a database: the same requests by the gateway's own modules (`crates/awty-gateway/examples/calls.rs`), ten at once to an origin.\n\
         - Plain SQL without HTTP: leases and attempts of 500 calls at a time by one connection, without limits of targets (`tests/calls/speed/ceiling.sql`)."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_whether_the_goal_is_kept() {
        let kept = row(&[30.0, 20.0, 40.0], &[10.0; 3], Some(3.0));
        assert_eq!(kept, "3.00 × (2.00 to 4.00); goal: at least 3 ×: kept; 30/s against 10/s");
        assert!(row(&[29.0], &[10.0], Some(3.0)).contains("**missed**"));
        assert!(row(&[29.0], &[], Some(3.0)).contains("not measured"));
    }

    #[test]
    fn the_best_setting_is_the_fastest_that_works() {
        let run = |n: u32| if n == 3 { Err("no".to_owned()) } else { Ok(f64::from(n)) };
        assert_eq!(best("a try", &[1, 2, 3], run), Some(2));
        assert_eq!(best("a try", &[3], run), None);
    }
}
