//! Puts load on awty, injects faults, and checks awty's promises (docs/promises.md).
//!
//! Usage: `campaign MINUTES SEED [FAULT …]`. A campaign cannot be repeated exactly, because the timing depends on the
//! machine.
//!
//! Invariant: the exit status is 0 only if every promise was kept and at least one fault succeeded.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a panic is how a test program fails

mod bad_calls;
mod checker;
mod deadline;
mod evidence;
mod faults;
mod integrity;
mod ledger;
mod left;
mod load;
mod meddle;
mod outside;
mod random;
mod repeat;
mod report;
mod set_up;
mod speed;
mod sqlsmith;
#[path = "../upgrade/mod.rs"]
mod upgrade;
mod watch;
mod watched;

use awty_testkit::postgres::{Client, Error};
use awty_testkit::{Cluster, PATIENCE, poll, target};
use checker::{Evidence, Violation, judge};
use faults::Fault;
use left::Left;
use load::{DATABASES, Shared, explain};
use random::Random;
use report::{Report, Run};
use speed::Mark;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const ROUND: Duration = Duration::from_secs(120);
const ZONES: [&str; 3] = ["UTC", "Europe/Berlin", "America/New_York"];

struct Campaign {
    seed: u64,
    only: Vec<String>,
    began: Instant,
    end: Instant,
    report: Report,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [upgrade, old, new] = arguments.as_slice()
        && upgrade == "upgrade"
    {
        upgrade::run(old.as_ref(), new.as_ref());
        return ExitCode::SUCCESS;
    }
    let number = |place: usize| arguments.get(place).and_then(|argument| argument.parse::<f64>().ok());
    let (Some(minutes), Some(seed)) = (number(0), number(1)) else {
        eprintln!("usage: campaign MINUTES SEED [FAULT ...] (run it by `make campaign`)");
        return ExitCode::from(2);
    };
    let began = Instant::now();
    let end = began + Duration::from_secs_f64(minutes * 60.0);
    let only: Vec<String> = arguments.into_iter().skip(2).collect();
    if let Some(unknown) = only.iter().find(|name| !faults::ALL.iter().any(|(fault, _)| fault.name() == **name)) {
        eprintln!("no such fault: {unknown}; there are (with their weights) {:?}", faults::ALL);
        return ExitCode::from(2);
    }
    if only.contains(&Fault::Sqlsmith.name()) && !sqlsmith::is_installed() {
        eprintln!("sqlsmith is not installed: scripts/setup test");
        return ExitCode::from(2);
    }
    let mut campaign = Campaign { seed: seed as u64, only, began, end, report: Report::default() };
    let mut round = 0;
    while round == 0 || Instant::now() + Duration::from_secs(20) < end {
        campaign.round(round);
        round += 1;
    }
    let seconds = campaign.began.elapsed().as_secs_f64();
    let commit = std::env::var("AWTY_COMMIT").unwrap_or_else(|_| "unknown".into());
    let run = Run { seed: campaign.seed, minutes: seconds / 60.0, commit };
    campaign.report.print(&run);
    keep(&campaign.report.tsv(&run, &chrono::Utc::now().format("%Y-%m-%dT%H:%M:%SZ").to_string()));
    bad_calls::summary().iter().chain(&sqlsmith::summary()).for_each(|line| println!("{line}"));
    faults::failpoint::summary().iter().for_each(|line| println!("{line}"));
    println!("the same choices again: make campaign MINUTES={minutes} SEED={seed}");
    let clean = campaign.report.violations() == 0 && campaign.report.faults() > 0;
    if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn read(shared: &Shared, number: usize, database: &str, movable_clock: bool) -> Result<Evidence, String> {
    let read = || {
        let told = shared.told[number].lock().unwrap().clone();
        let mut client = shared.connect(database, "postgres").map_err(explain)?;
        evidence::read(&mut client, told, movable_clock).map_err(explain)
    };
    poll("the database to be read", PATIENCE, read)
}

fn keep(lines: &str) {
    let file = target().join("campaign-results.tsv");
    let opened = std::fs::OpenOptions::new().create(true).append(true).open(&file);
    if let Err(error) = opened.and_then(|mut file| file.write_all(lines.as_bytes())) {
        eprintln!("{}: {error}", file.display());
    }
}

impl Campaign {
    fn round(&mut self, round: u64) {
        let seed = self.seed.wrapping_add(round.wrapping_mul(1_000_003));
        let end = self.end.min(Instant::now() + ROUND);
        let movable_clock = self.has_movable_clock(round);
        let builder = Cluster::builder().with_failing_disk();
        let builder = if movable_clock { builder.with_movable_clock() } else { builder };
        let mut cluster = builder
            .set("log_line_prefix", "%m [%p] %b %e %q%u@%d ")
            .set("timezone", ZONES[round as usize % ZONES.len()])
            .set("track_commit_timestamp", "on")
            .set("deadlock_timeout", "200ms")
            .set("max_worker_processes", "32")
            // The shared buffers are so small that pages of other tables soon replace awty's pages.
            .set("shared_buffers", "16MB")
            .set("awty.max_workers", "24") // enough for a second worker of each role
            .set("awty.max_workers_per_role", "4")
            .set("awty.max_crashes", &faults::MAX_CRASHES.to_string())
            .set("awty.history_retention", "0")
            .start();
        set_up::set_up(&cluster);
        let shared = Shared::new(cluster.socket_directory());
        let mut threads = shared.start(seed);
        threads.push(watch::start(&shared));
        threads.extend(watched::start(&shared, seed, movable_clock));
        let workers = outside::start(&shared, seed);
        let mut random = Random::new(seed, 0);
        let mut first = true;
        println!("round {round}, seed {seed}{}", if movable_clock { ", with a clock that is set" } else { "" });
        while Instant::now() < end {
            let at_most = *random.pick(&[200, 1500]);
            std::thread::park_timeout(Duration::from_millis(random.below(at_most)));
            let fault = self.choose(&mut random, movable_clock, std::mem::take(&mut first));
            let mark = Mark::new(&cluster, &shared);
            let came_about = fault.strike(&mut cluster, &shared, &mut random);
            self.report.struck(fault, came_about);
            let since = Instant::now();
            if let Err(what) = faults::recover(&shared) {
                shared.saw("P3", what);
            }
            let speed = speed::measure(&cluster, &shared, &mark, since);
            if came_about {
                self.report.recovered(fault, speed);
            }
            shared.look_for_faults_of(&cluster);
            self.check(Some(fault), round, &shared, movable_clock, speed.all, None);
        }
        shared.over.store(true, Ordering::Relaxed);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let since = Instant::now();
        if let Err(what) = faults::recover(&shared) {
            shared.saw("P3", what);
        }
        let waited = since.elapsed().as_secs_f64();
        if let Err(what) = outside::finish(&shared) {
            shared.saw("P14", what);
        }
        shared.closed.store(true, Ordering::Relaxed);
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        println!("{}", shared.outside.line());
        let left = faults::tidy(&shared);
        for what in DATABASES.iter().flat_map(|database| integrity::verify(&shared, database)) {
            shared.saw("integrity", what);
        }
        shared.look_for_faults_of(&cluster);
        self.check(None, round, &shared, movable_clock, waited, Some(left));
        self.count(&shared);
        if self.report.violations() > 0 {
            let log = target().join(format!("campaign-{}-{round}.log", self.seed));
            match std::fs::copy(cluster.log_file(), &log) {
                Ok(_) => println!("the server's log: {}", log.display()),
                Err(error) => eprintln!("{}: {error}", log.display()),
            }
        }
    }

    /// Faults set the server's clock only in every second round, because after these faults the checker can compare
    /// fewer timestamps.
    fn has_movable_clock(&self, round: u64) -> bool {
        match self.only.is_empty() {
            true => round % 2 == 1,
            false => self.only.iter().any(|name| name.starts_with("SetClock")),
        }
    }

    fn choose(&self, random: &mut Random, movable_clock: bool, first: bool) -> Fault {
        let asked = |fault: Fault| match self.only.is_empty() {
            true => !fault.is_costly() && (!first || fault.shrinks()),
            false => self.only.contains(&fault.name()),
        };
        let chosen = Fault::any(random, |fault| fault.is_for(movable_clock) && asked(fault));
        chosen.expect("a round is made for what was asked")
    }

    fn check(
        &mut self,
        fault: Option<Fault>,
        round: u64,
        shared: &Arc<Shared>,
        movable_clock: bool,
        waited: f64,
        left: Option<[Option<Left>; DATABASES.len()]>,
    ) {
        for violation in shared.seen.lock().unwrap().drain(..) {
            self.report.violated(fault, &format!("round {round}"), &violation);
        }
        let mut counts = [0; 4];
        for (number, database) in DATABASES.iter().enumerate() {
            let place = format!("round {round}, database {database}");
            let mut evidence = match read(shared, number, database, movable_clock) {
                Ok(evidence) => evidence,
                Err(what) => {
                    self.report.violated(fault, &place, &Violation { promise: "integrity", check: 0, what });
                    continue;
                }
            };
            evidence.left = left.as_ref().and_then(|left| left[number].clone());
            evidence.struck = shared.struck[number].lock().unwrap().clone();
            evidence.ledger = shared.ledger[number].lock().unwrap().clone();
            for violation in judge(&evidence) {
                self.report.violated(fault, &place, &violation);
            }
            let held = evidence.pending.iter().filter(|row| row.held).count();
            let here = [evidence.ended.len(), evidence.effects.len(), evidence.pending.len(), held];
            counts.iter_mut().zip(here).for_each(|(all, here)| *all += here as u64);
        }
        let [ended, effects, pending, held] = counts;
        let name = fault.map_or("(end)".into(), Fault::name);
        println!(
            "{:>5.0} s  {name:<18} caught up in {waited:>4.1} s  {ended} ended, {effects} effects, {pending} pending, {held} held, \
             {} transactions unknown, {} violations",
            self.began.elapsed().as_secs_f64(),
            shared.unknown.load(Ordering::Relaxed),
            self.report.violations(),
        );
    }

    fn count(&mut self, shared: &Shared) {
        let report = &mut self.report;
        report.rounds += 1;
        report.actions += shared.actions.load(Ordering::Relaxed);
        report.unknown += shared.unknown.load(Ordering::Relaxed);
        shared.timed.lock().unwrap().drain(..).for_each(|(what, seconds)| report.timed(what, seconds));
        for database in DATABASES {
            let counted = shared.connect(database, "postgres").and_then(|mut client| count_in(&mut client, report));
            if let Err(error) = counted {
                println!("database {database} cannot be counted: {error:?}");
            }
        }
    }
}

fn count_in(client: &mut Client, report: &mut Report) -> Result<(), Error> {
    for row in client.query("SELECT outcome, count(*) FROM awty.future_job_history GROUP BY 1", &[])? {
        *report.outcomes.entry(row.get(0)).or_default() += row.get::<_, i64>(1) as u64;
    }
    let row = client.query_one("SELECT count(*), current_setting('server_version') FROM camp.effect", &[])?;
    report.effects += row.get::<_, i64>(0) as u64;
    report.server = row.get(1);
    report.alerts += client.query_one("SELECT count(*) FROM awty.alert", &[])?.get::<_, i64>(0) as u64;
    let sql = "SELECT extract(epoch FROM run_time / attempts - j.timeout)::float8
               FROM awty.future_job_history AS h JOIN awty.job AS j ON j.job = h.job
               WHERE outcome = 'timed_out' AND check_count = 0 AND attempts = j.max_attempts AND j.function_name IS NOT NULL";
    let over = "a run over its timeout was gone, after that";
    client.query(sql, &[])?.iter().for_each(|row| report.timed(over, row.get(0)));
    Ok(())
}
