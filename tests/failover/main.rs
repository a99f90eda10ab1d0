//! Counts the orders that are lost in failovers, in restores, and in a move to another server.
//!
//! Usage: `failover MINUTES SEED [EVENT …]`. With 0 minutes, each named event happens once.
//!
//! Invariant: the exit status is 0 only if an event happened, and awty lost no order, handled no order twice and missed
//! no late order.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a panic reports the failure

mod events;
mod judge;
mod marks;
mod member;
mod moves;
mod orders;
mod place;
#[allow(dead_code)] // only the campaign uses the other functions
#[path = "../campaign/random.rs"]
mod random;
mod reaper;
mod report;
mod restore;
mod rows;

use awty_testkit::checkout;
use chrono::Utc;
use events::{ALL, Event, shuffled};
use judge::Evidence;
use marks::{Listeners, Log};
use moves::to_another_server;
use orders::Desk;
use place::{Mode, Place};
use random::Random;
use reaper::pass;
use report::Report;
use restore::restore;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_secs(6);
/// Minimum duration, in minutes, of a test whose results replace docs/failover.md.
const USUAL_MINUTES: f64 = 9.0;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize| arguments.get(place).and_then(|argument| argument.parse::<f64>().ok());
    let (Some(minutes), Some(seed)) = (number(0), number(1)) else {
        eprintln!("usage: failover MINUTES SEED [EVENT ...] (run it by `make failover`)");
        return ExitCode::from(2);
    };
    let mut chosen = Vec::new();
    for name in &arguments[2..] {
        let Some(event) = ALL.into_iter().find(|event| event.name() == *name) else {
            eprintln!("no such event: {name}; there are {ALL:?}");
            return ExitCode::from(2);
        };
        chosen.push(event);
    }
    let is_all = chosen.is_empty();
    let events = if is_all { ALL.to_vec() } else { chosen };
    let modes: &[Mode] = if minutes == 0.0 { &[Mode::Synchronous] } else { &[Mode::Synchronous, Mode::Asynchronous] };
    let mut report = Report::default();
    for (number, mode) in modes.iter().enumerate() {
        let end = Instant::now() + Duration::from_secs_f64(minutes * 60.0 / modes.len() as f64);
        let is_last = number + 1 == modes.len();
        let events = events.iter().copied().filter(|event| !event.is_once() || (*event == Event::Move) == is_last);
        let mut events: Vec<Event> = events.collect();
        if minutes == 0.0 {
            events = ALL.into_iter().filter(|event| arguments[2..].contains(&event.name())).collect();
        }
        let round = Round { mode: *mode, seed: seed as u64 + number as u64, end };
        if let Err(message) = round.run(&events, &mut report) {
            report.violations.push(format!("{}: the round did not end as it should: {message}", mode.name()));
        }
    }
    let results = report.results(minutes, seed as u64);
    println!("\n{}", results.tables());
    report.violations.iter().take(50).for_each(|what| println!("VIOLATION: {what}"));
    let folder = if is_all && minutes >= USUAL_MINUTES { "docs" } else { "target" };
    if let Err(error) = results.write(&checkout().join(folder)) {
        eprintln!("{error}");
    }
    println!("{} events, {} violations (the page: {folder}/failover.md)", report.events(), report.violations.len());
    let clean = report.violations.is_empty() && report.events() > 0;
    if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

struct Round {
    mode: Mode,
    seed: u64,
    end: Instant,
}

impl Round {
    fn say(&self, what: &str) {
        eprintln!("{} {}: {what}", Utc::now().format("%H:%M:%S"), self.mode.name());
    }

    fn run(&self, events: &[Event], report: &mut Report) -> Result<(), String> {
        self.say("three members start");
        let mut place = Place::open(self.mode)?;
        let desk = Desk::open(&place, self.seed);
        let listeners = Listeners::start(&place);
        self.say("orders come");
        pass(PAUSE);
        let mut random = Random::new(self.seed, 0);
        let mut next = shuffled(events, &mut random);
        next.extend(events.iter().filter(|event| event.is_once() && **event != Event::Move));
        while !next.is_empty() {
            for event in next {
                self.strike(event, &mut place, &desk, report)?;
                pass(PAUSE);
            }
            next = if Instant::now() < self.end { shuffled(events, &mut random) } else { Vec::new() };
        }
        self.finish(events, place, &desk, &listeners, report)
    }

    fn strike(&self, event: Event, place: &mut Place, desk: &Desk, report: &mut Report) -> Result<(), String> {
        self.say(&format!("{} ({} orders so far)", event.name(), desk.acknowledged()));
        let (began, at) = (Instant::now(), Utc::now());
        if event.is_once() {
            let found = restore(place, event)?;
            report.violated(self.mode, event, &found);
            report.struck(self.mode, event, began.elapsed().as_secs_f64(), Vec::new());
            return Ok(());
        }
        match event.strike(place) {
            Ok(()) => {
                let seconds = began.elapsed().as_secs_f64();
                pass(Duration::from_secs(2));
                let ready = logs(place).into_iter().flat_map(|log| log.ready).filter(|ready| ready.at >= at);
                let first_runs: Vec<f64> = ready.filter_map(|ready| ready.first_run).collect();
                self.say(&format!("whole again after {seconds:.1} s, first runs after {first_runs:.2?} s"));
                report.struck(self.mode, event, seconds, first_runs);
            }
            Err(message) => {
                self.say(&message);
                report.stuck(self.mode, event, &message);
                place.restart_patroni()?;
            }
        }
        Ok(())
    }

    fn finish(
        &self,
        events: &[Event],
        place: Place,
        desk: &Desk,
        listeners: &Listeners,
        report: &mut Report,
    ) -> Result<(), String> {
        let began = Instant::now();
        let rows = if events.contains(&Event::Move) {
            self.say("Move");
            let rows = to_another_server(&place, desk)?;
            report.struck(self.mode, Event::Move, began.elapsed().as_secs_f64(), Vec::new());
            rows
        } else {
            place.await_whole()?;
            desk.close()?;
            let mut client = place.primary()?;
            if let Err(message) = rows::await_alerts(&mut client) {
                self.say(&message);
            }
            rows::read(&mut client).map_err(|error| error.to_string())?
        };
        let (mut begun, mut ready) = (Vec::new(), Vec::new());
        for log in logs(&place) {
            begun.extend(log.begun);
            ready.extend(log.ready);
        }
        let is_synchronous = self.mode == Mode::Synchronous;
        let evidence = Evidence { is_synchronous, told: desk.told(), rows, begun, seen: listeners.close(), ready };
        self.say(&format!("{} orders are judged, {} runs were seen", evidence.rows.len(), evidence.seen.len()));
        report.judged(self.mode, evidence.judge());
        place.close();
        Ok(())
    }
}

fn logs(place: &Place) -> Vec<Log> {
    let read = |path| String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned();
    place.members.iter().map(|member| Log::read(&read(&member.log))).collect()
}
