mod compare;
mod field;
mod late;
pub mod lists;
mod rest;
mod run;
mod ways;

use crate::calls::Options;
use crate::results::{Outcome, Wanted};
use compare::{add, best, per_second};
use field::Field;
use run::Calls;

/// pg_net is measured with each batch size, and its best result counts.
const BATCHES: [u32; 4] = [200, 1_000, 2_500, 5_000];
const DEFAULT_BATCH: u32 = BATCHES[0];
const LOOPS: [[u32; 2]; 5] = [[1, 500], [1, 2_000], [2, 500], [2, 2_000], [4, 500]];

fn share(calls: u32, batch: u32) -> u32 {
    calls.min(25 * batch)
}

#[derive(Default)]
struct Rates {
    gateway: Vec<f64>,
    pg_net: Vec<f64>,
    by_default: Vec<f64>,
    pg_boss: Vec<f64>,
    http: Vec<f64>,
    sql: Vec<f64>,
}

pub fn speed(options: &Options) -> Result<Outcome, String> {
    let calls = Calls::at_once(options.schedules);
    let with_pg_net = std::env::var("AWTY_PG_NET").is_ok_and(|value| !value.is_empty());
    let mut field = Field::open(with_pg_net);
    field.superuser().batch_execute(include_str!("ceiling.sql")).unwrap();
    let mut batch = None;
    if with_pg_net {
        field.superuser().batch_execute("CREATE EXTENSION pg_net").unwrap();
        batch = best("pg_net, batch", &BATCHES, |batch| {
            ways::pg_net(&field, share(calls.count, batch), batch).map(|run| run.rate())
        });
    }
    let loops = if ways::packages().join("node_modules/undici").is_dir() {
        best("pg-boss, loops and batch", &LOOPS, |settings| {
            ways::pg_boss(&field, &calls, settings).map(|run| run.rate())
        })
    } else {
        None
    };
    // The first measurement warms up the machine, so it does not count.
    println!("gateway, not counted: {:.0}/s", ways::gateway(&mut field, &calls)?.rate());
    let mut rates = Rates::default();
    for round in 1..=options.rounds {
        rates.gateway.push(ways::gateway(&mut field, &calls)?.rate());
        if let Some(batch) = batch {
            rates.pg_net.push(ways::pg_net(&field, share(calls.count, batch), batch)?.rate());
            rates.by_default.push(ways::pg_net(&field, share(calls.count, DEFAULT_BATCH), DEFAULT_BATCH)?.rate());
        }
        if let Some(loops) = loops {
            rates.pg_boss.push(ways::pg_boss(&field, &calls, loops)?.rate());
        }
        rates.http.push(ways::http_alone(&field, calls.count)?.rate());
        rates.sql.push(ways::sql_alone(&field, calls.count)?);
        let last = [&rates.gateway, &rates.pg_net, &rates.by_default, &rates.pg_boss, &rates.http, &rates.sql]
            .map(|rates| rates.last().map_or_else(|| "-".into(), |rate| format!("{rate:.0}")));
        println!("{round} of {}: gateway, pg_net, by default, pg-boss, HTTP, SQL: {}", options.rounds, last.join(", "));
    }
    let mut outcome = Outcome::new("speed");
    outcome.what = Some(what(calls.count, batch, loops));
    let smaller: Vec<f64> = rates.http.iter().zip(&rates.sql).map(|(http, sql)| http.min(*sql)).collect();
    let mut by = |against, theirs: &[f64], wanted| {
        add(&mut outcome, ["deliveries", against], [&rates.gateway, theirs], wanted, per_second, "");
    };
    by("pg_net at its best", &rates.pg_net, Wanted::AtLeast(3.0));
    by("pg_net by default", &rates.by_default, Wanted::Nothing);
    by("pg-boss with undici", &rates.pg_boss, Wanted::AtLeast(1.5));
    by("the smaller of the two ceilings", &smaller, Wanted::Nothing);
    by("the gateway's HTTP without a database", &rates.http, Wanted::AtLeast(0.6));
    by("plain SQL without HTTP", &rates.sql, Wanted::Nothing);
    late::figures(options, &mut field, loops, &mut outcome)?;
    Ok(outcome)
}

pub fn rest(options: &Options) -> Result<Outcome, String> {
    let mut outcome = Outcome::new("rest");
    outcome.what = Some(
        "- A call that hangs: resident memory of the gateway with 10,000 requests that are never answered, less that without them, by their number.\n\
        - A slot in which nothing is due: what pg_stat_statements counts of the gateway's role.\n\
        - Lists: pages of 50, or 10 where it says so, by `/v1` of one gateway, beside the same among 1,000 schedules with 10 attempts each; medians of 25 requests."
            .into(),
    );
    rest::figures(options, &mut outcome)?;
    lists::figures(options, &mut outcome)?;
    Ok(outcome)
}

fn what(calls: u32, batch: Option<u32>, loops: Option<[u32; 2]>) -> String {
    let batch = batch.map_or("missing here".into(), |batch| format!("its best batch size of {BATCHES:?} was {batch}"));
    let loops = loops.map_or("missing here".into(), |[loops, batch]| {
        format!("its best setting of {LOOPS:?} was {loops} loops that fetch {batch} at a time")
    });
    format!(
        "{calls} calls over 100 origins, all due at once, POST with a small JSON, answered at once by the same receiver on the same machine; \
         from the moment they are due to the last arrival. Each call must arrive once, or the run fails. Values are medians of the rounds, with least \
         and most; rates hold for this machine only. The server has `synchronous_commit = off` for all; the gateway flushes its claims \
         all the same.\n\n\
         - The gateway: one process with its default settings, `awty_http.send`, signed, ten calls at once to an origin (the default).\n\
         - pg_net: built from source, `net.http_post`; {batch}. It rests for a second after each batch, so 25 batches are enough. It keeps its queue in unlogged tables, signs \
         nothing and does not repeat.\n\
         - pg-boss with undici: one process of Node.js, ten connections an origin, kept; {loops}.\n\
         - HTTP without a database: the same requests by the gateway's own modules (`crates/awty-gateway/examples/calls.rs`), ten at once to an origin.\n\
         - Plain SQL without HTTP: leases and attempts of 500 calls at a time by one connection, without limits of targets (`tests/bench/calls/speed/ceiling.sql`).\n\
         - Lateness: arrival minus the second for which the call was asked; pg-boss has the same calls in the same seconds as `startAfter`, the setting that \
         was its best above, and looks every 100 ms when it finds nothing."
    )
}
