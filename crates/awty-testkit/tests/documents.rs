//! If a document names a test as `file::test` in backticks, the test must exist. In docs/attacks.md, a bare name means
//! a test in the file that was named before it on the same line.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a panic is how a test fails

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};
use syn::{Attribute, ItemFn};

const FOLDERS: &[&str] = &[
    "tests/attacks",
    "tests/lifecycle",
    "tests/lifecycle/http",
    "tests/lifecycle/outside",
    "tests/lifecycle/repeat",
    "tests/lifecycle/watch",
    "tests/operations",
    "tests/upgrade",
    "crates/awty-core/src",
    "crates/awty-core/src/repeat",
    "crates/awty-core/src/watch",
    "crates/awty-core/tests",
    "crates/awty-gateway/src/db",
    "crates/awty-gateway/tests/gateway",
    "crates/awty-gateway/src",
    "crates/awty-gateway/src/api",
    "crates/awty-gateway/src/config",
    "crates/awty-gateway/src/deliver",
    "crates/awty-gateway/src/lease",
    "crates/awty-gateway/src/net",
    "crates/awty-gateway/src/page",
];

#[derive(Default)]
struct Tests(BTreeSet<String>);

impl<'ast> Visit<'ast> for Tests {
    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        // Compares only the last segment of the attribute's path, because the attribute may be `tokio::test`.
        let is_test = |attribute: &Attribute| attribute.path().segments.last().is_some_and(|last| last.ident == "test");
        if function.attrs.iter().any(is_test) {
            self.0.insert(function.sig.ident.to_string());
        }
        visit::visit_item_fn(self, function);
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
}

fn tests() -> BTreeMap<String, Tests> {
    let mut all = BTreeMap::<String, Tests>::new();
    for path in FOLDERS.iter().flat_map(|folder| files(folder, "rs")) {
        let parsed = syn::parse_file(&std::fs::read_to_string(&path).unwrap()).unwrap();
        all.entry(path.file_stem().unwrap().to_string_lossy().into_owned()).or_default().visit_file(&parsed);
    }
    all
}

fn in_file(text: &str) -> &str {
    match text.rsplitn(3, "::").nth(2) {
        Some(folder) => &text[folder.len() + 2..],
        None => text,
    }
}

/// A test's name has at least three words, unlike most other names in the code.
fn is_name(text: &str) -> bool {
    text.matches('_').count() >= 2 && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

#[test]
fn every_test_that_a_document_names_is_there() {
    let tests = tests();
    let mut missing = Vec::new();
    let mut documents = vec![root().join("DESIGN.md"), root().join("README.md"), root().join("CONTRIBUTING.md")];
    documents.extend(files("docs", "md"));
    documents.extend(["pg", "shmem"].map(|folder| root().join("src").join(folder).join("README.md")));
    let mut named = 0;
    for document in documents {
        let are_lists = document.ends_with("docs/attacks.md");
        for line in std::fs::read_to_string(&document).unwrap().lines() {
            let mut file = None;
            for text in quoted(line).map(in_file) {
                let (of, name) = match text.split_once("::") {
                    Some((of, name)) if tests.contains_key(of) || is_name(name) => (Some(of), name),
                    Some(_) => continue,
                    None if are_lists => (file, text),
                    None => continue,
                };
                file = of;
                let Some(of) = of.filter(|_| is_name(name) || name == "*") else { continue };
                named += 1;
                let found = tests.get(of).is_some_and(|tests| name == "*" || tests.0.contains(name));
                if !found {
                    missing.push(format!("{}: {of}::{name}", document.strip_prefix(root()).unwrap().display()));
                }
            }
        }
    }
    assert!(missing.is_empty(), "not there:\n{}", missing.join("\n"));
    assert!(named > 100, "documents name tests in another way by now: {named}");
}

#[test]
fn every_mutation_that_is_named_is_there() {
    let text = std::fs::read_to_string(root().join("src/pg/README.md")).unwrap();
    let named: Vec<&str> =
        text.split("mutation `").skip(1).map(|rest| rest.split('`').next().unwrap_or_default()).collect();
    assert!(named.len() > 5, "mutations are named in another way by now");
    let is_there = |name: &&&str| root().join("tests/campaign/mutations").join(format!("{name}.patch")).is_file();
    assert_eq!(named.iter().find(|name| !is_there(name)), None);
}

#[test]
fn every_attack_has_its_test() {
    let tests = tests();
    let regress: Vec<String> = files("tests/regress/sql", "sql")
        .iter()
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    let text = std::fs::read_to_string(root().join("docs/attacks.md")).unwrap();
    let mut rows = 0;
    for row in text.lines().filter(|line| is_row(line)) {
        let cell = row.split('|').nth(3).unwrap();
        let is_test = |text: &str| {
            let file = in_file(text).split("::").next().unwrap();
            tests.contains_key(file) || regress.iter().any(|name| name == text)
        };
        assert!(quoted(cell).any(is_test), "without a test: {row}");
        rows += 1;
    }
    assert!(rows > 40, "docs/attacks.md is written in another way by now: {rows} rows");
}

fn is_row(line: &str) -> bool {
    line.split('|').nth(1).is_some_and(|number| number.trim().parse::<u32>().is_ok()) && line.matches('|').count() == 5
}
