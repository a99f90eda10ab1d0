//! Creates and drops the daily partitions of the history.
//!
//! Invariant: a client waits for this module's locks no longer than the caller's `lock_timeout`.

use super::typed::statement;
use crate::pg::catch::Failure;
use crate::pg::owner::as_owner;
use crate::pg::sqlstate;
use crate::pg::subtransaction::kept_whole;
use crate::pg::text::Text;
use awty_core::Time;
use chrono::{NaiveDate, NaiveTime, TimeDelta};
use pgrx::pg_sys;
use std::ffi::CString;

pub const AHEAD: i64 = 7;
/// At most this many rows are moved out of the default partition, because writers wait during the move.
const MOVED: i64 = 100_000;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Partitioned {
    History,
    Attempts,
}

impl Partitioned {
    pub const ALL: [Self; 2] = [Self::History, Self::Attempts];

    fn table(self) -> &'static str {
        match self {
            Self::History => "awty.future_job_history",
            Self::Attempts => "awty_internal.attempt",
        }
    }

    fn prefix(self) -> &'static str {
        match self {
            Self::History => "future_job_history_",
            Self::Attempts => "attempt_",
        }
    }

    fn key(self) -> &'static str {
        match self {
            Self::History => "finished_at",
            Self::Attempts => "ended_at",
        }
    }

    /// Columns without statistics, so that EXPLAIN does not disclose their values.
    fn hidden(self) -> &'static [&'static str] {
        match self {
            Self::History => &["job", "entity_name", "entity_key", "args", "sqlstate", "message", "context"],
            Self::Attempts => &["job", "entity_name", "entity_key", "key", "worker", "sqlstate", "message", "result"],
        }
    }
}

statement! {
    fn select_partitions(table: Text) -> Vec<Text> = query,
    c"SELECT c.relname::pg_catalog.text FROM pg_catalog.pg_inherits AS i JOIN pg_catalog.pg_class AS c ON c.oid = i.inhrelid
      WHERE i.inhparent = $1::pg_catalog.regclass::pg_catalog.oid ORDER BY c.relname"
}

statement! {
    fn history_range() -> Option<(Time, Time)> = query,
    c"SELECT pg_catalog.min(finished_at), pg_catalog.max(finished_at) FROM awty_internal.future_job_history_default"
}

statement! {
    fn attempt_range() -> Option<(Time, Time)> = query,
    c"SELECT pg_catalog.min(ended_at), pg_catalog.max(ended_at) FROM awty_internal.attempt_default"
}

statement! {
    fn count_history(from: Time, to: Time, limit: i64) -> Option<i64> = query,
    c"SELECT pg_catalog.count(*) FROM (
          SELECT FROM awty_internal.future_job_history_default AS h WHERE h.finished_at >= $1 AND h.finished_at < $2 LIMIT $3) AS s"
}

statement! {
    fn count_attempts(from: Time, to: Time, limit: i64) -> Option<i64> = query,
    c"SELECT pg_catalog.count(*) FROM (
          SELECT FROM awty_internal.attempt_default AS a WHERE a.ended_at >= $1 AND a.ended_at < $2 LIMIT $3) AS s"
}

statement! {
    fn select_grantees(table: Text) -> Vec<Text> = query,
    c"SELECT DISTINCT a.grantee::pg_catalog.regrole::pg_catalog.text
      FROM pg_catalog.pg_class AS c CROSS JOIN LATERAL pg_catalog.aclexplode(c.relacl) AS a
      WHERE c.relnamespace = 'awty_internal'::pg_catalog.regnamespace AND c.relname = $1::pg_catalog.name
        AND a.grantee <> c.relowner"
}

impl Partitioned {
    fn name_of(self, day: NaiveDate) -> String {
        format!("{}{}", self.prefix(), day.format("%Y%m%d"))
    }

    fn day_of(self, name: &str) -> Option<NaiveDate> {
        NaiveDate::parse_from_str(name.strip_prefix(self.prefix())?, "%Y%m%d").ok()
    }
}

fn present(parted: Partitioned) -> Vec<NaiveDate> {
    let names = select_partitions(Text::from(parted.table()));
    names.into_iter().filter_map(|name| parted.day_of(&name.to_string())).collect()
}

/// Returns the days from today until `ahead` days later that have no partition.
pub fn missing(parted: Partitioned, now: Time, ahead: i64) -> Vec<NaiveDate> {
    let (today, present) = (now.date_naive(), present(parted));
    (0..=ahead)
        .filter_map(|days| today.checked_add_signed(TimeDelta::days(days)))
        .filter(|day| !present.contains(day))
        .collect()
}

pub fn make(parted: Partitioned, day: NaiveDate, now: Time) {
    as_owner(|| {
        let has_rows = || strays(parted).is_some_and(|(first, last)| (first..=last).contains(&day));
        if day == now.date_naive() || has_rows() {
            // Locks both tables before rows leave the default partition. If only the default partition were locked, a
            // session that waits for it would miss the moved rows, or fail to insert a row.
            run(&format!("LOCK TABLE ONLY {} IN ACCESS EXCLUSIVE MODE", parted.table()));
            run(&format!("LOCK TABLE awty_internal.{}default IN ACCESS EXCLUSIVE MODE", parted.prefix()));
        }
        let strays = if has_rows() { stray_rows(parted, day) } else { 0 };
        if strays <= MOVED {
            create(parted, day, strays > 0);
        }
    });
}

/// Keeps a partition if another object, such as a view, depends on it. Returns the errors of these partitions.
pub fn drop_older(parted: Partitioned, than: Time) -> Vec<Failure> {
    let is_old = |day: &NaiveDate| *day < than.date_naive();
    let old: Vec<NaiveDate> = present(parted).into_iter().filter(is_old).collect();
    let mut kept = Vec::new();
    if old.is_empty() {
        return kept;
    }
    as_owner(|| {
        for day in old {
            match kept_whole(|| run(&format!("DROP TABLE awty_internal.{}", parted.name_of(day)))) {
                Err(caught) if caught.failure().sqlstate == sqlstate::DEPENDENT_OBJECTS_STILL_EXIST => {
                    kept.push(caught.failure());
                }
                dropped => dropped.unwrap_or_else(|caught| caught.rethrow()),
            }
        }
        if strays(parted).is_some_and(|(_, last)| is_old(&last)) {
            run(&format!("TRUNCATE TABLE awty_internal.{}default", parted.prefix()));
        }
    });
    kept
}

fn strays(parted: Partitioned) -> Option<(NaiveDate, NaiveDate)> {
    let range = match parted {
        Partitioned::History => history_range(),
        Partitioned::Attempts => attempt_range(),
    };
    range.map(|(first, last)| (first.date_naive(), last.date_naive()))
}

fn stray_rows(parted: Partitioned, day: NaiveDate) -> i64 {
    let Some(next) = day.succ_opt() else { return 0 };
    let (from, to) = (day.and_time(NaiveTime::MIN).and_utc(), next.and_time(NaiveTime::MIN).and_utc());
    let count = match parted {
        Partitioned::History => count_history(from, to, MOVED + 1),
        Partitioned::Attempts => count_attempts(from, to, MOVED + 1),
    };
    count.unwrap_or(0)
}

/// Uses ATTACH, because CREATE TABLE … PARTITION OF would block readers and writers of the history.
fn create(parted: Partitioned, day: NaiveDate, has_strays: bool) {
    let Some(next) = day.succ_opt() else { return };
    let (name, table) = (parted.name_of(day), parted.table());
    run(&format!(
        "CREATE TABLE awty_internal.{name} (LIKE awty_internal.{}default INCLUDING INDEXES)",
        parted.prefix()
    ));
    run(&format!("REVOKE ALL ON awty_internal.{name} FROM PUBLIC"));
    // Revokes rights that ALTER DEFAULT PRIVILEGES has granted.
    for role in select_grantees(Text::from(name.as_str())) {
        run(&format!("REVOKE ALL ON awty_internal.{name} FROM {role}"));
    }
    run(&format!("ALTER TABLE awty_internal.{name} ENABLE ROW LEVEL SECURITY"));
    run(&format!("GRANT SELECT ON awty_internal.{name} TO pg_database_owner"));
    run(&format!(
        "CREATE POLICY dumped ON awty_internal.{name} FOR SELECT TO pg_database_owner, pg_read_all_data USING (true)"
    ));
    let hidden: Vec<String> = parted.hidden().iter().map(|column| format!("ALTER {column} SET STATISTICS 0")).collect();
    run(&format!("ALTER TABLE awty_internal.{name} {}", hidden.join(", ")));
    if has_strays {
        let (prefix, key) = (parted.prefix(), parted.key());
        run(&format!(
            "WITH moved AS (DELETE FROM awty_internal.{prefix}default WHERE {key} OPERATOR(pg_catalog.>=) '{day} 00:00:00+00' \
                 AND {key} OPERATOR(pg_catalog.<) '{next} 00:00:00+00' RETURNING *) \
             INSERT INTO awty_internal.{name} SELECT * FROM moved"
        ));
    }
    run(&format!(
        "ALTER TABLE {table} ATTACH PARTITION awty_internal.{name} \
         FOR VALUES FROM ('{day} 00:00:00+00') TO ('{next} 00:00:00+00')"
    ));
}

/// The caller may insert only dates and quoted role names into the command.
fn run(command: &str) {
    let Ok(command) = CString::new(command) else { return };
    // SAFETY: the C string `command` lives until the call returns. After an ERROR, the abort of the transaction closes
    // SPI.
    unsafe {
        pg_sys::SPI_connect();
        let code = pg_sys::SPI_execute(command.as_ptr(), false, 0);
        assert!(code >= 0, "a command of awty failed with SPI code {code}");
        pg_sys::SPI_finish();
    }
}
