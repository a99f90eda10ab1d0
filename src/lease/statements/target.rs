//! Invariant: claims and reports never wait for each other, because they write different rows. A claim writes token
//! buckets, and a report writes circuit breakers.
//!
//! A claim writes under the lock on the job's claims. A report writes under the target's lock, and skips a locked
//! target or breaker.

use super::lease::DueCheck;
use super::live::Live;
use crate::pg::clock;
use crate::pg::text::Text;
use crate::store::statement::Rows;
use crate::store::typed::{Row, is_true, number, statement};
use crate::store::{arg, from_timestamptz, message, time};
use awty_core::Time;
use awty_core::lease::breaker::Breaker;
use awty_core::lease::target::Target;
use awty_core::lease::tokens::{Pace, Tokens};
use pgrx::datum::TimestampWithTimeZone;
use pgrx::pg_sys;

statement! {
    pub fn any(job: &Text) -> bool = query_latest(is_true),
    c"SELECT EXISTS (SELECT FROM awty_internal.target AS t WHERE t.job = $1)
          OR EXISTS (SELECT FROM awty_internal.breaker AS b WHERE b.job = $1)"
}

statement! {
    /// Leaves out the leases in flight.
    pub fn limits(job: &Text, names: &[Text]) -> Vec<(Text, Target)> = query_latest,
    c"SELECT g.name, coalesce(o.concurrency, a.concurrency), coalesce(o.rate, a.rate)::pg_catalog.float8,
          coalesce(o.burst, CASE WHEN o.rate IS NULL THEN a.burst END), greatest(o.blocked_until, a.blocked_until), b.tokens, b.at,
          k.failures, k.since, k.opened_at, k.opens
      FROM pg_catalog.unnest($2) AS g (name)
      LEFT JOIN LATERAL (SELECT x.* FROM awty_internal.target AS x WHERE x.job = $1 AND x.target = g.name OFFSET 0) AS o ON true
      LEFT JOIN LATERAL (SELECT x.* FROM awty_internal.target AS x WHERE x.job = $1 AND x.target = '' OFFSET 0) AS a ON true
      LEFT JOIN LATERAL (SELECT x.* FROM awty_internal.bucket AS x WHERE x.job = $1 AND x.target = g.name OFFSET 0) AS b ON true
      LEFT JOIN LATERAL (SELECT x.* FROM awty_internal.breaker AS x WHERE x.job = $1 AND x.target = g.name OFFSET 0) AS k ON true"
}

// Skips buckets that another transaction has locked, because a claim must not wait.
statement! {
    fn upsert_buckets(job: &Text, names: Vec<Text>, left: Vec<f64>, now: Time, full: &[Time]) = query,
    c"WITH free AS MATERIALIZED (
          SELECT x.target FROM awty_internal.bucket AS x WHERE x.job = $1 AND x.target = ANY ($2) FOR NO KEY UPDATE SKIP LOCKED)
      INSERT INTO awty_internal.bucket AS b (job, target, tokens, at, full_at)
      SELECT $1, g.target, g.tokens, $4, g.full_at
      FROM ROWS FROM (pg_catalog.unnest($2), pg_catalog.unnest($3), pg_catalog.unnest($5)) AS g (target, tokens, full_at)
      WHERE EXISTS (SELECT FROM free AS f WHERE f.target = g.target)
         OR NOT EXISTS (SELECT FROM awty_internal.bucket AS x WHERE x.job = $1 AND x.target = g.target)
      ON CONFLICT ON CONSTRAINT bucket_pkey DO UPDATE SET tokens = excluded.tokens, at = excluded.at, full_at = excluded.full_at"
}

statement! {
    fn select_breakers(jobs: Vec<Text>, targets: Vec<Text>) -> Vec<(Key, Breaker)> = query_latest,
    c"SELECT b.job, b.target, b.failures, b.since, b.opened_at, b.opens
      FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) AS g (job, target)
      CROSS JOIN LATERAL (SELECT x.* FROM awty_internal.breaker AS x WHERE x.job = g.job AND x.target = g.target OFFSET 0) AS b"
}

statement! {
    fn lock_breakers(jobs: Vec<Text>, targets: Vec<Text>) -> Vec<Key> = query,
    c"SELECT b.job, b.target FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) AS g (job, target)
      CROSS JOIN LATERAL (SELECT x.job, x.target FROM awty_internal.breaker AS x WHERE x.job = g.job AND x.target = g.target
          FOR UPDATE SKIP LOCKED) AS b"
}

statement! {
    fn upsert_breaker(
        job: &Text, target: &Text, failures: i32, since: Time, opened_at: Option<Time>, opens: i32, text: Text, failed_at: Time
    ) = query,
    c"INSERT INTO awty_internal.breaker (job, target, failures, since, opened_at, opens, message, failed_at)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
      ON CONFLICT ON CONSTRAINT breaker_pkey DO UPDATE SET failures = excluded.failures, since = excluded.since,
          opened_at = excluded.opened_at, opens = excluded.opens, message = excluded.message,
          failed_at = excluded.failed_at"
}

statement! {
    fn delete_breaker(job: &Text, target: &Text) = query,
    c"DELETE FROM awty_internal.breaker AS b WHERE b.job = $1 AND b.target = $2"
}

statement! {
    fn delete_full(now: Time) = query,
    c"DELETE FROM awty_internal.bucket AS b USING (
          SELECT x.job, x.target FROM awty_internal.bucket AS x WHERE x.full_at <= $1
          ORDER BY x.job, x.target LIMIT 10000 FOR UPDATE SKIP LOCKED
      ) AS g WHERE b.job = g.job AND b.target = g.target"
}

statement! {
    fn delete_forgotten(now: Time) = query,
    c"DELETE FROM awty_internal.breaker AS b USING (
          SELECT x.job, x.target FROM awty_internal.breaker AS x
          WHERE x.failed_at < $1 - '1 day'::pg_catalog.interval
          ORDER BY x.job, x.target LIMIT 10000 FOR UPDATE SKIP LOCKED
      ) AS g WHERE b.job = g.job AND b.target = g.target"
}

// The end of a block keeps its time, role and note, so that the page can name the block later.
statement!(
    upsert_target,
    [TEXTOID, TEXTOID, INT4OID, FLOAT8OID, INT4OID, TIMESTAMPTZOID, TIMESTAMPTZOID, OIDOID, TEXTOID, TEXTARRAYOID, BOOLOID],
    c"INSERT INTO awty_internal.target AS t (job, target, concurrency, rate, burst, blocked_until, blocked_at, blocked_by, note)
      VALUES ($1, $2, $3, $4::pg_catalog.numeric, $5, $6, CASE WHEN $6 IS NOT NULL THEN $7 END, CASE WHEN $6 IS NOT NULL THEN $8::pg_catalog.regrole END, $9)
      ON CONFLICT ON CONSTRAINT target_pkey DO UPDATE SET
          concurrency = CASE WHEN 'concurrency' = ANY ($10) THEN NULL ELSE coalesce($3, t.concurrency) END,
          rate = CASE WHEN 'rate' = ANY ($10) THEN NULL ELSE coalesce($4::pg_catalog.numeric, t.rate) END,
          burst = CASE WHEN 'burst' = ANY ($10) THEN NULL ELSE coalesce($5, t.burst) END,
          blocked_until = CASE WHEN NOT $11 THEN coalesce($6, t.blocked_until) WHEN t.blocked_until > $7 THEN $7 ELSE t.blocked_until END,
          blocked_at = CASE WHEN $11 OR $6 IS NULL THEN t.blocked_at ELSE $7 END,
          blocked_by = CASE WHEN $11 OR $6 IS NULL THEN t.blocked_by ELSE $8::pg_catalog.regrole END,
          note = CASE WHEN 'note' = ANY ($10) THEN NULL WHEN $6 IS NOT NULL AND NOT $11 THEN $9 ELSE coalesce($9, t.note) END"
);

statement! {
    fn exists(job: &Text, target: &Text) -> bool = query_latest,
    c"SELECT 1 FROM awty_internal.target AS t WHERE t.job = $1 AND t.target = $2"
}

statement! {
    fn lock(job: &Text, target: &Text) -> bool = query,
    c"SELECT 1 FROM awty_internal.target AS t WHERE t.job = $1 AND t.target = $2 FOR UPDATE SKIP LOCKED"
}

statement! {
    fn set_blocked(job: &Text, target: &Text, until: Time, now: Time, by: pg_sys::Oid, note: Option<&Text>) -> bool = query,
    c"INSERT INTO awty_internal.target AS t (job, target, blocked_until, blocked_at, blocked_by, note) VALUES ($1, $2, $3, $4, $5, $6)
      ON CONFLICT ON CONSTRAINT target_pkey DO UPDATE SET blocked_until = $3, blocked_at = $4, blocked_by = $5::pg_catalog.regrole, note = $6
      WHERE t.blocked_until IS NULL OR t.blocked_until < $3
      RETURNING true"
}

statement! {
    fn delete_empty(job: &Text) = query,
    c"DELETE FROM awty_internal.target AS t
      WHERE t.job = $1 AND pg_catalog.num_nonnulls(t.concurrency, t.rate, t.burst, t.blocked_until) = 0"
}

statement! {
    fn close_breakers(job: &Text, target: &Text) = query,
    c"DELETE FROM awty_internal.breaker AS b WHERE b.job = $1 AND ($2 = '' OR b.target = $2)"
}

statement! {
    pub fn count(job: &Text, limit: i64) -> i64 = query(number),
    c"SELECT pg_catalog.count(*) FROM (SELECT 1 FROM awty_internal.target AS t WHERE t.job = $1 LIMIT $2) AS counted"
}

statement! {
    fn delete_unblocked(now: Time) = query,
    c"DELETE FROM awty_internal.target AS t USING (
          SELECT x.job, x.target FROM awty_internal.target AS x
          WHERE x.blocked_until < $1 - '1 day'::pg_catalog.interval AND pg_catalog.num_nonnulls(x.concurrency, x.rate, x.burst) = 0
          ORDER BY x.job, x.target LIMIT 10000 FOR UPDATE SKIP LOCKED
      ) AS g WHERE t.job = g.job AND t.target = g.target"
}

// Reads the targets one by one by index, so that the cost does not depend on the number of checks.
statement! {
    /// Returns targets of the job, and whether each has a due check without a lease. Stops after `steps` targets, or as
    /// soon as `due` of them have such a check.
    ///
    /// `OFFSET 0` keeps PostgreSQL from computing `is_due` twice.
    pub fn walk(job: &Text, after: &Text, now: Time, steps: usize, due: usize, live: &Live) -> Vec<(Text, bool)> = query_latest,
    c"WITH RECURSIVE walk (target, is_due, step, due) AS (
          SELECT $2 COLLATE \"C\", false, 0, 0
          UNION ALL
          SELECT n.entity_name, d.is_due, w.step + 1, w.due + d.is_due::pg_catalog.int4
          FROM walk AS w
          CROSS JOIN LATERAL (
              SELECT f.entity_name, f.next_check_at FROM awty.future_job AS f
              WHERE f.job = $1 AND NOT f.held AND f.entity_name > w.target ORDER BY f.entity_name, f.next_check_at, f.id LIMIT 1
          ) AS n
          CROSS JOIN LATERAL (SELECT n.next_check_at <= $3 AND EXISTS (
              SELECT FROM awty.future_job AS f
              WHERE f.job = $1 AND f.entity_name = n.entity_name AND NOT f.held AND f.next_check_at <= $3
                AND f.id NOT IN (SELECT pg_catalog.unnest($6))
              ORDER BY f.entity_name, f.next_check_at LIMIT 1) AS is_due OFFSET 0) AS d
          WHERE w.step < $4 AND w.due < $5
      )
      SELECT w.target, w.is_due FROM walk AS w WHERE w.step > 0 ORDER BY w.step"
}

statement! {
    fn select_due_of(job: &Text, names: Vec<Text>, now: Time, most: Vec<i64>, live: &Live) -> Vec<DueCheck> = query_latest,
    c"SELECT d.id, d.next_check_at, d.check_count, d.attempt, d.scheduled_at, l.lease, d.entity_name
      FROM ROWS FROM (pg_catalog.unnest($2), pg_catalog.unnest($4)) AS g (target, most)
      CROSS JOIN LATERAL (
          SELECT f.id, f.next_check_at, f.check_count, f.attempt, f.scheduled_at, f.entity_name
          FROM awty.future_job AS f
          WHERE f.job = $1 AND f.entity_name = g.target AND NOT f.held AND f.next_check_at <= $3
            AND f.id NOT IN (SELECT pg_catalog.unnest($5))
          ORDER BY f.entity_name, f.next_check_at, f.id LIMIT g.most
      ) AS d
      LEFT JOIN LATERAL (SELECT x.lease FROM awty_internal.lease AS x WHERE x.id = d.id OFFSET 0) AS l ON true"
}

impl Row for (Text, Target) {
    fn read(rows: &Rows, row: usize) -> Option<Self> {
        let count = |column| rows.get::<i32>(row, column).map(i32::unsigned_abs);
        let at = |column| rows.get::<TimestampWithTimeZone>(row, column).map(from_timestamptz);
        let pace = rows.get::<f64>(row, 3).map(|rate| Pace::new(rate, count(4)));
        let tokens = rows.get::<f64>(row, 6).zip(at(7)).map(|(left, at)| Tokens { left, at });
        let target = Target {
            concurrency: count(2),
            pace,
            blocked_until: at(5),
            in_flight: 0,
            tokens,
            breaker: breaker(rows, row, 8),
        };
        Some((rows.get(row, 1)?, target))
    }
}

fn breaker(rows: &Rows, row: usize, first: i32) -> Option<Breaker> {
    let count = |column| rows.get::<i32>(row, column).map(i32::unsigned_abs);
    let at = |column| rows.get::<TimestampWithTimeZone>(row, column).map(from_timestamptz);
    Some(Breaker { failures: count(first)?, since: at(first + 1)?, opened_at: at(first + 2), opens: count(first + 3)? })
}

pub fn read(job: &Text, names: &[Text], live: &Live) -> Vec<(Text, Target)> {
    let mut targets = limits(job, names);
    for (name, target) in &mut targets {
        if target.concurrency.is_some() || target.breaker.is_some_and(|breaker| breaker.opened_at.is_some()) {
            target.in_flight = live.in_flight(name);
        }
    }
    targets
}

pub fn due_of(job: &Text, targets: &[(Text, usize)], now: Time, live: &Live) -> Vec<DueCheck> {
    let (names, most) = targets.iter().map(|(name, most)| (name.clone(), *most as i64)).unzip();
    select_due_of(job, names, now, most, live)
}

pub fn take_tokens(job: &Text, taken: &[(Text, Tokens, Time)], now: Time) {
    let full: Vec<Time> = taken.iter().map(|(_, _, full_at)| *full_at).collect();
    let (names, left) = taken.iter().map(|(name, tokens, _)| (name.clone(), tokens.left)).unzip();
    upsert_buckets(job, names, left, now, &full);
}

pub type Key = (Text, Text);

pub fn breakers(keys: &[Key]) -> Vec<(Key, Breaker)> {
    let (jobs, targets) = keys.iter().cloned().unzip();
    select_breakers(jobs, targets)
}

/// Locks breakers, and returns those that no other transaction has locked.
pub fn free_breakers(keys: &[Key]) -> Vec<Key> {
    let (jobs, targets) = keys.iter().cloned().unzip();
    lock_breakers(jobs, targets)
}

impl Row for (Key, Breaker) {
    fn read(rows: &Rows, row: usize) -> Option<Self> {
        Some(((rows.get(row, 1)?, rows.get(row, 2)?), breaker(rows, row, 3)?))
    }
}

/// `failed` is `None` after a call that the target has answered.
pub fn set_breaker((job, target): &Key, failed: Option<(Breaker, &str)>, now: Time) {
    let Some((breaker, text)) = failed else { return delete_breaker(job, target) };
    let Breaker { failures, since, opened_at, opens } = breaker;
    let count = |count: u32| i32::try_from(count).unwrap_or(i32::MAX);
    upsert_breaker(job, target, count(failures), since, opened_at, count(opens), message(text), now);
}

pub fn forget(now: Time) {
    delete_full(now);
    delete_forgotten(now);
    delete_unblocked(now);
}

pub struct TargetChanges {
    pub concurrency: Option<i32>,
    pub rate: Option<pg_sys::Datum>,
    pub burst: Option<i32>,
    pub blocked_until: Option<clock::Timestamp>,
    pub note: Option<Text>,
    pub reset: Vec<Text>,
    pub unblock: bool,
}

/// An empty target stands for the whole job.
pub fn alter(job: &Text, target: &Text, wanted: &TargetChanges, by: pg_sys::Oid, now: Time) {
    let args = [
        Some(job.datum()),
        Some(target.datum()),
        wanted.concurrency.and_then(arg),
        wanted.rate,
        wanted.burst.and_then(arg),
        wanted.blocked_until.map(pg_sys::Datum::from),
        time(now),
        arg(by),
        wanted.note.as_ref().map(Text::datum),
        arg(wanted.reset.clone()),
        arg(wanted.unblock),
    ];
    upsert_target().execute(&args);
    delete_empty(job);
    if wanted.unblock {
        close_breakers(job, target);
    }
}

/// Blocks calls to the target until `until`, unless the target is already blocked for longer. The caller must hold the
/// target's lock.
pub fn block(job: &Text, target: &Text, until: Time, note: Option<&Text>, by: pg_sys::Oid, now: Time) -> bool {
    let is_free = exists(job, target) == lock(job, target);
    is_free && set_blocked(job, target, until, now, by, note)
}
