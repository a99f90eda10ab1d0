#![allow(clippy::unwrap_used, clippy::expect_used)] // a panic is how a test fails

use std::path::{Path, PathBuf};
use std::process::Command;

const WIDTH: usize = 140;

const WIDER: &[&str] =
    &["docs/attacks.md", "docs/failover.md", "docs/gateway.md", "docs/neighbours.md", "docs/reliability.md"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Returns all Markdown files, including new files that are not committed yet.
fn pages() -> Vec<(String, String)> {
    let list = ["ls-files", "--cached", "--others", "--exclude-standard", "*.md"];
    let files = Command::new("git").current_dir(root()).args(list).output().unwrap();
    let pages = String::from_utf8(files.stdout).unwrap();
    let read = |name: &str| Some((name.to_owned(), std::fs::read_to_string(root().join(name)).ok()?));
    let pages: Vec<_> = pages.lines().filter_map(read).collect();
    assert!(pages.len() > 15, "no pages: {pages:?}");
    pages
}

fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    text.lines().enumerate().filter_map(move |(number, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        (!is_code && !is_fence).then_some((number + 1, line))
    })
}

fn is_row(line: &str) -> bool {
    line.trim_start().starts_with('|')
}

fn long_lines(name: &str, text: &str) -> Vec<String> {
    let lines = text.lines().enumerate().filter(|(_, line)| line.chars().count() > WIDTH && !is_row(line));
    lines.map(|(number, line)| format!("{name}:{}: {} columns", number + 1, line.chars().count())).collect()
}

fn links(text: &str) -> impl Iterator<Item = (usize, &str)> {
    prose(text).flat_map(|(number, line)| {
        // If an odd number of backticks precedes a position, the position is inside of code.
        let starts = line.match_indices("](").filter(|(at, _)| line[..*at].matches('`').count() % 2 == 0);
        starts.filter_map(move |(at, _)| Some((number, line[at + 2..].split_once(')')?.0)))
    })
}

fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn has_anchor(text: &str, wanted: &str) -> bool {
    prose(text).any(|(_, line)| line.starts_with('#') && anchor(line) == wanted)
}

fn fault(name: &str, text: &str, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, wanted) = link.split_once('#').map_or((link, None), |(path, wanted)| (path, Some(wanted)));
    let target = root().join(name).parent().unwrap().join(path);
    if !path.is_empty() && !target.exists() {
        return Some(format!("{path} is not there"));
    }
    let wanted = wanted?;
    let found = match path {
        "" => has_anchor(text, wanted),
        _ => has_anchor(&std::fs::read_to_string(target).unwrap_or_default(), wanted),
    };
    (!found).then(|| format!("no heading has the anchor #{wanted}"))
}

fn dead_links(name: &str, text: &str) -> Vec<String> {
    let faults = links(text).filter_map(|(number, link)| Some((number, link, fault(name, text, link)?)));
    faults.map(|(number, link, why)| format!("{name}:{number}: {link}: {why}")).collect()
}

#[test]
fn no_line_is_too_long() {
    let narrow = pages().into_iter().filter(|(name, _)| !WIDER.contains(&name.as_str()));
    let long: Vec<String> = narrow.flat_map(|(name, text)| long_lines(&name, &text)).collect();
    assert!(long.is_empty(), "more than {WIDTH} columns:\n{}", long.join("\n"));
}

#[test]
fn no_link_is_dead() {
    let dead: Vec<String> = pages().iter().flat_map(|(name, text)| dead_links(name, text)).collect();
    assert!(dead.is_empty(), "dead links:\n{}", dead.join("\n"));
}

#[test]
fn the_first_pages_stay_short() {
    let text = |name: &str| std::fs::read_to_string(root().join(name)).unwrap();
    let (readme, design) = (text("README.md").lines().count(), text("DESIGN.md").split_whitespace().count());
    assert!(readme <= 120, "README.md has {readme} lines: move something into docs/");
    assert!(design <= 3000, "DESIGN.md has {design} words: write about a file in the file");
}

#[test]
fn bad_pages_are_found() {
    let wide = "x".repeat(WIDTH + 1);
    assert_eq!(long_lines("a.md", &format!("# a\n{wide}\n| {wide} |")).len(), 1);
    let page = "# A heading: here\n[a](#a-heading-here) [b](#b) [c](docs/no.md) [d](README.md) [e](README.md#no)\n`[f](no.md)`\n```\n[g](no.md)\n```";
    let dead = dead_links("a.md", page);
    assert_eq!(dead.len(), 3, "{dead:?}");
    assert!(["#b:", "docs/no.md:", "README.md#no:"].iter().all(|link| dead.iter().any(|dead| dead.contains(link))));
}

#[test]
fn the_files_to_open_exist() {
    let text = std::fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let table = text.split("## To change X, open Y").nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap();
    let rows: Vec<&str> = table.lines().filter(|line| is_row(line)).skip(2).collect();
    let files = rows.iter().flat_map(|row| row.split('|').nth(2).unwrap().split('`').skip(1).step_by(2));
    let missing: Vec<&str> = files.filter(|file| !root().join(file).is_file()).collect();
    assert!(rows.len() >= 30 && missing.is_empty(), "{} rows; these files do not exist: {missing:?}", rows.len());
}
