//! The moves to another server follow the steps of docs/operations.md.

use crate::judge::Row;
use crate::orders::Desk;
use crate::place::Place;
use crate::reaper::pass;
use crate::rows;
use awty_testkit::{Cluster, PATIENCE, poll};
use std::collections::BTreeMap;
use std::time::Duration;

pub fn to_another_server(place: &Place, desk: &Desk) -> Result<BTreeMap<i64, Row>, String> {
    let leader = place.await_whole()?;
    let port = place.members[leader].port.to_string();
    let new = Cluster::builder().own_identity().set("wal_level", "replica").start();
    new.execute("postgres", &["CREATE USER shop"]);
    let schema = place.folder.path().join("schema.sql");
    let mut dump = place.folder.server_tool("pg_dump");
    dump.args(["-s", "-U", "postgres", "-p", &port, "-h"]).arg(place.folder.path()).arg("-f").arg(&schema);
    for command in [
        &mut dump.arg("postgres"),
        &mut new.tool("psql").args(["-Xq", "-v", "ON_ERROR_STOP=1", "-f"]).arg(&schema).arg("postgres"),
    ] {
        let output = command.output().map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
    }
    let mut old = place.primary()?;
    let mut ask = |sql: &str| old.batch_execute(sql).map_err(|error| format!("{sql}: {error:?}"));
    ask("CREATE PUBLICATION move FOR ALL TABLES WITH (publish_via_partition_root = true)")?;
    let host = place.folder.path().display();
    let subscription = format!(
        "CREATE SUBSCRIPTION move CONNECTION 'host={host} port={port} dbname=postgres user=postgres' PUBLICATION move"
    );
    new.execute("postgres", &[&subscription]);
    let copied = "SELECT count(*) > 0 AND bool_and(srsubstate = 'r') FROM pg_subscription_rel";
    new.await_sql("postgres", "the copy of each table", copied);
    pass(Duration::from_secs(6));
    desk.close()?;
    ask("ALTER SYSTEM SET awty.enabled = off")?;
    ask("SELECT pg_reload_conf()")?;
    poll("awty to be disabled and idle, and the new server to have all rows", PATIENCE, || {
        let sql = "SELECT (SELECT NOT enabled AND workers = 0 FROM awty.status)
                   AND (SELECT bool_and(replay_lsn >= pg_current_wal_lsn()) FROM pg_stat_replication WHERE application_name = 'move')";
        match old.query_one(sql, &[]).map(|row| row.get::<_, Option<bool>>(0)) {
            Ok(Some(true)) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })?;
    new.execute("postgres", &["DROP SUBSCRIPTION move", "SELECT awty.adopt()"]);
    let mut client = new.superuser("postgres");
    if let Err(message) = rows::await_alerts(&mut client) {
        eprintln!("after the move: {message}");
    }
    rows::read(&mut client).map_err(|error| error.to_string())
}
