//! Tests that an update of an extension yields the same catalog entries as a new installation. A `Picture` holds the
//! catalog entries, each as a line of text.

use crate::made_up::{self, AWTY, Extension, HERE, HTTP, NEXT};
use awty_testkit::Cluster;
use awty_testkit::postgres::{Client, Error};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

type Picture = BTreeSet<String>;

/// The server's default privileges grant all rights on new objects to other roles, so that the tests notice a missing
/// REVOKE.
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

/// In a session that has set `xmloption`, awty_http assumes a restore and registers no jobs, because only scripts of
/// pg_dump set `xmloption`.
const NO_JOBS: &str = "SET LOCAL xmloption = content";

fn picture(client: &mut Client, of: &Extension, statements: &[&str]) -> Result<Picture, Error> {
    let mut transaction = client.transaction()?;
    for statement in statements {
        transaction.batch_execute(statement)?;
    }
    Ok(transaction.query(include_str!("catalog.sql"), &[&of.name])?.iter().map(|row| row.get(0)).collect())
}

fn installed(client: &mut Client, of: &Extension) -> Picture {
    picture(client, of, &[NO_JOBS, "CREATE EXTENSION awty_http CASCADE"]).unwrap()
}

fn updated(client: &mut Client, of: &Extension, from: &str, to: &str) -> Result<Picture, Error> {
    let create = |name: &str| format!("CREATE EXTENSION {name} VERSION '{from}'");
    let update = |name: &str| format!("ALTER EXTENSION {name} UPDATE TO '{to}'");
    let mut statements = vec![NO_JOBS.to_owned(), create("awty"), create("awty_http"), update(of.name)];
    if of.name == HTTP.name && to == NEXT {
        statements.insert(3, update("awty"));
    }
    picture(client, of, &statements.iter().map(String::as_str).collect::<Vec<_>>())
}

fn released(scripts: &Path, of: &Extension) -> Vec<String> {
    let files = std::fs::read_dir(scripts).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let prefix = format!("{}--", of.name);
    let versions = files.filter_map(|file| Some(file.strip_prefix(&prefix)?.strip_suffix(".sql")?.to_owned()));
    versions.filter(|version| !version.contains("--") && version != NEXT).collect()
}

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

#[test]
fn an_updated_database_equals_an_installed_one() {
    let (cluster, scripts) = server();
    let mut client = cluster.superuser("postgres");
    for extension in [AWTY, HTTP] {
        let installed = installed(&mut client, &extension);
        let released = released(&scripts, &extension);
        assert!(released.iter().any(|version| version == HERE), "{released:?}");
        for version in released {
            let updated = updated(&mut client, &extension, &version, NEXT).unwrap();
            let missing: Vec<&String> = installed.difference(&updated).collect();
            let too_much: Vec<&String> = updated.difference(&installed).collect();
            assert!(
                missing.is_empty() && too_much.is_empty(),
                "{} from {version}: there is not {missing:#?}, but {too_much:#?}",
                extension.name
            );
        }
        let kinds: BTreeSet<&str> = installed.iter().map(|line| line.split(':').next().unwrap()).collect();
        let (event_trigger, trigger) =
            if extension.name == AWTY.name { ("event trigger ", "trigger ") } else { ("", "") };
        let expected = format!(
            "column comment constraint dumped {event_trigger}extension function index initial privileges member policy relation row type \
             schema sequence {trigger}view"
        );
        assert_eq!(kinds.into_iter().collect::<Vec<_>>().join(" "), expected, "the kinds of lines");
    }
}

#[test]
fn whatever_an_upgrade_script_forgets_is_seen() {
    let (cluster, scripts) = server();
    let mut client = cluster.superuser("postgres");
    let missed = forgotten(&mut client, &scripts, &AWTY, 25);
    for line in [
        "comment: function awty.waiting(text) How many checks of a job wait",
        "dumped: awty.label",
        "dumped: awty.label_id_seq",
        "initial privileges: function awty.waiting(text) {=X/postgres,postgres=X/postgres}",
    ] {
        assert!(missed.contains(line), "{line:?} is not among {missed:#?}");
    }
    forgotten(&mut client, &scripts, &HTTP, 7);
}

/// For each statement of the upgrade script, runs the script without that statement. Returns all catalog entries that
/// were then missing.
fn forgotten(client: &mut Client, scripts: &Path, of: &Extension, least: usize) -> Picture {
    let expected = installed(client, of);
    let statements = statements(of.upgrade);
    let (mut unseen, mut missed) = (Vec::new(), Picture::new());
    for (number, forgotten) in statements.iter().enumerate().skip(1) {
        let version = format!("without{number}");
        let script: String = statements.iter().filter(|statement| *statement != forgotten).cloned().collect();
        std::fs::write(scripts.join(format!("{}--{HERE}--{version}.sql", of.name)), script).unwrap();
        match updated(client, of, HERE, &version) {
            Ok(picture) if picture == expected => unseen.push(forgotten),
            Ok(picture) => missed.extend(expected.difference(&picture).cloned()),
            Err(error) => assert!(error.as_db_error().is_some(), "{error:?}"),
        }
    }
    assert!(statements.len() > least, "{statements:#?}");
    assert!(unseen.is_empty(), "nobody sees that the script of {} forgets {unseen:#?}", of.name);
    missed
}

/// Upgrade scripts must not add a column with a default to awty.future_job, because PostgreSQL refuses the change
/// if a user's table has a column of the row type awty.future_job.
#[test]
fn a_column_of_checks_in_a_users_table_does_not_forbid_an_update() {
    let (cluster, scripts) = server();
    let mut client = cluster.superuser("postgres");
    let script = AWTY.upgrade.replace("ADD COLUMN priority integer;", "ADD COLUMN priority integer DEFAULT 0;");
    assert_ne!(script, AWTY.upgrade);
    std::fs::write(scripts.join(format!("awty--{HERE}--default.sql")), script).unwrap();
    let create = format!("CREATE EXTENSION awty VERSION '{HERE}'");
    let mut update = |version: &str| {
        let update = format!("ALTER EXTENSION awty UPDATE TO '{version}'");
        picture(
            &mut client,
            &AWTY,
            &[&create, "CREATE TABLE kept (c awty.future_job, several awty.future_job[])", &update],
        )
    };
    update(NEXT).unwrap();
    assert_eq!(update("default").unwrap_err().code().unwrap().code(), "0A000");
}
