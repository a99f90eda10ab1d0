//! Simulates repetitions with clients, workers, crashes, downtime and clock jumps. Each simulated step is one commit.

mod clients;
mod faults;
mod ledger;
mod plans;
mod workers;

use crate::dice::Dice;
use awty_core::limits::OnMissed;
use awty_core::repeat::{Changes, Occurrence, Repetition};
use awty_core::{Limits, Outcome, Time, Width};
use chrono::TimeDelta;
use ledger::{Key, Ledger, Tally};
use plans::{DAYS, FIRST, Terms};
use std::collections::BTreeMap;

const JOBS: usize = 4;
const ENTITIES: usize = 4;
const WIDTHS: [i64; 4] = [1, 10, 60, 300];

struct Job {
    limits: Limits,
    paused: bool,
    able_since: Time,
}

struct Row {
    key: Key,
    occurrence: Occurrence,
    last: Option<Time>,
    stayed: bool,
    held: bool,
    able_since: Time,
    run: Option<workers::Run>,
}

pub struct World {
    dice: Dice,
    now: Time,
    mono: i64,
    width: Width,
    jobs: Vec<Job>,
    terms: BTreeMap<Key, Terms>,
    rows: BTreeMap<u64, Row>,
    next_id: u64,
    ledger: Ledger,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let now = FIRST + TimeDelta::days(3);
        let width = crate::world::width(dice.pick(&WIDTHS));
        let jobs = (0..JOBS).map(|number| job(number, width, now)).collect();
        let ledger = Ledger::default();
        Self { dice, now, mono: 0, width, jobs, terms: BTreeMap::new(), rows: BTreeMap::new(), next_id: 0, ledger }
    }

    fn step(&mut self) {
        match self.dice.below(1000) {
            0..250 => self.time_passes(),
            250..920 => self.a_worker_acts(),
            920..990 => self.a_client_acts(),
            _ => self.something_goes_wrong(),
        }
        let mut keys: Vec<_> = self.rows.values().map(|row| row.key).collect();
        keys.sort_unstable();
        assert!(keys.iter().eq(self.terms.keys()), "P11: repetitions of {:?}, checks of {keys:?}", self.terms.keys());
    }

    fn time_passes(&mut self) {
        let first = self.rows.values().filter(|row| !row.held).map(|row| row.occurrence.check.slot).min();
        let to_slot =
            first.map_or(TimeDelta::zero(), |slot| slot - self.now).clamp(TimeDelta::zero(), TimeDelta::hours(1));
        let time = if self.dice.one_in(2) { to_slot } else { self.dice.millis(0, 20_000) };
        self.pass(time);
    }

    fn pass(&mut self, time: TimeDelta) {
        self.now += time;
        self.mono += time.num_microseconds().unwrap_or_default();
    }

    fn repetition(&self, key: Key) -> Repetition<&'static Changes> {
        self.terms[&key].repetition(self.width)
    }

    fn id_of(&self, key: Key) -> Option<u64> {
        self.rows.iter().find(|(_, row)| row.key == key).map(|(id, _)| *id)
    }

    fn goes_on(&mut self, id: u64, outcome: Outcome, next: Option<Time>, catch_up: bool) {
        let Some(row) = self.rows.remove(&id) else { panic!("check {id} ended twice") };
        let (key, terms) = (row.key, self.terms[&row.key]);
        if let Some(last) = row.last {
            self.ledger.booked(key, last, outcome);
        }
        let own = self.used_up(&row);
        let now = if catch_up { self.now - terms.catch_up } else { self.now };
        self.ledger.goes_on(key, own, &terms, self.width, now, next);
        self.ledger.tally.count(outcome.as_str());
        match next {
            Some(slot) => {
                self.ledger.tally.count(if slot <= self.now { "caught up" } else { "went on" });
                self.insert(key, Occurrence::new(slot), true, row.held);
            }
            None => self.is_over(key),
        }
    }

    fn used_up(&self, row: &Row) -> Time {
        let (terms, first) = (self.terms[&row.key], row.occurrence.first);
        match row.last {
            Some(last) => last.max(terms.last_delayed_by(first)),
            None => terms.last_delayed_by(self.width.floor(first)),
        }
    }

    fn is_over(&mut self, key: Key) {
        self.terms.remove(&key);
        self.ledger.is_over(key);
        self.ledger.tally.count("came to its end");
    }

    fn insert(&mut self, key: Key, occurrence: Occurrence, planned: bool, held: bool) {
        let last = planned.then(|| self.terms[&key].last_delayed_by(occurrence.first));
        let able_since = self.jobs[key.0].able_since;
        let row = Row { key, occurrence, last, stayed: false, held, able_since, run: None };
        self.rows.insert(self.next_id, row);
        self.next_id += 1;
    }
}

fn job(number: usize, width: Width, now: Time) -> Job {
    let limits = Limits {
        timeout: TimeDelta::minutes(30),
        max_checks: 2 + number as u32,
        max_horizon: TimeDelta::hours(2),
        retry_after: TimeDelta::seconds(40),
        on_missed: [OnMissed::Run, OnMissed::Run, OnMissed::NextSlot, OnMissed::Skip][number],
        max_lateness: (number == 1).then_some(TimeDelta::minutes(20)),
        ..Limits::defaults(width)
    };
    Job { limits, paused: false, able_since: now }
}

fn play(seed: u64, steps: u64) -> Tally {
    let _replay = crate::Replay { seed, steps };
    let mut world = World::new(seed);
    for _ in 0..steps {
        world.step();
        assert!(world.now < FIRST + TimeDelta::days(DAYS - 2), "the list of moments is too short");
    }
    world.ledger.tally
}

#[test]
fn a_million_steps_book_each_slot_of_a_repetition_once() {
    let steps = crate::from_environment("AWTY_SIM_STEPS").unwrap_or(10_000);
    if let Some(seed) = crate::from_environment("AWTY_SIM_SEED") {
        println!("seed {seed}, {steps} steps: {:?}", play(seed, steps));
        return;
    }
    let mut all = Tally::default();
    for seed in 0..100 {
        all.add(&play(seed, steps));
    }
    println!("{all:?}");
    let outcomes = Outcome::ALL.iter().filter(|outcome| **outcome != Outcome::Met).map(|outcome| outcome.as_str());
    for what in outcomes.chain(EVENTS) {
        assert!(all.of(what) > 0, "never: {what}");
    }
}

const EVENTS: [&str; 24] = [
    "run",
    "discarded",
    "killed",
    "asked again",
    "retried",
    "replaced by the next",
    "went on",
    "caught up",
    "came to its end",
    "clock jump",
    "restart",
    "slot changed",
    "stayed",
    "moved",
    "jitter changed",
    "moment kept by another jitter",
    "repeated",
    "repeated the same",
    "checked now",
    "checked now while due",
    "held",
    "paused",
    "scheduled inside",
    "cancelled inside",
];
