//! Invariant: rows are written and locked in the order of the given keys.

use super::statement::Arg;
use super::typed::statement;
use super::{arg, time};
use crate::pg::text::Text;
use awty_core::Time;
use pgrx::pg_sys;

// Calls unnest() in the select list, because PostgreSQL first stores all rows of a function that is called in FROM.
statement!(
    insert_all,
    [TEXTOID, TEXTOID, TEXTARRAYOID, TIMESTAMPTZARRAYOID, JSONBARRAYOID, TIMESTAMPTZOID, OIDOID, TIMESTAMPTZOID],
    c"INSERT INTO awty.future_job
             (job, entity_name, entity_key, args, first_check_at, next_check_at, scheduled_by, scheduled_at)
      SELECT $1, $2, k.key, k.args, coalesce(k.slot, $6), coalesce(k.slot, $6), $7, $8
      FROM (SELECT pg_catalog.unnest($3) AS key, pg_catalog.unnest($4) AS slot, pg_catalog.unnest($5) AS args) AS k"
);

// ON CONFLICT locks a conflicting row even if the WHERE condition is false. The lock is as strong as FOR UPDATE,
// because SET names a column of a unique index.
statement!(
    insert_or_lock_all,
    [TEXTOID, TEXTOID, TEXTARRAYOID, TIMESTAMPTZARRAYOID, JSONBARRAYOID, TIMESTAMPTZOID, OIDOID, TIMESTAMPTZOID],
    c"INSERT INTO awty.future_job AS f
             (job, entity_name, entity_key, args, first_check_at, next_check_at, scheduled_by, scheduled_at)
      SELECT $1, $2, k.key, k.args, coalesce(k.slot, $6), coalesce(k.slot, $6), $7, $8
      FROM (SELECT pg_catalog.unnest($3) AS key, pg_catalog.unnest($4) AS slot, pg_catalog.unnest($5) AS args) AS k
      ON CONFLICT (entity_name, entity_key, job) DO UPDATE SET job = f.job WHERE false
      RETURNING f.id"
);

// OFFSET 0 makes the planner look up each key by index.
statement!(
    select_all,
    [TEXTOID, TEXTOID, TEXTARRAYOID],
    c"SELECT k.n, f.id, f.next_check_at
      FROM pg_catalog.unnest($3) WITH ORDINALITY AS k (key, n)
      CROSS JOIN LATERAL (
          SELECT g.id, g.next_check_at FROM awty.future_job AS g
          WHERE g.entity_name = $2 AND g.entity_key = k.key AND g.job = $1 OFFSET 0) AS f
      ORDER BY k.n"
);

statement!(
    select_of_entities,
    [TEXTOID, TEXTARRAYOID, TEXTOID],
    c"SELECT k.n, f.id, f.job
      FROM pg_catalog.unnest($2) WITH ORDINALITY AS k (key, n)
      CROSS JOIN LATERAL (
          SELECT g.id, g.job FROM awty.future_job AS g
          WHERE g.entity_name = $1 AND g.entity_key = k.key AND ($3 IS NULL OR g.job = $3) OFFSET 0) AS f
      UNION ALL
      SELECT k.n, NULL, r.job
      FROM pg_catalog.unnest($2) WITH ORDINALITY AS k (key, n)
      CROSS JOIN LATERAL (
          SELECT g.job FROM awty_internal.repetition AS g
          WHERE g.entity_name = $1 AND g.entity_key = k.key AND ($3 IS NULL OR g.job = $3) OFFSET 0) AS r
      ORDER BY 1, 3, 2"
);

statement! {
    pub fn lock_in_order(ids: Vec<i64>) -> Vec<i64> = query,
    c"SELECT f.id FROM pg_catalog.unnest($1) WITH ORDINALITY AS k (id, n) JOIN awty.future_job AS f ON f.id = k.id
      ORDER BY k.n FOR UPDATE OF f"
}

pub struct NewChecks {
    pub job: pg_sys::Datum,
    pub entity_name: pg_sys::Datum,
    pub scheduled_by: pg_sys::Oid,
    pub scheduled_at: Time,
}

pub struct Values {
    pub keys: pg_sys::Datum,
    /// Due times of the checks, or NULL if all checks are due at `slot`.
    pub slots: Arg,
    pub args: Arg,
    pub slot: Time,
}

impl NewChecks {
    fn with(&self, values: Values) -> [Arg; 8] {
        [
            Some(self.job),
            Some(self.entity_name),
            Some(values.keys),
            values.slots,
            values.args,
            time(values.slot),
            arg(self.scheduled_by),
            time(self.scheduled_at),
        ]
    }
}

pub fn insert(checks: &NewChecks, values: Values) {
    insert_all().execute(&checks.with(values));
}

pub fn insert_or_lock(checks: &NewChecks, values: Values) -> Vec<i64> {
    insert_or_lock_all().query(&checks.with(values), super::future_job::ids)
}

pub fn pending(checks: &NewChecks, keys: pg_sys::Datum) -> Vec<(usize, i64, Time)> {
    let read = |rows: &super::statement::Rows, row| {
        let place = usize::try_from(rows.get::<i64>(row, 1)? - 1).ok()?;
        Some((place, rows.get(row, 2)?, super::from_timestamptz(rows.get(row, 3)?)))
    };
    select_all()
        .query(&[Some(checks.job), Some(checks.entity_name), Some(keys)], |rows| rows.all(|row| read(rows, row)))
}

pub struct EntityCheck {
    pub place: usize,
    pub check: Option<i64>,
    pub job: Text,
}

pub fn of_entities(entity_name: pg_sys::Datum, keys: pg_sys::Datum, job: Option<&Text>) -> Vec<EntityCheck> {
    let read = |rows: &super::statement::Rows, row| {
        let place = usize::try_from(rows.get::<i64>(row, 1)? - 1).ok()?;
        Some(EntityCheck { place, check: rows.get(row, 2), job: rows.get(row, 3)? })
    };
    let mut found: Vec<EntityCheck> = select_of_entities()
        .query(&[Some(entity_name), Some(keys), job.map(Text::datum)], |rows| rows.all(|row| read(rows, row)));
    found.dedup_by(|next, first| next.place == first.place && next.job == first.job);
    found
}
