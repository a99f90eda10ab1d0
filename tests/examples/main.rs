//! psql executes each block of SQL in README.md and docs/, and must print the block of `text` that follows.
//!
//! A block that begins with `-- as a superuser` runs as `postgres`. Every other block runs as `app`.
//!
//! After a block that ends with `pg_sleep()`, the next query is repeated until it prints the output.

#![allow(clippy::unwrap_used, clippy::expect_used)] // in a test the panic is the report

mod page;
mod workers;

use awty_testkit::{Cluster, PATIENCE, poll};
use page::{Block, Page, pages};
use std::process::Stdio;
use std::time::Duration;

const SUPERUSER: &str = "-- as a superuser";

fn run(cluster: &Cluster, database: &str, block: &Block) -> Result<String, String> {
    let role = if block.sql.starts_with(SUPERUSER) { "postgres" } else { "app" };
    let mut psql = cluster.tool("psql");
    psql.args(["-Xq", "-v", "ON_ERROR_STOP=1", "-P", "pager=off", "-d", database, "-U", role, "-f", "-"]);
    psql.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = psql.spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), block.sql.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    if output.status.success() { Ok(tidy(&printed)) } else { Err(String::from_utf8_lossy(&output.stderr).into()) }
}

fn tidy(text: &str) -> String {
    text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

fn faults(cluster: &Cluster, page: &Page, database: &str) -> Vec<String> {
    cluster.execute("postgres", &[&format!("CREATE DATABASE {database} OWNER app")]);
    let creates =
        |block: &Block| block.sql.split("CREATE EXTENSION awty").skip(1).any(|rest| !rest.starts_with("_http;"));
    if !page.blocks.iter().any(creates) {
        cluster.execute(database, &["CREATE EXTENSION awty", "GRANT USAGE ON SCHEMA awty TO app"]);
    }
    let mut faults = Vec::new();
    let mut has_slept = false;
    for block in &page.blocks {
        let compared = || match (run(cluster, database, block), &block.printed) {
            (Ok(printed), Some(expected)) if printed != tidy(expected) => {
                Err(format!("printed\n{printed}\ninstead of\n{}", tidy(expected)))
            }
            (result, _) => result.map(|_| ()),
        };
        let patience = if has_slept && is_query(&block.sql) { PATIENCE } else { Duration::ZERO };
        if let Err(fault) = poll("the page's output", patience, compared) {
            faults.push(format!("{}:{}: {fault}", page.name, block.line));
        }
        has_slept = block.sql.lines().last().is_some_and(|line| line.contains("pg_sleep("));
    }
    faults
}

fn is_query(sql: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let calls = sql.split("awty.").skip(1).any(|rest| rest.trim_start_matches(is_word).starts_with('('));
    let mut statements = sql.split(';').map(str::trim).filter(|part| !part.is_empty() && !part.starts_with("--"));
    !calls && statements.all(|statement| statement.starts_with("SELECT"))
}

#[track_caller]
fn expect_true(cluster: &Cluster, pages: &[Page]) {
    let faults: Vec<String> =
        pages.iter().enumerate().flat_map(|(number, page)| faults(cluster, page, &format!("page_{number}"))).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

#[test]
fn the_readme_is_true_at_the_default_slot() {
    let cluster = Cluster::builder().set("awty.slot", "1min").set("awty.time_travel", "on").start();
    cluster.execute("postgres", &["CREATE ROLE app LOGIN"]);
    let readme: Vec<Page> = pages().into_iter().filter(|page| page.name == "README.md").collect();
    assert!(readme.iter().any(|page| !page.blocks.is_empty()), "the README has no SQL");
    expect_true(&cluster, &readme);
}

#[test]
fn each_page_of_the_docs_is_true() {
    let cluster = Cluster::builder().set("awty.time_travel", "on").start();
    cluster.execute("postgres", &["CREATE ROLE app LOGIN"]);
    let docs: Vec<Page> = pages().into_iter().filter(|page| page.name != "README.md").collect();
    expect_true(&cluster, &docs);
}
