//! Invariant: docs/reference.md describes each function, column, setting, outcome and error.

#![allow(clippy::expect_used)] // a panic is how the generator fails

mod catalog;
mod errors;

use crate::markdown::{paragraph, table};
use crate::{Cluster, checkout};
use std::fmt::Write as _;
use std::path::PathBuf;

const GROUPS: &[(&str, &[&str])] = &[
    ("Jobs", &["register", "alter", "unregister", "pause", "resume", "allow", "disallow"]),
    (
        "Checks",
        &["schedule", "schedule_many", "cancel", "cancel_many", "check_now", "hold", "release", "key", "next_slot"],
    ),
    ("Watching a table", &["watch", "unwatch"]),
    ("Repeating", &["repeat", "occurrences"]),
    ("Calendars", &["create_calendar", "drop_calendar", "due", "open_time"]),
    ("Seeing", &["explain", "doctor", "healthy", "forecast"]),
    ("Trying and testing", &["dry_run", "travel", "now"]),
    ("This database", &["adopt"]),
    (
        "External workers",
        &[
            "claim",
            "complete",
            "fail",
            "complete_many",
            "fail_many",
            "heartbeat",
            "requeue",
            "next_claim_in",
            "alter_target",
        ],
    ),
];

const HTTP: &[&str] = &["schedule", "unschedule", "send", "add_tenant", "drop_tenant", "create_token", "drop_token"];

const HEAD: &str = "\
# Reference

Which arguments, defaults, ranges, columns and errors are there? This page is generated: `make reference` writes it
from the catalog and the source, and a test compares. [jobs.md](jobs.md) explains the words.

[Functions](#functions) · [Options of a job](#options-of-a-job) · [Tables and views](#tables-and-views) ·
[Settings](#settings) · [Outcomes](#outcomes) · [Errors](#errors) · [Extension awty_http](#extension-awty_http)
";

pub fn page() -> PathBuf {
    checkout().join("docs/reference.md")
}

pub fn reference() -> String {
    let cluster = Cluster::builder().start();
    cluster.create_extension("postgres");
    cluster.execute("postgres", &["CREATE EXTENSION awty_http"]);
    let mut client = cluster.superuser("postgres");
    let mut page = HEAD.to_owned();

    page += "\n## Functions\n";
    page += &paragraph(
        "Arguments with a default may be left out. Pass all arguments after the first ones by name, as in `after => '3 hours'`.",
    );
    let functions = catalog::functions(&mut client, "awty");
    for (heading, names) in GROUPS {
        let _ = write!(page, "\n### {heading}\n");
        for name in *names {
            page += &catalog::function(&functions, name);
        }
    }
    expect_all(&functions, &GROUPS.iter().flat_map(|(_, names)| *names).copied().collect::<Vec<_>>());

    page += "\n## Options of a job\n";
    page += &paragraph(
        "`awty.register()` sets them, `awty.alter()` changes them, and `awty.alter(job, reset => '{slot}')` puts one back to its default. `run_as` is the caller if it is left out. `replace => true` gives a job that exists another definition.",
    );
    page += &catalog::options(&mut client, &functions);

    page += "\n## Tables and views\n";
    page += &paragraph(
        "All roles may read them. Row security shows the rows of the jobs that a role may read. Only functions write them.",
    );
    page += &catalog::relations(&mut client, "awty");

    page += "\n## Settings\n";
    page += &paragraph(
        "All are set in `postgresql.conf`, by a superuser's `ALTER SYSTEM` or on the server's command line. The context `sighup` means: takes effect with a reload.",
    );
    page += &catalog::settings(&mut client);

    page += "\n## Outcomes\n";
    page += &paragraph(
        "Each check ends with exactly one outcome. A *problem* is an outcome that `notify`, the log and `keep_history => 'problems'` tell of.",
    );
    page += &errors::outcomes();

    page += "\n## Errors\n";
    page +=
        &paragraph("An ellipsis replaces the parts that depend on the call. A hint that is a statement can be pasted.");
    page += &table(&["SQLSTATE", "message", "hint"], &errors::of_the_library(&cluster));

    page += "\n## Extension awty_http\n";
    page += &paragraph("[gateway.md](gateway.md) explains endpoints, tenants and the gateway.");
    let functions = catalog::functions(&mut client, "awty_http");
    page += "\n### Functions of awty_http\n";
    for name in HTTP {
        page += &catalog::function(&functions, name);
    }
    expect_all(&functions, HTTP);
    page += "\n### Tables and views of awty_http\n";
    page += &catalog::relations(&mut client, "awty_http");
    page += "\n### Errors of awty_http\n";
    page += &table(&["SQLSTATE", "message", "hint"], &errors::of_awty_http());
    page
}

fn expect_all(functions: &[catalog::Function], known: &[&str]) {
    let missing: Vec<&str> =
        functions.iter().map(|function| function.name.as_str()).filter(|name| !known.contains(name)).collect();
    assert!(missing.is_empty(), "name a group in crates/awty-testkit/src/reference for {missing:?}");
}
