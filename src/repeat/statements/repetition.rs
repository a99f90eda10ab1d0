//! Lock order for reads and writes: first the check's row, then its row in `awty_internal.repetition`. A run locks the
//! second row only to end the repetition.

use crate::pg::clock;
use crate::pg::text::Text;
use crate::store::check_row::Row;
use crate::store::statement::{Arg, Rows};
use crate::store::typed;
use crate::store::typed::{is_true, statement};
use crate::store::{arg, from_timestamptz, hold, interval, time};
use awty_core::repeat::{Occurrence, Passed};
use awty_core::{Check, Time};
use chrono::TimeDelta;
use pgrx::datum::{Interval, TimestampWithTimeZone};
use pgrx::{IntoDatum, pg_sys};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    pub every: Option<(i32, i32, i64)>,
    pub cron: Option<String>,
    pub zone: String,
    pub starts: Option<Time>,
    pub ends: Option<Time>,
    pub jitter: TimeDelta,
    pub catch_up: TimeDelta,
    pub calendar: Option<Text>,
}

pub struct Subject {
    pub job: Text,
    pub entity_name: Text,
    pub entity_key: Text,
    pub args: Arg,
    pub repeated_by: pg_sys::Oid,
    pub repeated_at: Time,
}

#[derive(Clone, Debug)]
pub struct StoredRepetition {
    pub id: i64,
    pub job: Text,
    pub entity_name: Text,
    pub entity_key: Text,
    pub terms: Definition,
}

#[derive(Clone, Debug)]
pub struct Pending {
    pub check: i64,
    pub occurrence: Occurrence,
    pub held: bool,
    pub repetition: StoredRepetition,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Existing {
    Nothing,
    Alone(i64),
    Pending,
}

statement! {
    fn select_of_checks(checks: &[i64]) -> Vec<(Pending, bool)> = query,
    c"SELECT r.id, r.job, r.entity_name, r.entity_key, r.every, r.cron, r.zone, r.starts, r.ends, r.jitter, r.catch_up, r.calendar,
          f.id, f.first_check_at, f.next_check_at, f.check_count, f.attempt, f.held, u.used_before, u.used_through, o.check_id IS NOT NULL
      FROM awty.future_job AS f
      JOIN awty_internal.repetition AS r
          ON r.entity_name = f.entity_name AND r.entity_key = f.entity_key AND r.job = f.job
      LEFT JOIN awty_internal.check_stat AS u ON u.check_id = f.id
      LEFT JOIN awty_internal.hold AS o ON o.check_id = f.id
      WHERE f.id = ANY ($1)"
}

statement!(
    select_of_row,
    [TEXTOID, TEXTOID, TEXTOID, INT8OID],
    c"SELECT r.id, r.job, r.entity_name, r.entity_key, r.every, r.cron, r.zone, r.starts, r.ends, r.jitter, r.catch_up, r.calendar,
          u.used_before, u.used_through, o.check_id IS NOT NULL
      FROM awty_internal.repetition AS r
      LEFT JOIN awty_internal.check_stat AS u ON u.check_id = $4
      LEFT JOIN awty_internal.hold AS o ON o.check_id = $4
      WHERE r.entity_name = $1 AND r.entity_key = $2 AND r.job = $3"
);

statement! {
    pub fn find(entity_name: &Text, entity_key: &Text, job: &Text) -> Existing = query(existing),
    c"SELECT r.id, f.id IS NOT NULL
      FROM awty_internal.repetition AS r
      LEFT JOIN awty.future_job AS f
          ON f.entity_name = r.entity_name AND f.entity_key = r.entity_key AND f.job = r.job
      WHERE r.entity_name = $1 AND r.entity_key = $2 AND r.job = $3"
}

statement!(
    same_args,
    [INT8OID, JSONBOID],
    c"SELECT r.args IS NOT DISTINCT FROM $2 FROM awty_internal.repetition AS r WHERE r.id = $1"
);

statement!(
    insert_one,
    [
        TEXTOID, TEXTOID, TEXTOID, INTERVALOID, TEXTOID, TEXTOID, TIMESTAMPTZOID, TIMESTAMPTZOID, INTERVALOID, INTERVALOID,
        JSONBOID, OIDOID, TIMESTAMPTZOID, TEXTOID
    ],
    c"INSERT INTO awty_internal.repetition
          (job, entity_name, entity_key, every, cron, zone, starts, ends, jitter, catch_up, args, repeated_by, repeated_at, calendar)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
      ON CONFLICT (entity_name, entity_key, job) DO NOTHING
      RETURNING id"
);

statement!(
    update_one,
    [
        TEXTOID, TEXTOID, TEXTOID, INTERVALOID, TEXTOID, TEXTOID, TIMESTAMPTZOID, TIMESTAMPTZOID, INTERVALOID, INTERVALOID,
        JSONBOID, OIDOID, TIMESTAMPTZOID, TEXTOID
    ],
    c"UPDATE awty_internal.repetition SET every = $4, cron = $5, zone = $6, starts = $7, ends = $8, jitter = $9, catch_up = $10,
          args = $11, repeated_by = $12, repeated_at = $13, calendar = $14
      WHERE job = $1 AND entity_name = $2 AND entity_key = $3"
);

statement! {
    pub fn remove(ids: &[i64]) = query,
    c"DELETE FROM awty_internal.repetition WHERE id = ANY ($1)"
}

statement! {
    pub fn remove_of(entity_name: &Text, entity_key: &Text, job: &Text) -> bool = query,
    c"DELETE FROM awty_internal.repetition WHERE entity_name = $1 AND entity_key = $2 AND job = $3"
}

statement! {
    /// Locks the checks of [`checks_of_users`] that no other transaction has locked.
    pub fn lock_users(calendar: &Text) -> Vec<i64> = query,
    c"SELECT f.id FROM awty_internal.repetition AS r
      JOIN awty.future_job AS f ON f.entity_name = r.entity_name AND f.entity_key = r.entity_key AND f.job = r.job
      WHERE r.calendar = $1 FOR UPDATE OF f SKIP LOCKED"
}

statement! {
    pub fn checks_of_users(calendar: &Text) -> Vec<i64> = query,
    c"SELECT f.id FROM awty_internal.repetition AS r
      JOIN awty.future_job AS f ON f.entity_name = r.entity_name AND f.entity_key = r.entity_key AND f.job = r.job
      WHERE r.calendar = $1"
}

statement! {
    pub fn wait_for(check: i64) = query,
    c"SELECT FROM awty.future_job WHERE id = $1 FOR UPDATE"
}

statement! {
    pub fn users(calendar: &Text) -> Vec<(Text, Text, Text)> = query_latest,
    c"SELECT r.job, r.entity_name, r.entity_key FROM awty_internal.repetition AS r WHERE r.calendar = $1"
}

// Reads the whole table, because an index on `job` would not pay for the rare awty.unregister(). OFFSET 0 keeps the
// planner from using an index with `job` as a later column.
statement! {
    pub fn remove_job(job: &Text) -> bool = query,
    c"DELETE FROM awty_internal.repetition AS d
      WHERE d.id = ANY (ARRAY(
          SELECT h.id FROM (SELECT r.id, r.job FROM awty_internal.repetition AS r ORDER BY r.id OFFSET 0) AS h WHERE h.job = $1))"
}

// OFFSET 0 as above.
statement! {
    /// Returns whether a job of this name has checks or repetitions. Sees the latest commits.
    pub fn is_any_of_job(job: &Text) -> bool = query_latest(is_true),
    c"SELECT EXISTS (SELECT FROM awty.future_job AS p WHERE p.job = $1 AND NOT p.held)
          OR EXISTS (SELECT FROM awty.future_job AS q WHERE q.job = $1 AND q.held)
          OR EXISTS (SELECT FROM (SELECT r.job FROM awty_internal.repetition AS r ORDER BY r.id OFFSET 0) AS h WHERE h.job = $1)"
}

// Skips a repetition whose entity already has a pending check, because the end of that check inserts the next check.
statement! {
    fn insert_occurrences(ids: Vec<i64>, slots: &[Time], held: bool, now: Time) -> u64 = query,
    c"INSERT INTO awty.future_job
          (job, entity_name, entity_key, args, first_check_at, next_check_at, held, scheduled_by, scheduled_at)
      SELECT r.job, r.entity_name, r.entity_key, r.args, n.slot, n.slot, $3, r.repeated_by, $4
      FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) AS n (id, slot)
      JOIN awty_internal.repetition AS r ON r.id = n.id
      ON CONFLICT (entity_name, entity_key, job) DO NOTHING"
}

statement! {
    fn insert_occurrence(id: i64, slot: Time, held: bool, now: Time) -> u64 = query,
    c"INSERT INTO awty.future_job
          (job, entity_name, entity_key, args, first_check_at, next_check_at, held, scheduled_by, scheduled_at)
      SELECT r.job, r.entity_name, r.entity_key, r.args, $2, $2, $3, r.repeated_by, $4
      FROM awty_internal.repetition AS r WHERE r.id = $1
      ON CONFLICT (entity_name, entity_key, job) DO NOTHING"
}

statement! {
    fn upsert_used(check: i64, before: Option<Time>, through: Option<Time>) = query,
    c"INSERT INTO awty_internal.check_stat AS t (check_id, used_before, used_through) VALUES ($1, $2, $3)
      ON CONFLICT (check_id) DO UPDATE SET used_before = excluded.used_before, used_through = excluded.used_through"
}

statement! {
    fn clear_used(check: i64) = query,
    c"UPDATE awty_internal.check_stat SET used_before = NULL, used_through = NULL
      WHERE check_id = $1 AND (used_before IS NOT NULL OR used_through IS NOT NULL)"
}

statement! {
    pub fn hold(check: i64) = query,
    c"UPDATE awty.future_job SET held = true WHERE id = $1"
}

fn written(subject: &Subject, terms: &Definition) -> [Arg; 14] {
    let every = terms.every.and_then(|(months, days, micros)| Interval::new(months, days, micros).ok());
    [
        Some(subject.job.datum()),
        Some(subject.entity_name.datum()),
        Some(subject.entity_key.datum()),
        every.and_then(IntoDatum::into_datum),
        terms.cron.as_deref().map(|cron| Text::from(cron).datum()),
        Some(Text::from(terms.zone.as_str()).datum()),
        terms.starts.and_then(time),
        terms.ends.and_then(time),
        interval(terms.jitter),
        interval(terms.catch_up),
        subject.args,
        arg(subject.repeated_by),
        time(subject.repeated_at),
        terms.calendar.as_ref().map(Text::datum),
    ]
}

impl typed::Row for StoredRepetition {
    fn read(rows: &Rows, row: usize) -> Option<Self> {
        let text = |column| rows.get::<Text>(row, column).map(|text| text.to_string());
        let moment = |column| rows.get::<TimestampWithTimeZone>(row, column).map(from_timestamptz);
        let length = |column| rows.get::<Interval>(row, column).as_ref().and_then(clock::delta).unwrap_or_default();
        Some(StoredRepetition {
            id: rows.get(row, 1)?,
            job: rows.get(row, 2)?,
            entity_name: rows.get(row, 3)?,
            entity_key: rows.get(row, 4)?,
            terms: Definition {
                every: rows.get::<Interval>(row, 5).map(|every| (every.months(), every.days(), every.micros())),
                cron: text(6),
                zone: text(7)?,
                starts: moment(8),
                ends: moment(9),
                jitter: length(10),
                catch_up: length(11),
                calendar: rows.get(row, 12),
            },
        })
    }
}

fn passed(before: Option<Time>, through: Option<Time>) -> Option<Passed> {
    before.map(Passed::Before).or(through.map(Passed::Through))
}

impl typed::Row for Pending {
    fn read(rows: &Rows, row: usize) -> Option<Self> {
        let moment = |column| rows.get::<TimestampWithTimeZone>(row, column).map(from_timestamptz);
        let count = |column| rows.get::<i32>(row, column).map(i32::unsigned_abs);
        let passed = passed(moment(19), moment(20));
        let check = Check { slot: moment(15)?, check_count: count(16)?, attempt: count(17)? };
        Some(Pending {
            check: rows.get(row, 13)?,
            occurrence: Occurrence { first: moment(14)?, check, passed },
            held: rows.get(row, 18)?,
            repetition: typed::Row::read(rows, row)?,
        })
    }
}

impl typed::Row for (Pending, bool) {
    fn read(rows: &Rows, row: usize) -> Option<Self> {
        Some((typed::Row::read(rows, row)?, rows.get(row, 21)?))
    }
}

pub fn of_checks(checks: &[i64]) -> Vec<Pending> {
    with_holds(select_of_checks(checks))
}

/// The caller must have locked the check's row.
pub fn of_row(check: &Row) -> Option<Pending> {
    let [entity_name, entity_key, job] = check.subject();
    let args = [entity_name, entity_key, job, arg(check.id)];
    let found = select_of_row().query(&args, |rows| {
        let moment = |column| rows.first::<TimestampWithTimeZone>(column).map(from_timestamptz);
        let occurrence =
            Occurrence { first: check.first(), check: check.check(), passed: passed(moment(13), moment(14)) };
        let is_noted = rows.first(15)?;
        Some((
            Pending { check: check.id, occurrence, held: check.held, repetition: typed::Row::read(rows, 0)? },
            is_noted,
        ))
    });
    with_holds(found.into_iter().collect()).pop()
}

fn with_holds(found: Vec<(Pending, bool)>) -> Vec<Pending> {
    let noted: Vec<i64> = found.iter().filter(|(_, is_noted)| *is_noted).map(|(pending, _)| pending.check).collect();
    let in_force = if noted.is_empty() { Vec::new() } else { hold::in_force(&noted) };
    let held = |mut pending: Pending| {
        pending.held |= in_force.contains(&pending.check);
        pending
    };
    found.into_iter().map(|(pending, _)| held(pending)).collect()
}

fn existing(rows: &Rows) -> Existing {
    match (rows.first(1), rows.first(2)) {
        (Some(id), Some(false)) => Existing::Alone(id),
        (Some(_), _) => Existing::Pending,
        (None, _) => Existing::Nothing,
    }
}

pub fn has_args(id: i64, args: Arg) -> bool {
    same_args().query(&[arg(id), args], |rows| rows.first(1)).unwrap_or(false)
}

pub fn insert(subject: &Subject, terms: &Definition) -> Option<i64> {
    insert_one().query(&written(subject, terms), |rows| rows.first(1))
}

pub fn update(subject: &Subject, terms: &Definition) -> bool {
    update_one().execute(&written(subject, terms)) > 0
}

pub fn schedule(next: &[(i64, Time)], held: bool, now: Time) -> u64 {
    if next.is_empty() {
        return 0;
    }
    if let [(id, slot)] = *next {
        return insert_occurrence(id, slot, held, now);
    }
    let (ids, slots): (Vec<i64>, Vec<Time>) = next.iter().copied().unzip();
    insert_occurrences(ids, &slots, held, now)
}

/// Stores which planned times of a repetition need no further check. `None` removes the stored time, and awty then uses
/// the check's `first_check_at`.
pub fn set_passed(check: i64, passed: Option<Passed>) {
    match passed {
        None => clear_used(check),
        Some(Passed::Before(t)) => upsert_used(check, Some(t), None),
        Some(Passed::Through(t)) => upsert_used(check, None, Some(t)),
    }
}
