//! Statements on many checks of `awty.future_job` at a time, each in the order of the keys that it is given.
//!
//! Invariant: rows are written and locked in that order, so that callers whose keys overlap wait for each other and never in a circle.

use super::statement::{Arg, statement};
use super::{arg, time};
use crate::pg::owner::as_owner;
use crate::pg::text::Text;
use awty_core::Time;
use pgrx::pg_sys;

// Sets in a list of columns come one row after the other. As tables they would be written to disk first. Without ON CONFLICT, which
// takes twice as long for each row.
statement!(
    insert_all,
    [TEXTOID, TEXTOID, TEXTARRAYOID, TIMESTAMPTZARRAYOID, JSONBARRAYOID, TIMESTAMPTZOID, OIDOID, TIMESTAMPTZOID],
    c"INSERT INTO awty.future_job
             (job, entity_name, entity_key, args, first_check_at, next_check_at, scheduled_by, scheduled_at)
      SELECT $1, $2, k.key, k.args, coalesce(k.slot, $6), coalesce(k.slot, $6), $7, $8
      FROM (SELECT pg_catalog.unnest($3) AS key, pg_catalog.unnest($4) AS slot, pg_catalog.unnest($5) AS args) AS k"
);

statement!(
    select_all,
    [TEXTOID, TEXTOID, TEXTARRAYOID],
    c"SELECT k.n
      FROM pg_catalog.unnest($3) WITH ORDINALITY AS k (key, n)
      JOIN awty.future_job AS f ON f.entity_name = $2 AND f.entity_key = k.key AND f.job = $1"
);

statement!(
    lock_all,
    [TEXTOID, TEXTOID, TEXTARRAYOID],
    c"SELECT k.n, f.id, f.next_check_at
      FROM pg_catalog.unnest($3) WITH ORDINALITY AS k (key, n)
      JOIN awty.future_job AS f ON f.entity_name = $2 AND f.entity_key = k.key AND f.job = $1
      ORDER BY k.n FOR UPDATE OF f"
);

statement!(
    select_of_entities,
    [TEXTOID, TEXTARRAYOID, TEXTOID],
    c"SELECT f.id, f.job
      FROM pg_catalog.unnest($2) WITH ORDINALITY AS k (key, n)
      JOIN awty.future_job AS f ON f.entity_name = $1 AND f.entity_key = k.key
      WHERE $3 IS NULL OR f.job = $3
      ORDER BY k.n, f.job"
);

statement!(
    lock_ids,
    [INT8ARRAYOID],
    c"SELECT f.id FROM pg_catalog.unnest($1) WITH ORDINALITY AS k (id, n) JOIN awty.future_job AS f ON f.id = k.id
      ORDER BY k.n FOR UPDATE OF f"
);

/// Checks to be written: of one job and kind of entity.
pub struct NewChecks {
    pub job: pg_sys::Datum,
    pub entity_name: pg_sys::Datum,
    pub scheduled_by: pg_sys::Oid,
    pub scheduled_at: Time,
}

/// Writes checks, of which none must be pending. `slots` are NULL where all have the one slot.
pub fn insert(checks: &NewChecks, keys: pg_sys::Datum, slots: Arg, args: Arg, slot: Time) {
    let args = [
        Some(checks.job),
        Some(checks.entity_name),
        Some(keys),
        slots,
        args,
        time(slot),
        arg(checks.scheduled_by),
        time(checks.scheduled_at),
    ];
    as_owner(|| insert_all(|s| s.execute(&args)));
}

/// The places, from 0, of those keys for which a check is pending; in no order and without a lock.
pub fn pending(checks: &NewChecks, keys: pg_sys::Datum) -> Vec<usize> {
    let place = |rows: &super::statement::Rows, row| usize::try_from(rows.get::<i64>(row, 1)? - 1).ok();
    as_owner(|| {
        select_all(|s| {
            s.query(&[Some(checks.job), Some(checks.entity_name), Some(keys)], |rows| {
                (0..rows.len()).filter_map(|row| place(rows, row)).collect()
            })
        })
    })
}

/// Locks the checks that are pending for keys, in their order. Returns places, ids and slots.
pub fn lock(checks: &NewChecks, keys: pg_sys::Datum) -> Vec<(usize, i64, Time)> {
    let read = |rows: &super::statement::Rows, row| {
        let place = usize::try_from(rows.get::<i64>(row, 1)? - 1).ok()?;
        Some((place, rows.get(row, 2)?, super::from_timestamptz(rows.get(row, 3)?)))
    };
    as_owner(|| {
        lock_all(|s| {
            s.query(&[Some(checks.job), Some(checks.entity_name), Some(keys)], |rows| {
                (0..rows.len()).filter_map(|row| read(rows, row)).collect()
            })
        })
    })
}

/// The checks that are pending for entities, of one job or of all, with their jobs, in the order of the keys.
pub fn of_entities(entity_name: pg_sys::Datum, keys: pg_sys::Datum, job: Option<&Text>) -> Vec<(i64, Text)> {
    as_owner(|| {
        select_of_entities(|s| {
            s.query(&[Some(entity_name), Some(keys), job.map(Text::datum)], |rows| {
                (0..rows.len()).filter_map(|row| Some((rows.get(row, 1)?, rows.get(row, 2)?))).collect()
            })
        })
    })
}

/// Locks those of the checks that are still pending, in this order.
pub fn lock_in_order(ids: Vec<i64>) -> Vec<i64> {
    as_owner(|| lock_ids(|s| s.query(&[arg(ids)], |rows| (0..rows.len()).filter_map(|row| rows.get(row, 1)).collect())))
}
