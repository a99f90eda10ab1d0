//! Tests that each module of awty uses only permitted modules.
//!
//! A *room* is a top-level module. An *arrow* is a path, also in a macro's arguments, that names another module.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a panic is how a test fails

mod arrows;
mod gateway;
mod source;

use arrows::Arrows;
use source::{Source, root};
use std::collections::{BTreeMap, BTreeSet};

/// Each room (top-level module) may use only the rooms that come before it in this list.
const ORDER: &[&str] = &[
    "failpoint",
    "settings",
    "signature",
    "version",
    "pg",
    "process",
    "restore",
    "shmem",
    "error",
    "store",
    "function",
    "call",
    "calendar",
    "figures",
    "repeat",
    "quiet",
    "rule",
    "watch",
    "run",
    "launcher",
    "worker",
    "lease",
    "trial",
    "maintainer",
    "api",
];

/// No module of the first list may depend on a module of the second list, directly or through other modules.
const APART: &[(&[&str], &[&str], &str)] = &[
    (&["store"], &["shmem"], "the tables are read and written alike in every process"),
    (&["launcher"], &["store"], "the launcher is in no database, so it reads no table"),
    (&["worker"], &["launcher"], "a worker gets its orders through shared memory"),
    (&["api"], &["run", "worker", "launcher"], "a client's call knows no run"),
    (&["lease"], &["run::call", "worker", "launcher"], "an external worker makes the run"),
    (&["trial"], &["run::crash", "worker", "launcher"], "a trial is a run in a client's call"),
    (&["maintainer"], &["run::call", "worker", "launcher"], "the maintainer runs no checks"),
];

/// Names of crates, modules and types that awty-core must not use, because awty-core reads no clock and never waits.
const IMPURE: &[&str] = &["pgrx", "libc", "SystemTime", "Instant", "Local", "thread", "Mutex", "fs", "process"];

#[test]
fn no_circle_of_files() {
    let arrows = Arrows::of(Source::all("src"));
    let circles = arrows.circles();
    assert!(circles.is_empty(), "files in a circle:\n{}", circles.join("\n"));
}

#[test]
fn no_room_knows_a_higher_one() {
    let arrows = Arrows::of(Source::all("src"));
    let place = |source: &Source| ORDER.iter().position(|room| source.room().as_deref() == Some(room));
    let upward: Vec<String> = arrows
        .all()
        .filter(|(from, to)| from.room().is_some() && place(from) < place(to))
        .map(|(from, to)| format!("{} → {}", from.file, to.file))
        .collect();
    assert!(upward.is_empty(), "arrows up:\n{}", upward.join("\n"));
}

#[test]
fn rooms_that_stand_apart_do_not_know_each_other() {
    let arrows = Arrows::of(Source::all("src"));
    let mut broken = Vec::new();
    for (rooms, never, why) in APART {
        for (from, to) in rooms.iter().flat_map(|from| never.iter().map(move |to| (from, to))) {
            broken.extend(arrows.chain(from, to).map(|chain| format!("{chain}\n    but {why}")));
        }
    }
    assert!(broken.is_empty(), "walls with a hole:\n{}", broken.join("\n"));
}

#[test]
fn every_room_has_its_place() {
    let sources = Source::all("src");
    let rooms: BTreeSet<String> = sources.iter().filter_map(Source::room).collect();
    assert_eq!(rooms, ORDER.iter().map(|room| (*room).to_owned()).collect());
    let apart = APART.iter().flat_map(|(rooms, never, _)| rooms.iter().chain(*never));
    let missing: Vec<_> =
        apart.filter(|room| !sources.iter().any(|source| source.module.iter().eq(room.split("::")))).collect();
    assert!(missing.is_empty(), "no such room: {missing:?}");
}

#[test]
fn no_room_has_more_than_15_percent_of_src() {
    let mut lines = BTreeMap::<String, usize>::new();
    for source in Source::all("src") {
        *lines.entry(source.room().unwrap_or_default()).or_default() += source.lines;
    }
    let all: usize = lines.values().sum();
    let large: Vec<_> = lines.iter().filter(|(_, room)| *room * 100 > all * 15).collect();
    assert!(large.is_empty(), "of {all} lines: {large:?}");
}

#[test]
fn no_file_has_more_than_400_lines() {
    let all = ["src", "crates/awty-core", "crates/awty-testkit", "tests"].map(Source::all);
    let long: Vec<String> = all.iter().flatten().filter(|source| source.lines > 400).map(|s| s.file.clone()).collect();
    assert!(long.is_empty(), "split by idea: {}", long.join(", "));
}

/// Only `store` and `statements` may contain SQL, so that each statement is prepared and runs as awty's owner.
#[test]
fn sql_stands_among_statements_only() {
    let mut found = Vec::new();
    let has_sql = |source: &&Source| {
        source.module.iter().take(2).any(|room| room == "store" || room == "statements")
            || source.module == ["pg", "unbound"]
    };
    for source in Source::all("src").iter().filter(|source| !has_sql(source)) {
        let is_sql = |path: &&Vec<String>| {
            let declares = path.len() > 1 && path.last().is_some_and(|last| last == "statement");
            declares || path.iter().any(|segment| segment == "Spi" || segment.starts_with("SPI_"))
        };
        let written = |path: &Vec<String>| format!("{}: {}", source.file, path.join("::"));
        found.extend(source.paths().filter(is_sql).map(written));
    }
    assert!(found.is_empty(), "SQL outside of statements:\n{}", found.join("\n"));
}

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

/// pgrx makes a `String` from a text without checking that the text is UTF-8. Other encodings would cause undefined
/// behaviour.
#[test]
fn texts_from_sql_are_bytes() {
    let sources = Source::all("src");
    let found = |source: &Source| -> Vec<String> {
        source.strings.iter().map(|name| format!("{}: {name}", source.file)).collect()
    };
    let found: Vec<String> = sources.iter().flat_map(found).collect();
    assert!(found.is_empty(), "use Text instead of String or &str:\n{}", found.join("\n"));
}
