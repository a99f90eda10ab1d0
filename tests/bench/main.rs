//! `bench [--full] [--scale FACTOR] [--only ROW,ROW]` measures rows of the results table. `bench pages` writes the
//! pages in `docs/` from `docs/results/*.json`. [`calls`], [`cpu`] and [`deadlines`] have their own commands.
//!
//! Invariant: a ratio is the median of at least five pairs. The two values of a pair are measured directly after each
//! other.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a panic reports the failure

mod again;
mod bulk;
mod calls;
mod chart;
mod cpu;
mod cron;
mod deadlines;
mod idle;
mod insert;
mod late;
mod machine;
mod many;
mod minute;
mod options;
mod outside;
mod pending;
mod progress;
mod report;
mod results;
mod rivals;
mod shop;
mod size;
mod stats;
mod targets;
mod walk;
mod watch;
mod work;

use options::Options;
use progress::say;
use results::Outcome;
use std::process::ExitCode;
use std::time::Instant;

pub struct Row {
    pub name: &'static str,
    measure: fn(&Options) -> Outcome,
}

const fn row(name: &'static str, measure: fn(&Options) -> Outcome) -> Row {
    Row { name, measure }
}

pub const ROWS: &[Row] = &[
    row("ceiling", work::ceiling),
    row("set", work::set),
    row("workers", work::workers),
    row("rivals", rivals::rivals),
    row("insert", insert::insert),
    row("bulk", bulk::bulk),
    row("watch", watch::watch),
    row("walk", walk::walk),
    row("pending", pending::pending),
    row("snapshot", pending::snapshot),
    row("late", late::late),
    row("idle", idle::idle),
    row("churn", size::churn),
    row("memory", size::memory),
    row("cron", cron::cron),
    row("again", again::again),
    row("minute", minute::minute),
    row("entity", many::entity),
    row("roles", many::roles),
    row("fairness", many::fairness),
    row("outside", outside::outside),
    row("targets", targets::targets),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["pages"] {
        return exit(report::write_all());
    }
    if let Some(done) = cpu::run(&arguments) {
        return exit(done);
    }
    if let Some(done) = calls::run(&arguments) {
        return exit(done);
    }
    let options = match Options::parse(arguments.into_iter()) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}\nusage: bench [--full] [--scale FACTOR] [--only ROW,ROW] (run it by `make bench`)");
            eprintln!(
                "       bench soak|skew|speed|page|page-twin|rest [--schedules N] [--minutes M] [--rounds R]\n       bench pages\n       \
                 bench compare STAGE STAGE PAIRS"
            );
            return ExitCode::from(2);
        }
    };
    exit(run(&options))
}

fn exit(done: Result<(), String>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), String> {
    let run = machine::describe(options);
    let page = match options.full {
        true if !options.is_try() => &report::LARGE,
        false if run.server.starts_with("PostgreSQL 17") => &report::ON_17,
        _ => &report::TEN_MINUTES,
    };
    let kept = page.results(options.is_try())?;
    say(&format!("{}; {}; sizes: {}", run.machine, run.server, run.sizes));
    let (mut measured, mut failed) = (Vec::new(), Vec::new());
    for row in ROWS.iter().filter(|row| options.wants(row.name)) {
        say(&format!("== {}", row.name));
        let began = Instant::now();
        let Ok(mut outcome) = std::panic::catch_unwind(|| (row.measure)(options)) else {
            say(&format!("{} FAILED; its last results stay", row.name));
            failed.push(row.name);
            continue;
        };
        outcome.seconds = began.elapsed().as_secs_f64();
        outcome.run = Some(run.clone());
        results::save(&kept, &outcome)?;
        measured.push(outcome);
    }
    println!("\n{}", report::table(&measured));
    let page = page.write(options.is_try())?;
    say(&format!("results are in {}, the page is {}", kept.display(), page.display()));
    if failed.is_empty() { Ok(()) } else { Err(format!("could not be measured: {}", failed.join(", "))) }
}
