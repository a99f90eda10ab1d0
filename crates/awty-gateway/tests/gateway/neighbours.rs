//! Twenty hostile tenants attack one victim at once. The victim's calls and alerts must continue, and its data must
//! stay private.
//!
//! `AWTY_MINUTES` is the length of a long run (`make neighbours MINUTES=5`).

mod by_clients;
mod by_endpoints;
mod by_locks;
mod by_rows;
mod figures;
mod hood;
mod plain;
mod spies;
mod trap;
mod victim;

use crate::shop::{Gateway, Shop, until};
use figures::{Attacked, Figures};
use hood::Hood;
use plain::Plain;
use std::time::{Duration, SystemTime};
use victim::Victim;

/// Maximum memory in KiB: 214 MiB for a gateway that holds 128 MiB of requests (docs/gateway.md), 64 MiB for request
/// bodies of the API, and a reserve.
const MOST: u64 = 320 * 1024;
const CALLS: usize = 25;

#[allow(clippy::disallowed_methods)] // figures compare moments with the receiver's stamps
fn now() -> SystemTime {
    SystemTime::now()
}

fn wait(length: Duration) {
    let end = now() + length;
    awty_testkit::poll("the end of the run", 2 * length, || if now() < end { Err(String::new()) } else { Ok(()) })
        .unwrap();
}

/// A short test (without `length`) lowers the gateway's limit of concurrent calls to 200, so that the attackers can
/// reach the limit.
fn open(length: Option<Duration>) -> (Shop, Victim, Gateway) {
    let shop = Shop::open();
    hood::add_roles(&shop);
    let victim = Victim::settle(&shop);
    let mut flags = vec!["--config", &victim.settings];
    if length.is_none() {
        flags.extend(["--max-in-flight", "200"]);
    }
    let gateway = shop.gateway_with("gateway", &flags);
    victim.await_calls(3);
    (shop, victim, gateway)
}

fn quiet(length: Duration) -> Figures {
    let (shop, victim, gateway) = open(Some(length));
    let (writer, plain, from) = (Victim::write(&shop), Plain::start(&shop), now());
    wait(length);
    let to = now();
    let plain = plain.end();
    victim.assert_nothing_is_lost(&shop, writer);
    figures::figures(&victim.calls(), &plain, from, to, gateway.most_memory())
}

fn attacked(length: Option<Duration>) -> Attacked {
    let (shop, victim, gateway) = open(length);
    let marks = victim.marks(&shop, &gateway);
    let (writer, plain, from) = (Victim::write(&shop), Plain::start(&shop), now());
    let hood = Hood::attack(&shop, &gateway, &victim.target);
    victim.await_calls(CALLS);
    if let Some(length) = length {
        wait(length);
    }
    until("a round of each attack", || hood.missing().map_or(Ok(()), |name| Err(name.to_owned())));
    let to = now();
    let plain = plain.end();
    spies::assert_nothing_is_seen(&shop, &gateway, &hood, &victim.target, &marks);
    victim.await_calls(1);
    let rounds = hood.rounds();
    hood.leave();
    let left = now();
    victim.await_calls(3);
    if length.is_some() {
        wait(Duration::from_secs(15));
    }
    let gap_after = figures::longest_gap(&victim.calls(), left, now());
    victim.assert_nothing_is_lost(&shop, writer);
    assert_eq!(gateway.get("/livez").0, 200);
    let memory = gateway.most_memory();
    println!("the gateway has held {} MiB; rounds: {rounds:?}", memory / 1024);
    assert!(memory < MOST, "the gateway has held {memory} KiB");
    shop.cluster.execute("postgres", &["SELECT awty_http_internal.roll_up(now() + interval '1 hour')"]);
    let counted =
        "SELECT sum(ok) >= 25 FROM awty_http.stat WHERE id <> job AND job = 'http.victim' AND width = '1 hour'";
    assert_eq!(shop.text(counted), "true");
    Attacked { figures: figures::figures(&victim.calls(), &plain, from, to, memory), rounds, gap_after }
}

#[test]
fn twenty_hostile_neighbours_take_nothing_from_a_victim() {
    let Some(minutes) = std::env::var("AWTY_MINUTES").ok() else {
        attacked(None);
        return;
    };
    let minutes: f64 = minutes.parse().unwrap_or_else(|_| panic!("AWTY_MINUTES is no number: {minutes}"));
    let length = Duration::from_secs_f64(60.0 * minutes);
    let quiet = quiet(length);
    let page = figures::page(&quiet, &attacked(Some(length)), minutes);
    println!("{page}");
    if let Some(file) = std::env::var_os("AWTY_PAGE") {
        std::fs::write(file, &page).unwrap();
    }
    assert!(!page.contains("NOT KEPT"), "a goal is not kept");
}
