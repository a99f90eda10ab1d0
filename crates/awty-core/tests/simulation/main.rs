//! Simulates the whole scheduler in one thread, with crashes, restarts, pauses and clock jumps.
//!
//! `AWTY_SIM_SEED=7 AWTY_SIM_STEPS=100000 cargo test -p awty-core --test simulation` repeats the simulation with seed
//! 7.

mod again;
mod dice;
mod faults;
mod lease;
mod ledger;
mod scheduler;
mod table;
mod targets;
mod world;

use awty_core::Outcome;
use ledger::Tally;
use world::World;

struct Replay {
    seed: u64,
    steps: u64,
}

impl Drop for Replay {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("to replay: AWTY_SIM_SEED={} AWTY_SIM_STEPS={}", self.seed, self.steps);
        }
    }
}

fn play(seed: u64, steps: u64) -> (u64, Tally) {
    let replay = Replay { seed, steps };
    let mut world = World::new(seed);
    for step in 0..replay.steps {
        world.step();
        if step.is_multiple_of((steps / 20).max(1)) {
            world.audit();
        }
    }
    world.drain();
    world.audit();
    (world.ledger.hash(), world.ledger.tally)
}

fn from_environment(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} must be a number, not \"{value}\"")))
}

#[test]
fn a_million_steps_keep_every_promise() {
    let steps = from_environment("AWTY_SIM_STEPS").unwrap_or(100_000);
    if let Some(seed) = from_environment("AWTY_SIM_SEED") {
        let (hash, tally) = play(seed, steps);
        println!("seed {seed}, {steps} steps, history {hash:016x}: {tally:?}");
        return;
    }
    let mut all = Tally::default();
    for seed in 0..10 {
        all.add(&play(seed, steps).1);
    }
    println!("{all:?}");
    for (outcome, count) in Outcome::ALL.iter().zip(all.outcomes) {
        // Only a check of a watched row has the outcome `met`.
        assert!(count > 0 || *outcome == Outcome::Met, "no check ended as {outcome}");
    }
    for (what, count) in all.events() {
        assert!(count > 0, "never: {what}");
    }
}

#[test]
fn one_seed_is_one_history() {
    let (first, _) = play(42, 20_000);
    assert_eq!(play(42, 20_000).0, first);
    assert_ne!(play(43, 20_000).0, first);
}
