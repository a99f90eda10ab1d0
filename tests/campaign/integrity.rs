//! Checks awty's tables with amcheck, and looks for internal errors in the server log.
//!
//! amcheck skips users' tables, because random SQL may damage them.

use crate::load::{Shared, explain};
use awty_testkit::postgres::{Client, Error};
use awty_testkit::{Cluster, PATIENCE, poll};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Omits invalid indexes, which an unfinished REINDEX CONCURRENTLY leaves behind.
const RELATIONS: &str = "
    WITH own AS (
        SELECT c.oid, c.reltoastrelid FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname IN ('awty', 'awty_internal') AND c.relkind IN ('r', 'm')
    ), heap AS (SELECT oid FROM own UNION SELECT reltoastrelid FROM own WHERE reltoastrelid <> 0)
    SELECT oid, oid::regclass::text, false FROM heap
    UNION ALL
    SELECT i.indexrelid, i.indexrelid::regclass::text, true
    FROM heap JOIN pg_index AS i ON i.indrelid = heap.oid
    JOIN pg_class AS c ON c.oid = i.indexrelid JOIN pg_am AS a ON a.oid = c.relam
    WHERE a.amname = 'btree' AND i.indisvalid";
const INDEX: &str = "SELECT public.bt_index_check($1::oid, true)";
const HEAP: &str =
    "SELECT format('block %s, row %s: %s', blkno, offnum, msg) FROM public.verify_heapam($1::oid) LIMIT 3";

const ENOUGH: usize = 5;

pub fn verify(shared: &Shared, database: &str) -> Vec<String> {
    let verified = poll("awty's tables to be verified", PATIENCE, || {
        let mut client = shared.connect(database, "postgres").map_err(explain)?;
        relations(&mut client).map_err(explain)
    });
    let broken = verified.unwrap_or_else(|what| vec![what]);
    broken.into_iter().take(ENOUGH).map(|what| format!("in {database}: {what}")).collect()
}

fn relations(client: &mut Client) -> Result<Vec<String>, Error> {
    client.batch_execute("SET statement_timeout = '2min'; SET log_min_messages = panic")?;
    client.batch_execute("CREATE EXTENSION IF NOT EXISTS amcheck SCHEMA public")?;
    let mut broken = Vec::new();
    for row in client.query(RELATIONS, &[])? {
        let (oid, name, is_index): (u32, String, bool) = (row.get(0), row.get(1), row.get(2));
        match client.query(if is_index { INDEX } else { HEAP }, &[&oid]) {
            Ok(rows) if is_index || rows.is_empty() => {}
            Ok(rows) => broken.extend(rows.iter().map(|row| format!("{name}: {}", row.get::<_, String>(0)))),
            Err(error) => {
                let Some(told) = error.as_db_error().filter(|told| told.code().code().starts_with("XX")) else {
                    return Err(error);
                };
                broken.push(format!("{name}: {} {}", told.code().code(), told.message()));
            }
        }
    }
    Ok(broken)
}

/// A position in the server log. Includes the file, because a promoted standby writes to a different file.
#[derive(Default)]
pub struct LogMark {
    file: PathBuf,
    position: usize,
}

impl LogMark {
    pub fn news(&mut self, cluster: &Cluster) -> String {
        if self.file != cluster.log_file() {
            *self = Self { file: cluster.log_file(), position: 0 };
        }
        let mut log = cluster.log_since(self.position);
        log.truncate(log.rfind('\n').map_or(0, |end| end + 1));
        self.position += log.len();
        log
    }
}

/// Returns the internal errors in a log. Errors that differ only in their time, process id or other numbers count as
/// one.
pub fn internal_errors(log: &str) -> Vec<String> {
    let of_line = |line: &str| {
        let (_, said) = line.split_once("] ")?;
        is_internal(said).then(|| said.to_owned())
    };
    let mut told = BTreeSet::new();
    log.lines().filter_map(of_line).filter(|said| told.insert(without_numbers(said))).take(ENOUGH).collect()
}

/// Removes all digits, so that errors that differ only in their numbers become equal.
pub fn without_numbers(what: &str) -> String {
    what.replace(|letter: char| letter.is_ascii_digit(), "")
}

/// Returns whether the line shows a crash, or an error that neither clients nor administrators can cause.
fn is_internal(said: &str) -> bool {
    let raised = ["ERROR:  ", "FATAL:  ", "PANIC:  "].iter().any(|level| said.contains(level));
    let coded = said.split(":  ").next().is_some_and(|prefix| prefix.contains(" XX0"));
    // Omits SIGKILL, SIGQUIT, and the SIGABRT of a PANIC, because the campaign itself causes these signals.
    let broke_down = [4, 7, 8, 11].iter().any(|signal| said.contains(&format!("was terminated by signal {signal}:")));
    (raised && coded) || broke_down || (said.contains("LOG:  awty: ") && said.contains("(XX0"))
}

#[cfg(test)]
mod tests {
    use super::internal_errors;

    const TIME: &str = "2026-01-01 00:00:00.000 UTC [42] ";

    fn is_told(said: &str) -> bool {
        !internal_errors(&format!("{TIME}{said}\n")).is_empty()
    }

    #[test]
    fn an_internal_error_is_told_in_whatever_session() {
        for said in [
            "client backend XX000 alice@one ERROR:  page 39 of relation \"future_job\" should be empty but is not",
            "autovacuum worker XX001 ERROR:  found xmin 7 from before relfrozenxid 9",
            "client backend XX002 alice@one ERROR:  index \"x\" contains unexpected zero page at block 1",
            "postmaster 00000 LOG:  server process (PID 7) was terminated by signal 11: Segmentation fault",
            "awty worker 00000 LOG:  awty: a worker could not read the due checks: could not read block 7 (XX001)",
        ] {
            assert!(is_told(said), "{said}");
        }
    }

    #[test]
    fn what_the_campaign_itself_does_is_not() {
        for said in [
            "client backend 42704 alice@one ERROR:  job \"XX000\" does not exist",
            "client backend XX000 alice@one STATEMENT:  SELECT 1",
            "postmaster 00000 LOG:  server process (PID 7) was terminated by signal 9: Killed",
            "awty worker 00000 LOG:  awty: a worker could not begin a batch: No space left on device (53100)",
        ] {
            assert!(!is_told(said), "{said}");
        }
    }

    #[test]
    fn the_same_is_told_once() {
        let line = |block| format!("client backend XX000 alice@one ERROR:  block {block} is out of order");
        let log = format!("{TIME}{}\nno prefix\n{TIME}{}\n", line(7), line(23));
        assert_eq!(internal_errors(&log), [line(7)]);
    }
}
