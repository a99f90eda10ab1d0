//! A restored server must run no checks before `awty.adopt()`. Afterwards, each late order must get its alert.

use crate::events::Event;
use crate::judge::{Evidence, Row};
use crate::marks::Log;
use crate::orders::{Shipped, Told};
use crate::place::Place;
use crate::reaper::pass;
use crate::rows;
use awty_testkit::poll;
use awty_testkit::postgres::{Client, Config, NoTls};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const PORT: u16 = 6_000;
const PATIENCE: Duration = Duration::from_secs(90);
const HELD: &str = "SELECT database_held AND why = 'this server was restored from a backup' AND fix LIKE 'SELECT awty.adopt();%' FROM awty.status";

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("cannot run {command:?}: {error}"))?;
    let text = || [output.stdout.clone(), output.stderr.clone()].concat();
    if output.status.success() { Ok(()) } else { Err(format!("{command:?}: {}", String::from_utf8_lossy(&text()))) }
}

fn await_true(client: &mut Client, what: &str, sql: &str) -> Result<(), String> {
    poll(what, PATIENCE, || match client.query_one(sql, &[]) {
        Ok(row) if row.get::<_, Option<bool>>(0) == Some(true) => Ok(()),
        other => Err(format!("{:?}", other.map(|row| row.get::<_, Option<bool>>(0)))),
    })
}

pub fn restore(place: &Place, event: Event) -> Result<Vec<String>, String> {
    let copy = place.folder.path().join("copy");
    let made = if event == Event::Pitr { pitr(place, &copy) } else { pgbackrest(place, &copy) };
    let result = made.and_then(|()| look(place, &copy));
    let mut stop = place.folder.server_tool("pg_ctl");
    let _ = run(stop.args(["stop", "-m", "immediate", "-D"]).arg(&copy));
    for name in ["archiving", "pgbackrest.conf"] {
        let _ = std::fs::remove_file(place.folder.path().join(name));
    }
    let _ = std::fs::remove_dir_all(&copy);
    let _ = std::fs::remove_dir_all(place.folder.path().join("repository"));
    result
}

fn archive(place: &Place) -> Result<(), String> {
    std::fs::write(place.folder.path().join("archiving"), "").map_err(|error| error.to_string())
}

fn await_archive(place: &Place, client: &mut Client) -> Result<(), String> {
    let sql = "SELECT pg_walfile_name(pg_switch_wal())";
    let file: String = client.query_one(sql, &[]).map_err(|error| error.to_string())?.get(0);
    let archived = place.folder.path().join("archive").join(&file);
    let sql = format!("SELECT last_archived_wal >= '{file}' FROM pg_stat_archiver");
    await_true(client, "the archive", &sql)?;
    archived.exists().then_some(()).ok_or_else(|| format!("{} is not there", archived.display()))
}

fn configure(place: &Place, copy: &Path, more: &str) -> Result<(), String> {
    let file = copy.join("postgresql.conf");
    let lines = format!(
        "\nlisten_addresses = ''\nport = {PORT}\nunix_socket_directories = '{}'\narchive_mode = off\nsynchronous_standby_names = ''
primary_conninfo = ''\nprimary_slot_name = ''\n{more}\n",
        place.folder.path().display()
    );
    let append = std::fs::read_to_string(&file).and_then(|text| std::fs::write(&file, text + &lines));
    append.map_err(|error| format!("{}: {error}", file.display()))
}

fn pitr(place: &Place, copy: &PathBuf) -> Result<(), String> {
    let leader = place.await_whole()?;
    archive(place)?;
    let mut backup = place.folder.server_tool("pg_basebackup");
    backup.args(["-U", "postgres", "-c", "fast", "-p", &place.members[leader].port.to_string(), "-h"]);
    run(backup.arg(place.folder.path()).arg("-D").arg(copy))?;
    pass(Duration::from_secs(5));
    let mut client = place.primary()?;
    let target: String = client.query_one("SELECT now()::text", &[]).map_err(|error| error.to_string())?.get(0);
    pass(Duration::from_secs(2));
    await_archive(place, &mut client)?;
    let archive = place.folder.path().join("archive");
    let more = format!(
        "restore_command = 'cp {}/%f %p'\nrecovery_target_time = '{target}'\nrecovery_target_action = 'promote'",
        archive.display()
    );
    configure(place, copy, &more)?;
    run(place.folder.command("touch").arg(copy.join("recovery.signal")))
}

fn pgbackrest(place: &Place, copy: &Path) -> Result<(), String> {
    let leader = place.await_whole()?;
    let folder = place.folder.path();
    let (data, port) = (place.members[leader].data.display().to_string(), place.members[leader].port);
    let text = format!(
        "[global]\nrepo1-path={0}/repository\nlog-level-file=off\nlock-path={0}/lock\nspool-path={0}/spool\nstart-fast=y\n\n[awty]\npg1-path={data}
pg1-port={port}\npg1-socket-path={0}\npg1-user=postgres\n",
        folder.display()
    );
    std::fs::write(folder.join("pgbackrest.conf"), text).map_err(|error| error.to_string())?;
    let tool = |arguments: &[&str]| {
        let mut tool = place.folder.command("pgbackrest");
        tool.arg(format!("--config={}/pgbackrest.conf", folder.display())).arg("--stanza=awty").args(arguments);
        run(&mut tool)
    };
    tool(&["stanza-create"])?;
    archive(place)?;
    tool(&["--type=full", "backup"])?;
    pass(Duration::from_secs(3));
    await_archive(place, &mut place.primary()?)?;
    run(place.folder.command("mkdir").args(["-m", "700"]).arg(copy))?;
    tool(&[&format!("--pg1-path={}", copy.display()), "restore"])?;
    configure(place, copy, "")
}

fn look(place: &Place, copy: &Path) -> Result<Vec<String>, String> {
    let log = place.folder.path().join("copy.log");
    let _ = std::fs::remove_file(&log);
    run(place.folder.server_tool("pg_ctl").args(["start", "-w", "-t", "120", "-D"]).arg(copy).arg("-l").arg(&log))?;
    let mut config = Config::new();
    config.host_path(place.folder.path()).port(PORT).dbname("postgres").user("postgres");
    let mut client = config.connect(NoTls).map_err(|error| error.to_string())?;
    await_true(&mut client, "the end of the recovery", "SELECT NOT pg_is_in_recovery()")?;
    await_true(&mut client, "the restore to be held", HELD)?;
    await_true(&mut client, "orders that are overdue", &format!("SELECT ({}) > 0", rows::WITHOUT_ALERT))?;
    // No check may run before the adoption. Four seconds are enough to see such a run, because checks may be due every
    // second.
    pass(Duration::from_secs(4));
    let begun = |log: &Path| Log::read(&std::fs::read_to_string(log).unwrap_or_default()).begun.len();
    let mut found = Vec::new();
    if begun(&log) > 0 {
        found.push(format!("{} runs began before the adoption", begun(&log)));
    }
    client.batch_execute("SELECT awty.adopt()").map_err(|error| error.to_string())?;
    if let Err(message) = rows::await_alerts(&mut client) {
        found.push(message);
    }
    if begun(&log) == 0 {
        found.push("nothing ran after the adoption".into());
    }
    let rows = rows::read(&mut client).map_err(|error| error.to_string())?;
    found.extend(complete(rows));
    Ok(found)
}

fn complete(rows: BTreeMap<i64, Row>) -> Vec<String> {
    let told = rows.keys().map(|order| (*order, Told { is_placed: true, shipped: Shipped::Never })).collect();
    Evidence { told, rows, ..Evidence::default() }.judge().violations
}
