//! Invariant: a claim first locks the job's claims, and then takes the snapshot with which it reads due checks and
//! leases. With an older snapshot, the claim could choose a check that already has a lease.
//!
//! Lock order: the check's row, then its lease. A transaction that locks the lease first must not wait for the check.

use super::live::Live;
use crate::pg::array::{self, BOOL, TEXT};
use crate::pg::text::Text;
use crate::store::statement::{Arg, Rows};
use crate::store::typed::{Row, statement};
use crate::store::{arg, from_timestamptz, time};
use awty_core::lease::Ahead;
use awty_core::{Check, Lease, Time};
use pgrx::pg_sys;

statement! {
    pub fn due(job: &Text, now: Time, limit: usize, live: &Live) -> Vec<DueCheck> = query_latest,
    c"SELECT f.id, f.next_check_at, f.check_count, f.attempt, f.scheduled_at, l.lease, f.entity_name
      FROM (SELECT p.id, p.next_check_at, p.check_count, p.attempt, p.scheduled_at, p.entity_name
            FROM awty.future_job AS p
            WHERE p.job = $1 AND NOT p.held AND p.next_check_at <= $2 AND p.id NOT IN (SELECT pg_catalog.unnest($4))
            ORDER BY p.next_check_at, p.id LIMIT $3) AS f
      LEFT JOIN LATERAL (SELECT x.lease FROM awty_internal.lease AS x WHERE x.id = f.id OFFSET 0) AS l ON true
      ORDER BY f.next_check_at, f.id"
}

statement! {
    /// Returns whether the job has a due check without a lease, and when its next check is due. If `is_cut`, returns
    /// `false`, because `live` lacks some of the leases.
    pub fn ahead(job: &Text, now: Time, live: &Live, is_cut: bool) -> Ahead = query_latest(read_ahead),
    c"SELECT CASE WHEN NOT $4
              THEN (SELECT true FROM awty.future_job AS f
              WHERE f.job = $1 AND NOT f.held AND f.next_check_at <= $2 AND f.id NOT IN (SELECT pg_catalog.unnest($3))
              ORDER BY f.next_check_at LIMIT 1) END,
             (SELECT f.next_check_at FROM awty.future_job AS f
              WHERE f.job = $1 AND NOT f.held AND f.next_check_at > $2 ORDER BY f.next_check_at LIMIT 1)"
}

statement! {
    pub fn given(numbers: &[i64]) -> Vec<StoredLease> = query_latest,
    c"SELECT l.lease, l.id, l.job, l.leased_at, l.expires_at, l.deadline, l.entity_name
      FROM awty_internal.lease AS l WHERE l.lease = ANY ($1)"
}

statement! {
    pub fn lock(numbers: &[i64]) -> Vec<StoredLease> = query,
    c"SELECT l.lease, l.id, l.job, l.leased_at, l.expires_at, l.deadline, l.entity_name
      FROM awty_internal.lease AS l WHERE l.lease = ANY ($1) FOR UPDATE SKIP LOCKED"
}

statement! {
    pub fn overdue_of(job: &Text, now: Time, limit: i64) -> Vec<StoredLease> = query,
    c"SELECT l.lease, l.id, l.job, l.leased_at, l.expires_at, l.deadline, l.entity_name
      FROM awty_internal.lease AS l WHERE l.job = $1 AND l.expires_at <= $2 AND l.deadline <= $2
      ORDER BY l.expires_at LIMIT $3 FOR UPDATE SKIP LOCKED"
}

// A scan of the table is cheap, because the table has one row for each check in progress.
statement! {
    pub fn jobs_overdue(now: Time) -> Vec<Text> = query,
    c"SELECT DISTINCT l.job FROM awty_internal.lease AS l WHERE l.deadline <= $1"
}

statement!(
    insert_all,
    [
        INT8ARRAYOID, INT8ARRAYOID, TEXTARRAYOID, TIMESTAMPTZOID, TIMESTAMPTZOID, TIMESTAMPTZOID, TEXTOID, OIDOID, TEXTOID
    ],
    c"WITH chosen AS MATERIALIZED (
          SELECT g.lease, g.key, f.id, f.job, f.entity_name, f.entity_key, f.args, f.first_check_at, f.next_check_at, f.check_count,
              f.attempt, f.held, f.scheduled_by, f.scheduled_at
          FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2), pg_catalog.unnest($3)) AS g (lease, id, key)
          CROSS JOIN LATERAL (SELECT p.* FROM awty.future_job AS p WHERE p.id = g.id OFFSET 0) AS f
          WHERE NOT f.held AND f.next_check_at <= $4 AND f.job = $9
      ), given AS (
          INSERT INTO awty_internal.lease (lease, id, job, entity_name, entity_key, first_check_at, next_check_at, check_count,
              attempt, scheduled_by, scheduled_at, key, leased_at, expires_at, deadline, worker, role)
          SELECT f.lease, f.id, f.job, f.entity_name, f.entity_key, f.first_check_at, f.next_check_at, f.check_count,
              f.attempt + 1, f.scheduled_by, f.scheduled_at, f.key, $4, $5, $6, $7, $8
          FROM chosen AS f
      )
      SELECT f.lease, f.id, f.job, f.entity_name, f.entity_key, f.args, f.first_check_at, f.next_check_at, f.check_count,
          f.attempt + 1, f.held, f.scheduled_by, f.scheduled_at, f.key, $4, $5, $6
      FROM chosen AS f ORDER BY f.next_check_at, f.id"
);

// If the check is no longer pending, `awty.attempt` gets a message that says so instead of the worker's own message.
statement!(
    end_all,
    [
        INT8ARRAYOID, BOOLARRAYOID, BOOLARRAYOID, TEXTARRAYOID, TEXTARRAYOID, JSONBARRAYOID, TIMESTAMPTZOID, TEXTOID, BOOLARRAYOID
    ],
    c"WITH gone AS (
          DELETE FROM awty_internal.lease AS l
          USING ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2), pg_catalog.unnest($3), pg_catalog.unnest($4),
              pg_catalog.unnest($5), pg_catalog.unnest($6), pg_catalog.unnest($9))
              AS g (lease, kept, ok, sqlstate, message, result, held)
          WHERE l.lease = g.lease
          RETURNING l.lease, l.id, l.job, l.entity_name, l.entity_key, l.first_check_at, l.next_check_at, l.check_count, l.attempt,
              l.scheduled_by, l.scheduled_at, l.key, l.leased_at, l.expires_at, l.deadline, l.worker, l.role, g.kept, g.ok, g.sqlstate,
              g.message, g.result, g.held
      ), noted AS (
          INSERT INTO awty_internal.attempt (lease, id, job, entity_name, entity_key, first_check_at, next_check_at, check_count,
              attempt, held, scheduled_by, scheduled_at, key, leased_at, expires_at, deadline, worker, ended_at, lateness, ok,
              sqlstate, message, result, role)
          SELECT n.lease, n.id, n.job, n.entity_name, n.entity_key, n.first_check_at, n.next_check_at, n.check_count, n.attempt,
              coalesce(n.held, false), n.scheduled_by, n.scheduled_at, n.key, n.leased_at, n.expires_at, n.deadline, n.worker,
              greatest($7, n.leased_at), n.leased_at - n.next_check_at, n.ok AND n.held IS NOT NULL,
              CASE WHEN n.held IS NOT NULL THEN n.sqlstate END, CASE WHEN n.held IS NOT NULL THEN n.message ELSE $8 END, n.result,
              n.role
          FROM gone AS n WHERE n.kept
      )
      SELECT lease FROM gone"
);

// Skips locked leases, because a heartbeat must not wait for a session that stores a worker's report.
statement! {
    fn extend_all(numbers: Vec<i64>, until: &[Time]) -> Vec<i64> = query,
    c"UPDATE awty_internal.lease AS l SET expires_at = greatest(l.expires_at, g.until)
      FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) AS g (lease, until),
          (SELECT x.lease FROM awty_internal.lease AS x WHERE x.lease = ANY ($1) FOR NO KEY UPDATE SKIP LOCKED) AS free
      WHERE l.lease = g.lease AND free.lease = l.lease RETURNING l.lease"
}

statement! {
    pub fn requeue(numbers: &[i64]) -> Vec<i64> = query,
    c"WITH gone AS (DELETE FROM awty_internal.lease AS l
          USING (SELECT x.lease FROM awty_internal.lease AS x WHERE x.lease = ANY ($1) FOR UPDATE SKIP LOCKED) AS free
          WHERE l.lease = free.lease RETURNING l.id)
      SELECT n.id FROM gone AS n JOIN awty.future_job AS f ON f.id = n.id"
}

statement! {
    pub fn until(id: i64, now: Time) -> Option<Time> = query_latest,
    c"SELECT l.expires_at FROM awty_internal.lease AS l WHERE l.id = $1 AND l.expires_at > $2"
}

statement! {
    pub fn any_live(job: &Text, now: Time) -> bool = query_latest,
    c"SELECT 1 FROM awty_internal.lease AS l JOIN awty.future_job AS f ON f.id = l.id
      WHERE l.job = $1 AND l.expires_at > $2 LIMIT 1"
}

statement! {
    pub fn pending(checks: &[i64]) -> Vec<i64> = query_latest,
    c"SELECT f.id FROM awty.future_job AS f WHERE f.id = ANY ($1)"
}

// Writes `IS NOT DISTINCT FROM true`, because the planner could otherwise read the whole index of held checks.
statement! {
    pub fn held(checks: &[i64]) -> Vec<i64> = query,
    c"SELECT f.id FROM awty.future_job AS f WHERE f.id = ANY ($1) AND f.held IS NOT DISTINCT FROM true"
}

statement! {
    pub fn noted(checks: &[i64]) -> Vec<i64> = query,
    c"SELECT t.check_id FROM awty_internal.check_stat AS t WHERE t.check_id = ANY ($1)"
}

pub struct DueCheck {
    pub id: i64,
    pub check: Check,
    pub scheduled_at: Time,
    pub expired: Option<i64>,
    pub target: Text,
}

#[derive(Clone)]
pub struct StoredLease {
    pub number: i64,
    pub id: i64,
    pub job: Text,
    pub lease: Lease,
    pub target: Text,
}

impl Row for DueCheck {
    fn read(rows: &Rows, row: usize) -> Option<Self> {
        let count = |column| rows.get::<i32>(row, column).map(i32::unsigned_abs);
        let slot = from_timestamptz(rows.get(row, 2)?);
        Some(DueCheck {
            id: rows.get(row, 1)?,
            check: Check { slot, check_count: count(3)?, attempt: count(4)? },
            scheduled_at: from_timestamptz(rows.get(row, 5)?),
            expired: rows.get(row, 6),
            target: rows.get(row, 7)?,
        })
    }
}

fn read_ahead(rows: &Rows) -> Ahead {
    Ahead { is_due: rows.first(1).unwrap_or(false), slot: rows.first(2).map(from_timestamptz), expiry: None }
}

impl Row for StoredLease {
    fn read(rows: &Rows, row: usize) -> Option<Self> {
        let at = |column| rows.get(row, column).map(from_timestamptz);
        let lease = Lease { leased_at: at(4)?, expires_at: at(5)?, deadline: at(6)? };
        Some(StoredLease {
            number: rows.get(row, 1)?,
            id: rows.get(row, 2)?,
            job: rows.get(row, 3)?,
            lease,
            target: rows.get(row, 7)?,
        })
    }
}

fn ids(rows: &Rows) -> Vec<i64> {
    rows.all(|row| rows.get(row, 1))
}

pub struct NewLeases<'a> {
    pub job: &'a Text,
    pub worker: &'a Text,
    pub role: pg_sys::Oid,
    pub lease: Lease,
    pub numbers: Vec<i64>,
    pub ids: Vec<i64>,
    pub keys: Vec<String>,
}

/// A check that is held or no longer pending gets no lease.
pub fn give(new: NewLeases, mut take: impl FnMut(Vec<Arg>)) {
    let Lease { leased_at, expires_at, deadline } = new.lease;
    let args = [
        arg(new.numbers),
        arg(new.ids),
        arg(new.keys),
        time(leased_at),
        time(expires_at),
        time(deadline),
        Some(new.worker.datum()),
        arg(new.role),
        Some(new.job.datum()),
    ];
    insert_all().query(&args, |rows| {
        (0..rows.len()).for_each(|row| take((1..=17).map(|column| rows.raw(row, column)).collect()));
    });
}

pub struct End {
    pub number: i64,
    pub kept: bool,
    pub ok: bool,
    pub sqlstate: Option<Text>,
    pub message: Option<Text>,
    pub result: Arg,
    /// `None` means that the check is no longer pending.
    pub held: Option<bool>,
}

pub fn end(ends: &[End], now: Time) -> Vec<i64> {
    let text = |text: &Option<Text>| text.as_ref().map(Text::datum);
    let bools = |of: fn(&End) -> Option<bool>| ends.iter().map(move |end| of(end).map(pg_sys::Datum::from));
    // SAFETY: each array is built with the type of its values.
    let args = unsafe {
        [
            arg(ends.iter().map(|end| end.number).collect::<Vec<i64>>()),
            Some(array::build(bools(|end| Some(end.kept)), BOOL)),
            Some(array::build(bools(|end| Some(end.ok)), BOOL)),
            Some(array::build(ends.iter().map(|end| text(&end.sqlstate)), TEXT)),
            Some(array::build(ends.iter().map(|end| text(&end.message)), TEXT)),
            Some(array::build(ends.iter().map(|end| end.result), array::JSONB)),
            time(now),
            Some(Text::from("the check was cancelled or replaced").datum()),
            Some(array::build(bools(|end| end.held), BOOL)),
        ]
    };
    end_all().query(&args, ids)
}

pub fn extend(until: &[(i64, Time)]) -> Vec<i64> {
    let (numbers, times): (Vec<i64>, Vec<Time>) = until.iter().copied().unzip();
    extend_all(numbers, &times)
}
