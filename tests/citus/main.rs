//! Tests awty on a Citus cluster: `scripts/citus-test SOURCE [PART...]`. By default, all parts run.
//!
//! Invariant: the exit status is 0 only if each run took effect exactly once in each part.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a panic reports the failure

mod kills;
mod load;
mod nodes;
mod overview;
mod place;
mod runs;
mod speed;
mod wings;

use place::Place;
use std::process::ExitCode;
use std::time::Instant;

type Part = fn(&mut Place) -> String;

const PARTS: &[(&str, Part)] = &[
    ("failed", runs::failed),
    ("prepared", runs::prepared),
    ("flushed", runs::flushed),
    ("watches", wings::watches),
    ("schemas", wings::schemas),
    ("repeats", wings::repeats),
    ("workers", wings::workers),
    ("triggers", wings::triggers),
    ("overview", overview::overview),
    ("gateway", overview::gateway),
    ("kills", kills::kills),
    ("moves", nodes::moves),
    ("standby", nodes::standby),
    ("joins", nodes::joins),
    ("speed", speed::speed),
];

fn main() -> ExitCode {
    let chosen: Vec<String> = std::env::args().skip(1).collect();
    if let Some(name) = chosen.iter().find(|name| !PARTS.iter().any(|(part, _)| part == name)) {
        eprintln!("no such part: {name}; there are {:?}", PARTS.iter().map(|(part, _)| part).collect::<Vec<_>>());
        return ExitCode::from(2);
    }
    let mut place = Place::open(2);
    for (name, part) in PARTS.iter().filter(|(name, _)| chosen.is_empty() || chosen.iter().any(|part| part == name)) {
        let began = Instant::now();
        println!("== {name}");
        let found = part(&mut place);
        place.judge();
        place.clear();
        println!("   {found} ({:.0} s)", began.elapsed().as_secs_f64());
    }
    ExitCode::SUCCESS
}
