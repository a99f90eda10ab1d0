//! Simulates external workers, and fails if a check has two leases at the same time or is lost (promise P14 in
//! docs/promises.md).

mod ledger;
mod server;
mod workers;

use super::{Replay, from_environment};
use crate::dice::Dice;
use awty_core::Outcome;
use chrono::TimeDelta;
use ledger::{Ledger, Tally};
use server::Server;
use workers::Worker;

pub struct World {
    dice: Dice,
    server: Server,
    flushed: Server,
    workers: Vec<Worker>,
    ledger: Ledger,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let server = Server::new(&mut dice);
        let workers = (0..4).map(|_| Worker::default()).collect();
        Self { dice, flushed: server.clone(), server, workers, ledger: Ledger::default() }
    }

    fn step(&mut self) {
        match self.dice.below(1000) {
            0..140 => self.server.schedule(&mut self.dice, &mut self.ledger),
            140..160 => self.server.cancel(&mut self.dice, &mut self.ledger),
            160..175 => self.server.hold_or_release(&mut self.dice),
            175..420 => self.server.now += self.dice.millis(1, 8000),
            420..640 => self.claim(),
            640..870 => self.answer(),
            870..930 => self.beat(),
            930..950 => self.give_back(),
            950..970 => self.server.book_overdue(None, &mut self.ledger),
            970..985 => self.flushed = self.server.clone(),
            _ => self.something_goes_wrong(),
        }
    }

    fn something_goes_wrong(&mut self) {
        let worker = self.dice.below(self.workers.len());
        match self.dice.below(6) {
            0 => self.server.now += TimeDelta::hours(1),
            1 => self.server.now -= self.dice.millis(0, 100_000),
            2 => {
                self.ledger.tally.crashes_of_server += 1;
                let now = self.server.now;
                self.server = self.flushed.clone();
                self.server.now = now;
                self.ledger.goes_back(&self.server);
            }
            _ => self.workers[worker].hands.clear(),
        }
    }

    fn drain(&mut self) {
        self.server.release_all();
        for _ in 0..20_000 {
            if self.server.rows.is_empty() {
                return self.ledger.audit();
            }
            self.server.now += TimeDelta::seconds(10);
            self.claim();
            for worker in &mut self.workers {
                worker.finish_all(&mut self.server, &mut self.ledger);
            }
            self.server.release_all();
        }
        panic!("checks that never end: {:?}", self.server.rows);
    }
}

fn play(seed: u64, steps: u64) -> Tally {
    let replay = Replay { seed, steps };
    let mut world = World::new(seed);
    for _ in 0..replay.steps {
        world.step();
    }
    world.drain();
    world.ledger.tally
}

#[test]
fn leases_keep_every_promise_for_a_million_steps() {
    let steps = from_environment("AWTY_SIM_STEPS").unwrap_or(100_000);
    if let Some(seed) = from_environment("AWTY_SIM_SEED") {
        println!("{:?}", play(seed, steps));
        return;
    }
    let mut all = Tally::default();
    for seed in 0..10 {
        all.add(&play(seed, steps));
    }
    println!("{all:?}");
    for outcome in [Outcome::Done, Outcome::Cancelled, Outcome::Failed, Outcome::TimedOut, Outcome::Expired] {
        assert!(all.outcomes[outcome as usize] > 0, "no check ended as {outcome}");
    }
    for (what, count) in all.events() {
        assert!(count > 0, "never: {what}");
    }
}
