//! Measures recurring checks: one transaction ends a check and inserts the next check.

use crate::cpu::of_workers;
use crate::options::Options;
use crate::results::{Outcome, Wanted, readable};
use crate::shop::{Shop, one};
use crate::stats::{Pairs, Spent};
use crate::work::rates;
use awty_testkit::poll;
use awty_testkit::postgres::Client;
use chrono::{DateTime, Utc};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(600);

pub struct Ran {
    spent: Spent,
    last_start: f64,
}

fn repeat(client: &mut Client, n: u32, lead: f64) -> DateTime<Utc> {
    client
        .batch_execute(
            "SET client_min_messages = warning; SELECT awty.register('again', 'shop.unshipped', run_as => 'shop')",
        )
        .unwrap();
    let sql = "SELECT awty.next_slot(clock_timestamp() + $1 * interval '1 s')";
    let slot: DateTime<Utc> = one(client, sql, &[&lead]).get(0);
    let sql = "SELECT count(awty.repeat('again', every => '1 hour', starts => $1, entity_name => 'orders', entity_key => n::text))
               FROM generate_series(1, $2) AS n";
    assert_eq!(one(client, sql, &[&slot, &(n as i32)]).get::<_, i64>(0), i64::from(n));
    client.batch_execute("ANALYZE awty.future_job, awty_internal.repetition").unwrap();
    slot
}

pub fn run_slot(shop: &Shop, n: u32) -> Ran {
    let mut client = shop.client("postgres");
    let mut lead = 2.0 + f64::from(n) / 1500.0;
    let slot = loop {
        shop.tidy("postgres");
        let slot = repeat(&mut client, n, lead);
        if Utc::now() < slot {
            break slot;
        }
        client.batch_execute("SELECT awty.unregister('again')").unwrap();
        lead *= 2.0;
    };
    let sql = "SELECT extract(epoch FROM max(finished_at) - min(started_at))::float8,
                      extract(epoch FROM max(started_at) - $1)::float8, count(*), (SELECT count(*) FROM shop.alert)
               FROM awty.future_job_history WHERE job = 'again' AND outcome = 'done'";
    let ends = || {
        poll("all occurrences to be in the history", PATIENCE, || {
            let row = one(&mut client, sql, &[&slot]);
            let there = row.get::<_, i64>(2);
            if there == i64::from(n) { Ok(row) } else { Err(format!("{there} of {n}")) }
        })
    };
    let (ran, cpu) = of_workers(shop, ends);
    let row = ran.unwrap_or_else(|message| panic!("{message}"));
    assert_eq!(row.get::<_, i64>(3), i64::from(n / 10), "alerts");
    let next: i64 = one(&mut client, "SELECT count(*) FROM awty.future_job WHERE job = 'again'", &[]).get(0);
    assert_eq!(next, i64::from(n), "the next occurrences");
    client.batch_execute("SELECT awty.unregister('again')").unwrap();
    Ran { spent: Spent { clock: row.get(0), cpu }, last_start: row.get(1) }
}

pub fn again(options: &Options) -> Outcome {
    let mut outcome = Outcome::new("again");
    let n = options.size(10_000, 100_000);
    let shop = Shop::open(&[("awty.max_workers_per_role", "1")]);
    let mut last_starts = Vec::new();
    let times = Pairs::with_cpu(
        "an occurrence, a check that ends",
        options.rounds(),
        || {
            let ran = run_slot(&shop, n);
            last_starts.push(ran.last_start);
            ran.spent
        },
        || shop.run_due("postgres", &["one"], n).spent,
    );
    let detail = rates(n, ["occurrences", "checks"], &times[0]);
    outcome.ratios(["time of an occurrence", "a check that ends as done"], &times, Wanted::AtMost(1.9), detail);
    let most = last_starts.iter().copied().fold(0.0, f64::max);
    let what = format!("last start of {} repetitions in one slot, one worker", readable(f64::from(n)));
    let wanted = if n >= 100_000 { Wanted::AtMost(10.0) } else { Wanted::Nothing };
    outcome.value([&what, "the slot's boundary"], most, "s", wanted, format!("{} slots", last_starts.len()));
    outcome
}
