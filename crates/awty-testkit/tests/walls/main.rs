//! The walls between awty's modules: who may know whom. DESIGN.md draws them; here they are held.
//!
//! Invariant: an arrow is a path in the source that names another module, also inside a macro's arguments.
//! Does not: see methods, which name no module. A file that gets a value of another one's type has named it somewhere.

#![allow(clippy::unwrap_used, clippy::expect_used)] // in a test the panic is the report

mod arrows;
mod gateway;
mod source;

use arrows::Arrows;
use source::{Source, root};

/// Who must not know whom, not even through others, and why.
const WALLS: &[(&[&str], &[&str], &str)] = &[
    (
        &["pg"],
        &["error", "shmem", "store", "function", "crash", "repeat", "api", "run", "worker", "launcher", "maintainer"],
        "PostgreSQL's functions know nothing of awty",
    ),
    (
        &["shmem"],
        &["store", "function", "crash", "repeat", "api", "run", "worker", "launcher", "maintainer"],
        "shared memory reads no table and decides nothing",
    ),
    (
        &["error", "version", "settings", "failpoint", "takes", "restore"],
        &["shmem", "store", "function", "crash", "repeat", "api", "run", "worker", "launcher", "maintainer"],
        "everybody needs these, so they need nobody",
    ),
    (
        &["store"],
        &["shmem", "function", "crash", "repeat", "api", "run", "worker", "launcher", "maintainer"],
        "the tables know no run",
    ),
    (&["function", "crash"], &["repeat", "api", "run", "worker", "launcher", "maintainer"], "they run nothing"),
    (
        &["repeat"],
        &["function", "crash", "api", "run", "worker", "launcher", "maintainer"],
        "what comes next does not depend on who runs it",
    ),
    (&["watch"], &["crash", "api", "run", "worker", "launcher", "maintainer"], "a rule's checks are any job's checks"),
    (
        &["problem"],
        &["function", "crash", "repeat", "api", "run", "worker", "launcher", "maintainer"],
        "failures are told to it",
    ),
    (&["api"], &["crash", "run", "worker", "launcher", "maintainer"], "a client's call knows no run"),
    (
        &["launcher"],
        &["store", "function", "crash", "repeat", "api", "run", "worker", "maintainer"],
        "the launcher is in no database and runs nothing",
    ),
    (&["maintainer"], &["api", "run::call", "worker", "launcher"], "the maintainer runs no checks"),
    (&["outside"], &["run::call", "worker", "launcher", "maintainer"], "what runs elsewhere is not run here"),
    (&["run"], &["api", "crash", "worker", "launcher", "maintainer"], "a run does not choose what is run"),
    (&["trying", "travel"], &["crash", "worker", "launcher", "maintainer"], "a trial is a client's call of a run"),
    (&["worker"], &["api", "launcher", "maintainer"], "a worker is told what to do through shared memory"),
];

/// What would let awty-core read a clock or wait. Its own [`chrono`] is built without a clock; this holds the rest.
const IMPURE: &[&str] = &["pgrx", "libc", "SystemTime", "Instant", "Local", "thread", "Mutex", "fs", "process"];

/// Two files that know each other are one file in two pieces.
#[test]
fn no_circle_of_files() {
    let arrows = Arrows::of(Source::all("src"));
    let circles = arrows.circles();
    assert!(circles.is_empty(), "files in a circle:\n{}", circles.join("\n"));
}

#[test]
fn no_module_knows_one_behind_a_wall() {
    let arrows = Arrows::of(Source::all("src"));
    let mut broken = Vec::new();
    for (rooms, never, why) in WALLS {
        for (from, to) in rooms.iter().flat_map(|from| never.iter().map(move |to| (from, to))) {
            broken.extend(arrows.chain(from, to).map(|chain| format!("{chain}\n    but {why}")));
        }
    }
    assert!(broken.is_empty(), "walls with a hole:\n{}", broken.join("\n"));
}

/// A wall around a module that is not there, or a new module without one, protects nothing.
#[test]
fn every_module_has_its_wall() {
    let mut rooms: Vec<String> = Source::all("src").iter().filter_map(|source| source.room()).collect();
    rooms.sort();
    rooms.dedup();
    let mut walled: Vec<&str> = WALLS.iter().flat_map(|(rooms, ..)| rooms.iter().copied()).collect();
    walled.sort_unstable();
    assert_eq!(rooms, walled);
    let unknown = WALLS
        .iter()
        .flat_map(|(_, never, _)| never.iter())
        .find(|room| !walled.contains(&room.split("::").next().unwrap()));
    assert_eq!(unknown, None);
}

/// What does not fit into that has more than one idea in it.
#[test]
fn no_file_has_more_than_400_lines() {
    let all = ["src", "crates/awty-core", "crates/awty-testkit", "tests"].map(Source::all);
    let long: Vec<String> = all.iter().flatten().filter(|source| source.lines > 400).map(|s| s.file.clone()).collect();
    assert!(long.is_empty(), "split by idea: {}", long.join(", "));
}

/// One module has all statements, so that each is prepared, qualified and run as the owner. VACUUM, which SPI does not know, is in `pg`.
#[test]
fn sql_stands_in_store_only() {
    let mut found = Vec::new();
    for source in Source::all("src").iter().filter(|source| source.room().as_deref() != Some("store")) {
        let is_sql = |path: &&Vec<String>| {
            let declares = path.len() > 1 && path.last().is_some_and(|last| last == "statement");
            declares || path.iter().any(|segment| segment == "Spi" || segment.starts_with("SPI_"))
        };
        let written = |path: &Vec<String>| format!("{}: {}", source.file, path.join("::"));
        found.extend(source.paths().filter(is_sql).map(written));
    }
    assert!(found.is_empty(), "SQL outside of src/store:\n{}", found.join("\n"));
}

/// Every decision gets the time as an argument, so that it can be tested at any time.
#[test]
fn awty_core_knows_neither_postgresql_nor_a_clock() {
    let mut found = Vec::new();
    for source in Source::all("crates/awty-core/src") {
        for path in source.paths() {
            let reads_clock = path.windows(2).any(|pair| pair[0] == "Utc" && pair[1] == "now");
            if reads_clock || path.iter().any(|segment| IMPURE.contains(&segment.as_str())) {
                found.push(format!("{}: {}", source.file, path.join("::")));
            }
        }
    }
    assert!(found.is_empty(), "awty-core is not pure:\n{}", found.join("\n"));
    let manifest = std::fs::read_to_string(root().join("crates/awty-core/Cargo.toml")).unwrap();
    let chrono = manifest.lines().find(|line| line.starts_with("chrono")).unwrap();
    assert!(chrono.contains("default-features = false") && !chrono.contains("clock") && !chrono.contains("now"));
}
