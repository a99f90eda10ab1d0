//! The benchmark: awty compared with alternatives and with PostgreSQL's own limits, all in one run.
//!
//! `bench [--full] [--scale FACTOR] [--only ROW,ROW]`, called by `make bench` and `make bench-full`. Each row creates
//! its own throwaway cluster and stores its results in `target/bench/<row>.json` (`target/bench/full` for the large
//! sizes). The page `docs/performance.md` is written from all of them.
//!
//! Invariant: every ratio compares two things measured in turn in the same run, as the median of at least five pairs.
//! Does not: fail because of slowness; it prints "short".

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)] // a program for developers: the panic is the report

mod again;
mod bulk;
mod chart;
mod cron;
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

use awty_testkit::checkout;
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

/// In the order of the report.
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
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}\nusage: bench [--full] [--scale FACTOR] [--only ROW,ROW] (run it by `make bench`)");
            return ExitCode::from(2);
        }
    };
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), String> {
    // Results of a try are meaningless, so they are stored separately, and the page in docs/ is not written.
    let root = checkout().canonicalize().map_err(|error| error.to_string())?;
    let run = machine::describe(options);
    let (kept, place) = match (options.is_try(), options.full) {
        (true, _) => ("target/bench/try", report::TEN_MINUTES),
        (false, true) => ("target/bench/full", report::LARGE),
        (false, false) if run.server.starts_with("PostgreSQL 17") => ("target/bench/17", report::ON_17),
        (false, false) => ("target/bench", report::TEN_MINUTES),
    };
    let kept = root.join(kept);
    std::fs::create_dir_all(&kept).map_err(|error| format!("{}: {error}", kept.display()))?;
    say(&format!("{}; {}; sizes: {}", run.machine, run.server, run.sizes));
    let (mut measured, mut failed) = (Vec::new(), Vec::new());
    for row in ROWS.iter().filter(|row| options.wants(row.name)) {
        say(&format!("== {}", row.name));
        let began = Instant::now();
        // A row that fails does not stop the others.
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
    let page = if options.is_try() { kept.join("performance.md") } else { root.join("docs/performance.md") };
    report::write(&kept, &page, &place)?;
    say(&format!("results are in {}, the page is {}", kept.display(), page.display()));
    if failed.is_empty() { Ok(()) } else { Err(format!("could not be measured: {}", failed.join(", "))) }
}
