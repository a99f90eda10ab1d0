//! `awty_internal.origin` records whether the database's rows were copied from another database or a backup.

use super::patience;
use super::typed::statement;
use crate::error::Error;
use crate::pg::{catalog, clock};
use crate::restore::{self, Hold};
use crate::settings;
use crate::store::typed::number;
use awty_core::Time;
use pgrx::pg_sys;

// A restore of a dump fills this table last. So a database with jobs or checks, but without a row in this table, is
// being restored.
//
// After a restore of the server, an inspection writes 0 as the database's OID, so that checks stay held even after
// pg_upgrade or a dump.
statement! {
    fn select_hold(database: pg_sys::Oid, restored_at: Option<Time>) -> Option<i32> = query,
    c"SELECT pg_catalog.max(CASE
              WHEN o.ctid IS NULL THEN CASE WHEN EXISTS (SELECT FROM awty.job) OR EXISTS (SELECT FROM awty.future_job) THEN 1 ELSE 0 END
              WHEN o.database = 0 OR $2 > coalesce(o.restored_at, '-infinity') THEN 2
              WHEN o.identity IS DISTINCT FROM i.last_value OR o.database IS DISTINCT FROM $1 THEN 1
              ELSE 0 END)
      FROM awty_internal.identity AS i LEFT JOIN awty_internal.origin AS o ON true"
}

statement! {
    pub fn mark_as_restored() = query,
    c"UPDATE awty_internal.origin SET database = 0 WHERE database <> 0"
}

statement! {
    fn delete_all() = query,
    c"DELETE FROM awty_internal.origin"
}

statement! {
    fn insert_own(database: pg_sys::Oid, restored_at: Option<Time>) = query,
    c"INSERT INTO awty_internal.origin (identity, database, restored_at) SELECT i.last_value, $1, $2 FROM awty_internal.identity AS i
      ON CONFLICT (identity) DO UPDATE SET database = excluded.database, restored_at = excluded.restored_at"
}

// Does not update an existing row, because sessions that register jobs would then wait for each other.
statement! {
    fn claim_own(database: pg_sys::Oid, restored_at: Option<Time>) = query,
    c"INSERT INTO awty_internal.origin (identity, database, restored_at) SELECT i.last_value, $1, $2 FROM awty_internal.identity AS i
      WHERE NOT EXISTS (SELECT FROM awty_internal.origin) ON CONFLICT (identity) DO NOTHING"
}

// Moves the sequence past the used ids, because logical replication copies rows but no sequences.
statement! {
    fn pass_used_ids() = query,
    c"SELECT pg_catalog.setval('awty.future_job_id_seq', u.id)
      FROM awty.future_job_id_seq AS s,
           (SELECT greatest((SELECT pg_catalog.max(id) FROM awty.future_job), (SELECT pg_catalog.max(id) FROM awty.future_job_history),
                            (SELECT pg_catalog.max(id) FROM awty.alert), (SELECT pg_catalog.max(id) FROM awty_internal.repetition)) AS id) AS u
      WHERE u.id >= s.last_value"
}

statement! {
    pub fn identity() -> i64 = query_latest(number),
    c"SELECT i.last_value FROM awty_internal.identity AS i"
}

pub fn hold() -> Option<Hold> {
    if settings::auto_adopt() { None } else { stored_hold() }
}

/// Ignores the setting `awty.auto_adopt`.
pub fn stored_hold() -> Option<Hold> {
    match select_hold(catalog::database(), restored_at()) {
        Some(2) => Some(Hold::Restored),
        Some(1) => Some(Hold::Foreign),
        _ => None,
    }
}

fn restored_at() -> Option<Time> {
    restore::restored_at().and_then(clock::from_timestamp)
}

pub fn adopt() -> bool {
    let was_held = stored_hold().is_some();
    waiting(|| {
        pass_used_ids();
        delete_all();
        insert_own(catalog::database(), restored_at());
    });
    was_held
}

pub fn claim_if_new() {
    if stored_hold().is_none() {
        waiting(|| claim_own(catalog::database(), restored_at()));
    }
}

/// Executes `run`, and limits how long `run` waits for another transaction that inserts the same row into
/// `awty_internal.origin`.
fn waiting<R>(run: impl FnOnce() -> R) -> R {
    patience::wait(|| Error::OriginBusy, run)
}
