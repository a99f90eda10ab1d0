use super::record::{Candidate, Cursor, FailureTexts, Rescheduled, RunRecord};
use super::statement::{Arg, Rows};
use super::typed::{Row, statement};
use super::{arg, time};
use crate::error::{Error, Label};
use crate::pg::clock::Timestamp;
use crate::pg::text::Text;
use awty_core::{Check, Time};
use chrono::TimeDelta;
use pgrx::datum::TimestampWithTimeZone;
use pgrx::pg_sys;

pub struct NewCheck {
    pub job: pg_sys::Datum,
    pub entity_name: pg_sys::Datum,
    pub entity_key: pg_sys::Datum,
    pub args: Arg,
    pub scheduled_by: pg_sys::Oid,
    pub scheduled_at: Time,
}

pub struct Pending {
    pub id: i64,
    pub slot: Time,
    pub held: bool,
    check_count: i32,
    attempt: i32,
}

impl Pending {
    pub fn check(&self) -> Check {
        let Pending { slot, check_count, attempt, .. } = *self;
        Check { slot, check_count: check_count.unsigned_abs(), attempt: attempt.unsigned_abs() }
    }

    fn read(rows: &Rows) -> Option<Self> {
        if rows.len() == 0 { None } else { Self::of(rows, 0) }
    }

    fn of(rows: &Rows, row: usize) -> Option<Self> {
        Some(Self {
            id: rows.get(row, 1)?,
            slot: super::from_timestamptz(rows.get(row, 2)?),
            held: rows.get(row, 3)?,
            check_count: rows.get(row, 4)?,
            attempt: rows.get(row, 5)?,
        })
    }
}

statement!(
    insert_one,
    [TEXTOID, TEXTOID, TEXTOID, JSONBOID, TIMESTAMPTZOID, OIDOID, TIMESTAMPTZOID],
    c"INSERT INTO awty.future_job
             (job, entity_name, entity_key, args, first_check_at, next_check_at, scheduled_by, scheduled_at)
      VALUES ($1, $2, $3, $4, $5, $5, $6, $7)
      ON CONFLICT (entity_name, entity_key, job) DO NOTHING
      RETURNING id"
);

statement!(
    lock_one,
    [TEXTOID, TEXTOID, TEXTOID],
    c"SELECT id, next_check_at, held, check_count, attempt FROM awty.future_job
      WHERE entity_name = $1 AND entity_key = $2 AND job = $3 FOR UPDATE"
);

statement!(
    select_one,
    [TEXTOID, TEXTOID, TEXTOID],
    c"SELECT id, next_check_at, held, check_count, attempt FROM awty.future_job
      WHERE entity_name = $1 AND entity_key = $2 AND job = $3"
);

statement!(
    select_jobs_of_entity,
    [TEXTOID, TEXTOID],
    c"SELECT f.job FROM awty.future_job AS f WHERE f.entity_name = $1 AND f.entity_key = $2
      UNION ALL SELECT r.job FROM awty_internal.repetition AS r WHERE r.entity_name = $1 AND r.entity_key = $2
      UNION ALL SELECT a.rule FROM awty.alert AS a WHERE a.entity_name = $1 AND a.entity_key = $2 AND a.cleared_at IS NULL"
);

statement! {
    pub fn lock_job(job: &Text, entity_name: Option<&Text>) -> Vec<i64> = query,
    c"SELECT f.id FROM awty.future_job AS f
      WHERE f.id = ANY (ARRAY(SELECT p.id FROM awty.future_job AS p WHERE p.job = $1 AND NOT p.held
                              UNION ALL
                              SELECT q.id FROM awty.future_job AS q WHERE q.job = $1 AND q.held))
          AND ($2 IS NULL OR f.entity_name = $2)
      ORDER BY f.entity_name, f.entity_key FOR UPDATE"
}

// Reads check_stat with a scalar subquery, because PostgreSQL may execute an EXISTS by hashing the whole table.
statement!(
    select_held,
    [INT8ARRAYOID, INT4OID],
    c"SELECT f.id, f.next_check_at, f.held, f.check_count, f.attempt, f.job, (
          SELECT t.crashes::pg_catalog.int8 + t.exits >= $2 FROM awty_internal.check_stat AS t WHERE t.check_id = f.id) IS TRUE
      FROM awty.future_job AS f
      WHERE f.id = ANY ($1) AND f.held IS NOT DISTINCT FROM true ORDER BY f.id FOR UPDATE SKIP LOCKED"
);

statement! {
    fn set_held_of(id: i64, held: bool) = query,
    c"UPDATE awty.future_job SET held = $2 WHERE id = $1"
}

statement!(
    select_due,
    [TEXTOID, TIMESTAMPTZOID, INT8OID, TIMESTAMPTZOID, INT8OID],
    c"SELECT id, next_check_at FROM awty.future_job
      WHERE job = $1 AND NOT held AND (next_check_at, id) > ($2, $3) AND next_check_at <= $4
      ORDER BY next_check_at, id LIMIT $5"
);

statement! {
    pub fn locate(ids: &[i64]) -> Vec<(Text, Candidate)> = query,
    c"SELECT job, id, next_check_at FROM awty.future_job WHERE id = ANY ($1)"
}

statement! {
    pub fn is_pending(id: i64) -> bool = query,
    c"SELECT 1 FROM awty.future_job WHERE id = $1"
}

statement! {
    pub fn describe(ids: &[i64]) -> Vec<Described> = query,
    c"SELECT f.id, f.job, f.entity_name, f.entity_key, j.notify
      FROM awty.future_job AS f LEFT JOIN awty.job AS j ON j.job = f.job WHERE f.id = ANY ($1)"
}

statement!(
    select_next,
    [TEXTOID, TIMESTAMPTZOID],
    c"SELECT next_check_at FROM awty.future_job
      WHERE job = $1 AND NOT held AND next_check_at > $2 ORDER BY next_check_at LIMIT 1"
);

// Does not use ON CONFLICT, because ON CONFLICT would also lock the row of check_stat (see check_row/own.rs).
statement! {
    fn again(
        id: i64, slot: Time, done: i32, attempt: i32, run_time: TimeDelta, started_at: Time, lateness: TimeDelta,
        sqlstate: Option<Text>, message: Option<Text>, context: Option<Text>, failed_at: Option<Time>
    ) = query,
    c"WITH moved AS (
          UPDATE awty.future_job SET next_check_at = $2, check_count = check_count + $3, attempt = $4,
              held = EXISTS (SELECT FROM awty_internal.hold AS h WHERE h.check_id = $1 FOR KEY SHARE SKIP LOCKED)
          WHERE id = $1 RETURNING id
      ), counted AS (
          UPDATE awty_internal.check_stat AS t SET runs = t.runs + 1, run_time = t.run_time + $5,
              started_at = $6, lateness = $7, crashes = 0, exits = 0, sqlstate = $8, message = $9, context = $10, failed_at = $11
          FROM moved WHERE t.check_id = moved.id RETURNING t.check_id
      )
      INSERT INTO awty_internal.check_stat AS t
          (check_id, runs, run_time, started_at, lateness, sqlstate, message, context, failed_at)
      SELECT id, 1, $5, $6, $7, $8, $9, $10, $11 FROM moved WHERE NOT EXISTS (SELECT FROM counted)
      ON CONFLICT (check_id) DO UPDATE SET runs = t.runs + 1, run_time = t.run_time + excluded.run_time,
          started_at = excluded.started_at, lateness = excluded.lateness, crashes = 0, exits = 0,
          sqlstate = excluded.sqlstate, message = excluded.message, context = excluded.context,
          failed_at = excluded.failed_at"
}

statement! {
    pub fn put_at(id: i64, slot: Time) = query,
    c"UPDATE awty.future_job SET next_check_at = $2 WHERE id = $1"
}

statement! {
    fn delete_all(ids: &[i64]) -> u64 = query,
    c"DELETE FROM awty.future_job WHERE id = ANY ($1)"
}

pub fn insert(check: &NewCheck, slot: Time) -> Option<i64> {
    insert_one().query(
        &[
            Some(check.job),
            Some(check.entity_name),
            Some(check.entity_key),
            check.args,
            time(slot),
            arg(check.scheduled_by),
            time(check.scheduled_at),
        ],
        |rows| rows.first(1),
    )
}

/// Locks the check's row, so that no run of the check can end before this transaction.
pub fn lock(check: &NewCheck) -> Option<Pending> {
    lock_one().query(&[Some(check.entity_name), Some(check.entity_key), Some(check.job)], Pending::read)
}

pub fn lock_check(entity_name: pg_sys::Datum, entity_key: pg_sys::Datum, job: &Text) -> Option<Pending> {
    lock_one().query(&[Some(entity_name), Some(entity_key), Some(job.datum())], Pending::read)
}

/// Reads the check without a lock, because a lock on the check's row would make a concurrent run of the check fail.
pub fn peek(entity_name: pg_sys::Datum, entity_key: pg_sys::Datum, job: &Text) -> Option<Pending> {
    select_one().query(&[Some(entity_name), Some(entity_key), Some(job.datum())], Pending::read)
}

/// Reads without locks, because a client must not lock checks of jobs that the client has no right to.
pub fn jobs_of_entity(entity_name: pg_sys::Datum, entity_key: pg_sys::Datum) -> Vec<Text> {
    let mut jobs: Vec<Text> =
        select_jobs_of_entity().query(&[Some(entity_name), Some(entity_key)], |rows| rows.all(|row| rows.get(row, 1)));
    jobs.sort_unstable();
    jobs.dedup();
    jobs
}

pub fn lock_of(entity_name: pg_sys::Datum, entity_key: pg_sys::Datum, job: &Text) -> Option<i64> {
    lock_one().query(&[Some(entity_name), Some(entity_key), Some(job.datum())], |rows| rows.first(1))
}

pub struct LockedHeld {
    pub job: Text,
    pub check: Pending,
    pub is_after_crashes: bool,
}

pub fn lock_held(ids: &[i64], max_crashes: i32) -> Vec<LockedHeld> {
    let read = |rows: &Rows, row| {
        let check = Pending::of(rows, row)?;
        Some(LockedHeld { job: rows.get(row, 6)?, check, is_after_crashes: rows.get(row, 7)? })
    };
    select_held().query(&[arg(ids.to_vec()), arg(max_crashes)], |rows| rows.all(|row| read(rows, row)))
}

pub fn set_held(id: i64) {
    set_held_of(id, true);
}

pub fn release(id: i64) {
    set_held_of(id, false);
}

pub fn due(job: &Text, after: Cursor, until: Timestamp, limit: usize) -> Vec<Candidate> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let timestamp = |value: Timestamp| Some(pg_sys::Datum::from(value));
    select_due()
        .query(&[Some(job.datum()), timestamp(after.slot), arg(after.id), timestamp(until), arg(limit)], |rows| {
            rows.all(|row| candidate(rows, row, 1))
        })
}

fn candidate(rows: &Rows, row: usize, first: i32) -> Option<Candidate> {
    Some(Candidate { id: rows.get(row, first)?, slot: rows.get::<TimestampWithTimeZone>(row, first + 1)?.into() })
}

impl Row for (Text, Candidate) {
    fn read(rows: &Rows, row: usize) -> Option<Self> {
        Some((rows.get(row, 1)?, candidate(rows, row, 2)?))
    }
}

pub struct Described {
    pub id: i64,
    pub job: Text,
    pub entity: Label,
    pub notify: Option<Text>,
}

impl Row for Described {
    fn read(rows: &Rows, row: usize) -> Option<Self> {
        let text = |column| rows.get::<Text>(row, column).map(|text| text.to_string()).unwrap_or_default();
        let entity = Label { name: text(3), key: text(4) };
        Some(Described { id: rows.get(row, 1)?, job: rows.get(row, 2)?, entity, notify: rows.get(row, 5) })
    }
}

pub fn next_after(job: &Text, after: Timestamp) -> Option<Timestamp> {
    select_next().query(&[Some(job.datum()), Some(pg_sys::Datum::from(after))], |rows| {
        rows.first::<TimestampWithTimeZone>(1).map(Into::into)
    })
}

pub fn ids(rows: &Rows) -> Vec<i64> {
    rows.all(|row| rows.get(row, 1))
}

pub fn put_again(id: i64, again_at: &Rescheduled, run: &RunRecord) {
    let Rescheduled { slot, done, attempt, failure } = *again_at;
    let RunRecord { started_at, run_time, .. } = *run;
    let FailureTexts { sqlstate, message, context } = FailureTexts::of(failure);
    let (lateness, failed_at) = (run.lateness(), failure.map(|_| run.finished_at));
    again(id, slot, done, attempt, run_time, started_at, lateness, sqlstate, message, context, failed_at);
}

/// Deletes rows that the caller has locked. Fails if a user's trigger or rule prevents the deletion.
pub fn remove(ids: &[i64]) {
    if delete_all(ids) != ids.len() as u64 {
        Error::Altered { table: "awty.future_job" }.raise();
    }
}
