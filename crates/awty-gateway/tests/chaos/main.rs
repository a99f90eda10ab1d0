//! Injects faults into gateways, the server and the network while the gateways make calls.
//!
//! `AWTY_KILLS` is the number of faults (`make gateway-chaos KILLS=100`). `AWTY_SEED` determines the order of the
//! faults.
#![allow(clippy::unwrap_used, clippy::expect_used)] // in a test the panic is the report

mod checker;
mod checker_tests;
mod faults;
mod ledger;
mod load;
mod net;
mod world;

use awty_testkit::poll;
use checker::{Booked, Evidence};
use faults::Faults;
use load::Senders;
use std::time::Duration;
use world::{GATEWAYS, TENANTS, World};

const KILLS: u64 = 60;
const TO_CATCH_UP: Duration = Duration::from_secs(300);

const CAUGHT_UP: &str = "SELECT string_agg(entity_key || ' ' || next_check_at::time(0), ', ') FROM (
    SELECT entity_key, next_check_at FROM awty.future_job WHERE job ^@ 'http' AND (entity_key ~ '#' OR next_check_at < now() - '2 s'::interval)
    ORDER BY next_check_at LIMIT 5) AS late";
const BOOKED: &str = "SELECT split_part(entity_key, '#', 1), (EXTRACT(epoch FROM first_check_at) * 1000000)::bigint, check_count::bigint, key, ok
    FROM awty.attempt";
const FAILED: &str = "SELECT split_part(entity_key, '#', 1), (EXTRACT(epoch FROM first_check_at) * 1000000)::bigint
    FROM awty.future_job_history WHERE outcome <> 'done'";

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

#[test]
fn nothing_is_lost_doubled_or_invented_whatever_is_killed() {
    let (kills, seed) = (variable("AWTY_KILLS", KILLS), variable("AWTY_SEED", 1));
    let mut world = World::new(seed);
    load::schedule(&world);
    let first = load::first_slots(&world);
    (0..GATEWAYS).for_each(|number| world.start_gateway(number));
    let senders = Senders::start(&world, seed);
    let calm = poll("calls before anything goes wrong", TO_CATCH_UP, || match world.ledger.calls().len() {
        0..200 => Err("fewer than 200".to_owned()),
        _ => Ok(()),
    });
    calm.unwrap();
    let (first_fault, mut faults) = (world.ledger.now(), Faults::new(seed));
    while (faults.counts.all() as u64) < kills {
        faults.next(&mut world);
    }
    let sends = senders.stop();
    world.cluster.await_that("all to be called", TO_CATCH_UP, || match late(&world) {
        None => Ok(()),
        Some(late) => Err(late),
    });
    (0..GATEWAYS).for_each(|number| world.end_gateway(number));
    let mut client = world.cluster.superuser("postgres");
    let booked = client.query(BOOKED, &[]).unwrap();
    let booked = booked.iter().map(|row| Booked {
        occurrence: (row.get(0), row.get(1), row.get(2)),
        key: row.get(3),
        ok: row.get(4),
    });
    let failed = client.query(FAILED, &[]).unwrap();
    let evidence = Evidence {
        calls: world.ledger.calls(),
        booked: booked.collect(),
        failed: failed.iter().map(|row| (row.get(0), row.get(1))).collect(),
        plans: load::plans(&world, &first),
        sends,
        once: TENANTS[1].1,
        first_fault,
    };
    println!(
        "{:?} in {:.0} s, seed {seed}: {} calls, {} of them again although answered, {} sends, {} ended without success",
        faults.counts,
        world.ledger.now(),
        evidence.calls.len(),
        checker::repeated(&evidence),
        evidence.sends.len(),
        evidence.failed.len(),
    );
    let found = checker::findings(&evidence);
    assert!(found.is_empty(), "{} promises were not kept:\n{}", found.len(), found.join("\n"));
}

fn late(world: &World) -> Option<String> {
    world.cluster.value("postgres", CAUGHT_UP)
}
