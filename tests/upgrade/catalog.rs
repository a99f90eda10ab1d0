//! Installed equals installed before and updated, by the picture of the catalog in catalog.sql.
//!
//! Invariant: whatever one statement of an upgrade script does, the picture shows, or the script fails without it.

use crate::made_up::{self, HERE, NEXT, UPGRADE};
use awty_testkit::Cluster;
use awty_testkit::postgres::{Client, Error};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

type Picture = BTreeSet<String>;

/// A server without awty's processes, and where its upgrade scripts are. Default privileges show what a script has not revoked.
fn server() -> (Cluster, PathBuf) {
    let stage = made_up::stage(&made_up::next_library());
    let scripts = made_up::directory(&stage, "--sharedir").join("extension");
    let cluster = Cluster::builder().stage(&stage).without_preload().start();
    cluster.execute(
        "postgres",
        &[
            "CREATE ROLE mallory",
            "ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO mallory, PUBLIC",
            "ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO mallory, PUBLIC",
            "ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO mallory, PUBLIC",
        ],
    );
    (cluster, scripts)
}

/// What the catalog shows after these statements, which are then undone.
fn picture(client: &mut Client, statements: &[&str]) -> Result<Picture, Error> {
    let mut transaction = client.transaction()?;
    for statement in statements {
        transaction.batch_execute(statement)?;
    }
    Ok(transaction.query(include_str!("catalog.sql"), &[])?.iter().map(|row| row.get(0)).collect())
}

fn installed(client: &mut Client) -> Picture {
    picture(client, &["CREATE EXTENSION awty"]).unwrap()
}

fn updated(client: &mut Client, from: &str, to: &str) -> Result<Picture, Error> {
    let create = format!("CREATE EXTENSION awty VERSION '{from}'");
    picture(client, &[&create, &format!("ALTER EXTENSION awty UPDATE TO '{to}'")])
}

/// The versions that can be installed, but for the made-up one.
fn released(scripts: &Path) -> Vec<String> {
    let files = std::fs::read_dir(scripts).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let versions = files.filter_map(|file| Some(file.strip_prefix("awty--")?.strip_suffix(".sql")?.to_owned()));
    versions.filter(|version| !version.contains("--") && version != NEXT).collect()
}

/// The statements of a script, each with its semicolon.
fn statements(script: &str) -> Vec<String> {
    let mut statements = vec![String::new()];
    for line in script.lines() {
        let last = statements.last_mut().unwrap();
        *last += &format!("{line}\n");
        if line.ends_with(';') && last.matches("$$").count() % 2 == 0 {
            statements.push(String::new());
        }
    }
    statements.retain(|statement| !statement.trim().is_empty());
    statements
}

/// D4: a database that was updated, from whichever version, is as one that was never anything else.
#[test]
fn an_updated_database_equals_an_installed_one() {
    let (cluster, scripts) = server();
    let mut client = cluster.superuser("postgres");
    let installed = installed(&mut client);
    let released = released(&scripts);
    assert!(released.iter().any(|version| version == HERE), "{released:?}");
    for version in released {
        let updated = updated(&mut client, &version, NEXT).unwrap();
        let missing: Vec<&String> = installed.difference(&updated).collect();
        let too_much: Vec<&String> = updated.difference(&installed).collect();
        assert!(
            missing.is_empty() && too_much.is_empty(),
            "from {version}, there is not {missing:#?}, but {too_much:#?}"
        );
    }
    let kinds: BTreeSet<&str> = installed.iter().map(|line| line.split(':').next().unwrap()).collect();
    let expected = "column comment constraint dumped extension function index initial privileges member policy relation row type \
                    schema sequence trigger view";
    assert_eq!(kinds.into_iter().collect::<Vec<_>>().join(" "), expected, "the kinds of lines");
}

/// The proof of the proof: an upgrade script that forgets one of its statements, whichever, makes another picture or fails.
#[test]
fn whatever_an_upgrade_script_forgets_is_seen() {
    let (cluster, scripts) = server();
    let mut client = cluster.superuser("postgres");
    let expected = installed(&mut client);
    let statements = statements(UPGRADE);
    let (mut unseen, mut missed) = (Vec::new(), Picture::new());
    // The first only sets the search path.
    for (number, forgotten) in statements.iter().enumerate().skip(1) {
        let version = format!("without{number}");
        let script: String = statements.iter().filter(|statement| *statement != forgotten).cloned().collect();
        std::fs::write(scripts.join(format!("awty--{HERE}--{version}.sql")), script).unwrap();
        match updated(&mut client, HERE, &version) {
            Ok(picture) if picture == expected => unseen.push(forgotten),
            Ok(picture) => missed.extend(expected.difference(&picture).cloned()),
            Err(error) => assert!(error.as_db_error().is_some(), "{error:?}"),
        }
    }
    assert!(statements.len() > 25, "{statements:#?}");
    assert!(unseen.is_empty(), "nobody sees that the script forgets {unseen:#?}");
    for line in [
        "comment: function awty.waiting(text) How many checks of a job wait",
        "dumped: awty.label",
        "dumped: awty.label_id_seq",
        "initial privileges: function awty.waiting(text) {=X/postgres,postgres=X/postgres}",
    ] {
        assert!(missed.contains(line), "{line:?} is not among {missed:#?}");
    }
}

/// Of the rules in CONTRIBUTING.md the one that no picture shows: an installation whose checks lie in a table of their own can update.
#[test]
fn a_column_of_checks_in_a_users_table_does_not_forbid_an_update() {
    let (cluster, scripts) = server();
    let mut client = cluster.superuser("postgres");
    let script = UPGRADE.replace("ADD COLUMN priority integer;", "ADD COLUMN priority integer DEFAULT 0;");
    assert_ne!(script, UPGRADE);
    std::fs::write(scripts.join(format!("awty--{HERE}--default.sql")), script).unwrap();
    let create = format!("CREATE EXTENSION awty VERSION '{HERE}'");
    let mut update = |version: &str| {
        let update = format!("ALTER EXTENSION awty UPDATE TO '{version}'");
        picture(&mut client, &[&create, "CREATE TABLE kept (c awty.future_job, several awty.future_job[])", &update])
    };
    update(NEXT).unwrap();
    assert_eq!(update("default").unwrap_err().code().unwrap().code(), "0A000");
}
