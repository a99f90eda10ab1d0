//! Invariant: a claim writes buckets under the lock on the job's claims. An answer writes breakers under the target's
//! lock, and skips the target if another session holds this lock. So claims and answers never wait for each other's
//! locks on these tables.

use super::lease::DueCheck;
use crate::pg::array::{self, TEXT};
use crate::pg::clock;
use crate::pg::text::Text;
use crate::store::statement::{Arg, Rows};
use crate::store::typed::{Outcome, is_true, number, statement};
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

statement!(
    select_these,
    [TEXTOID, TEXTARRAYOID, TIMESTAMPTZOID],
    c"SELECT g.name, coalesce(o.concurrency, a.concurrency), coalesce(o.rate, a.rate)::pg_catalog.float8,
          coalesce(o.burst, CASE WHEN o.rate IS NULL THEN a.burst END), greatest(o.blocked_until, a.blocked_until), b.tokens, b.at,
          k.failures, k.since, k.opened_at, k.opens,
          CASE WHEN k.opened_at IS NOT NULL OR o.concurrency IS NOT NULL OR a.concurrency IS NOT NULL THEN
              (SELECT pg_catalog.count(*) FROM awty_internal.lease AS l WHERE l.job = $1 AND l.entity_name = g.name AND l.expires_at > $3) END
      FROM pg_catalog.unnest($2) AS g (name)
      LEFT JOIN LATERAL (SELECT x.* FROM awty_internal.target AS x WHERE x.job = $1 AND x.target = g.name OFFSET 0) AS o ON true
      LEFT JOIN LATERAL (SELECT x.* FROM awty_internal.target AS x WHERE x.job = $1 AND x.target = '' OFFSET 0) AS a ON true
      LEFT JOIN LATERAL (SELECT x.* FROM awty_internal.bucket AS x WHERE x.job = $1 AND x.target = g.name OFFSET 0) AS b ON true
      LEFT JOIN LATERAL (SELECT x.* FROM awty_internal.breaker AS x WHERE x.job = $1 AND x.target = g.name OFFSET 0) AS k ON true"
);

// A claim must not wait for another transaction that has locked a bucket.
statement!(
    upsert_buckets,
    [TEXTOID, TEXTARRAYOID, FLOAT8ARRAYOID, TIMESTAMPTZOID, TIMESTAMPTZARRAYOID],
    c"WITH free AS MATERIALIZED (
          SELECT x.target FROM awty_internal.bucket AS x WHERE x.job = $1 AND x.target = ANY ($2) FOR NO KEY UPDATE SKIP LOCKED)
      INSERT INTO awty_internal.bucket AS b (job, target, tokens, at, full_at)
      SELECT $1, g.target, g.tokens, $4, g.full_at
      FROM ROWS FROM (pg_catalog.unnest($2), pg_catalog.unnest($3), pg_catalog.unnest($5)) AS g (target, tokens, full_at)
      WHERE EXISTS (SELECT FROM free AS f WHERE f.target = g.target)
         OR NOT EXISTS (SELECT FROM awty_internal.bucket AS x WHERE x.job = $1 AND x.target = g.target)
      ON CONFLICT ON CONSTRAINT bucket_pkey DO UPDATE SET tokens = excluded.tokens, at = excluded.at, full_at = excluded.full_at"
);

statement!(
    select_breakers,
    [TEXTARRAYOID, TEXTARRAYOID],
    c"SELECT b.job, b.target, b.failures, b.since, b.opened_at, b.opens
      FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) AS g (job, target)
      CROSS JOIN LATERAL (SELECT x.* FROM awty_internal.breaker AS x WHERE x.job = g.job AND x.target = g.target OFFSET 0) AS b"
);

statement!(
    upsert_breaker,
    [TEXTOID, TEXTOID, INT4OID, TIMESTAMPTZOID, TIMESTAMPTZOID, INT4OID, TEXTOID, TIMESTAMPTZOID],
    c"INSERT INTO awty_internal.breaker (job, target, failures, since, opened_at, opens, message, failed_at)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
      ON CONFLICT ON CONSTRAINT breaker_pkey DO UPDATE SET failures = excluded.failures, since = excluded.since,
          opened_at = excluded.opened_at, opens = excluded.opens, message = excluded.message,
          failed_at = excluded.failed_at"
);

statement!(
    delete_breaker,
    [TEXTOID, TEXTOID],
    c"DELETE FROM awty_internal.breaker AS b WHERE b.job = $1 AND b.target = $2"
);

statement!(
    delete_full,
    [TIMESTAMPTZOID],
    c"DELETE FROM awty_internal.bucket AS b USING (
          SELECT x.job, x.target FROM awty_internal.bucket AS x WHERE x.full_at <= $1
          ORDER BY x.job, x.target LIMIT 10000 FOR UPDATE SKIP LOCKED
      ) AS g WHERE b.job = g.job AND b.target = g.target"
);

statement!(
    delete_forgotten,
    [TIMESTAMPTZOID],
    c"DELETE FROM awty_internal.breaker AS b USING (
          SELECT x.job, x.target FROM awty_internal.breaker AS x
          WHERE x.failed_at < $1 - '1 day'::pg_catalog.interval
          ORDER BY x.job, x.target LIMIT 10000 FOR UPDATE SKIP LOCKED
      ) AS g WHERE b.job = g.job AND b.target = g.target"
);

statement!(
    upsert_target,
    [TEXTOID, TEXTOID, INT4OID, FLOAT8OID, INT4OID, TIMESTAMPTZOID, TIMESTAMPTZOID, OIDOID, TEXTOID, TEXTARRAYOID, BOOLOID],
    c"INSERT INTO awty_internal.target AS t (job, target, concurrency, rate, burst, blocked_until, blocked_at, blocked_by, note)
      VALUES ($1, $2, $3, $4::pg_catalog.numeric, $5, $6, CASE WHEN $6 IS NOT NULL THEN $7 END, CASE WHEN $6 IS NOT NULL THEN $8::pg_catalog.regrole END, $9)
      ON CONFLICT ON CONSTRAINT target_pkey DO UPDATE SET
          concurrency = CASE WHEN 'concurrency' = ANY ($10) THEN NULL ELSE coalesce($3, t.concurrency) END,
          rate = CASE WHEN 'rate' = ANY ($10) THEN NULL ELSE coalesce($4::pg_catalog.numeric, t.rate) END,
          burst = CASE WHEN 'burst' = ANY ($10) THEN NULL ELSE coalesce($5, t.burst) END,
          blocked_until = CASE WHEN $11 THEN NULL ELSE coalesce($6, t.blocked_until) END,
          blocked_at = CASE WHEN $11 THEN NULL WHEN $6 IS NULL THEN t.blocked_at ELSE $7 END,
          blocked_by = CASE WHEN $11 THEN NULL WHEN $6 IS NULL THEN t.blocked_by ELSE $8::pg_catalog.regrole END,
          note = CASE WHEN 'note' = ANY ($10) THEN NULL WHEN $6 IS NOT NULL OR $11 THEN $9 ELSE coalesce($9, t.note) END"
);

statement!(
    select_target,
    [TEXTOID, TEXTOID],
    c"SELECT 1 FROM awty_internal.target AS t WHERE t.job = $1 AND t.target = $2"
);

statement!(
    lock_target,
    [TEXTOID, TEXTOID],
    c"SELECT 1 FROM awty_internal.target AS t WHERE t.job = $1 AND t.target = $2 FOR UPDATE SKIP LOCKED"
);

statement!(
    block_target,
    [TEXTOID, TEXTOID, TIMESTAMPTZOID, TIMESTAMPTZOID, OIDOID, TEXTOID],
    c"INSERT INTO awty_internal.target AS t (job, target, blocked_until, blocked_at, blocked_by, note) VALUES ($1, $2, $3, $4, $5, $6)
      ON CONFLICT ON CONSTRAINT target_pkey DO UPDATE SET blocked_until = $3, blocked_at = $4, blocked_by = $5::pg_catalog.regrole, note = $6
      WHERE t.blocked_until IS NULL OR t.blocked_until < $3
      RETURNING true"
);

statement!(
    delete_empty,
    [TEXTOID],
    c"DELETE FROM awty_internal.target AS t
      WHERE t.job = $1 AND pg_catalog.num_nonnulls(t.concurrency, t.rate, t.burst, t.blocked_until) = 0"
);

statement!(
    close_breakers,
    [TEXTOID, TEXTOID],
    c"DELETE FROM awty_internal.breaker AS b WHERE b.job = $1 AND ($2 = '' OR b.target = $2)"
);

statement! {
    pub fn count(job: &Text, limit: i64) -> i64 = query(number),
    c"SELECT pg_catalog.count(*) FROM (SELECT 1 FROM awty_internal.target AS t WHERE t.job = $1 LIMIT $2) AS counted"
}

statement! {
    pub fn forget_job(job: &Text) = query,
    c"WITH limits AS (DELETE FROM awty_internal.target AS t WHERE t.job = $1), buckets AS (DELETE FROM awty_internal.bucket AS b WHERE b.job = $1)
      DELETE FROM awty_internal.breaker AS k WHERE k.job = $1"
}

statement!(
    delete_unblocked,
    [TIMESTAMPTZOID],
    c"DELETE FROM awty_internal.target AS t USING (
          SELECT x.job, x.target FROM awty_internal.target AS x
          WHERE x.blocked_until < $1 - '1 day'::pg_catalog.interval AND pg_catalog.num_nonnulls(x.concurrency, x.rate, x.burst) = 0
          ORDER BY x.job, x.target LIMIT 10000 FOR UPDATE SKIP LOCKED
      ) AS g WHERE t.job = g.job AND t.target = g.target"
);

// The statement goes from one target to the next by index, so its cost does not depend on the number of checks per
// target.
statement!(
    walk_targets,
    [TEXTOID, TEXTOID, TIMESTAMPTZOID, INT8OID, INT8OID],
    c"WITH RECURSIVE walk (target, is_due, step, due) AS (
          (SELECT n.entity_name, d.is_due, 1, d.is_due::pg_catalog.int4
           FROM (SELECT f.entity_name, f.next_check_at FROM awty.future_job AS f
                 WHERE f.job = $1 AND NOT f.held AND f.entity_name > $2 ORDER BY f.entity_name, f.next_check_at, f.id LIMIT 1) AS n
           CROSS JOIN LATERAL (SELECT n.next_check_at <= $3 AND EXISTS (
               SELECT FROM awty.future_job AS f
               LEFT JOIN LATERAL (SELECT x.expires_at FROM awty_internal.lease AS x WHERE x.id = f.id OFFSET 0) AS l ON true
               WHERE f.job = $1 AND f.entity_name = n.entity_name AND NOT f.held AND f.next_check_at <= $3
                 AND (l.expires_at IS NULL OR l.expires_at <= $3)
               ORDER BY f.entity_name, f.next_check_at LIMIT 1) AS is_due) AS d)
          UNION ALL
          SELECT n.entity_name, d.is_due, w.step + 1, w.due + d.is_due::pg_catalog.int4
          FROM walk AS w
          CROSS JOIN LATERAL (
              SELECT f.entity_name, f.next_check_at FROM awty.future_job AS f
              WHERE f.job = $1 AND NOT f.held AND f.entity_name > w.target ORDER BY f.entity_name, f.next_check_at, f.id LIMIT 1
          ) AS n
          CROSS JOIN LATERAL (SELECT n.next_check_at <= $3 AND EXISTS (
              SELECT FROM awty.future_job AS f
              LEFT JOIN LATERAL (SELECT x.expires_at FROM awty_internal.lease AS x WHERE x.id = f.id OFFSET 0) AS l ON true
              WHERE f.job = $1 AND f.entity_name = n.entity_name AND NOT f.held AND f.next_check_at <= $3
                AND (l.expires_at IS NULL OR l.expires_at <= $3)
              ORDER BY f.entity_name, f.next_check_at LIMIT 1) AS is_due) AS d
          WHERE w.step < $4 AND w.due < $5
      )
      SELECT w.target, w.is_due FROM walk AS w ORDER BY w.step"
);

statement!(
    select_due_of,
    [TEXTOID, TEXTARRAYOID, TIMESTAMPTZOID, INT8ARRAYOID],
    c"SELECT d.id, d.next_check_at, d.check_count, d.attempt, d.scheduled_at, d.lease, d.entity_name
      FROM ROWS FROM (pg_catalog.unnest($2), pg_catalog.unnest($4)) AS g (target, most)
      CROSS JOIN LATERAL (
          SELECT f.id, f.next_check_at, f.check_count, f.attempt, f.scheduled_at, l.lease, f.entity_name
          FROM awty.future_job AS f
          LEFT JOIN LATERAL (SELECT x.lease, x.expires_at FROM awty_internal.lease AS x WHERE x.id = f.id OFFSET 0) AS l ON true
          WHERE f.job = $1 AND f.entity_name = g.target AND NOT f.held AND f.next_check_at <= $3
            AND (l.expires_at IS NULL OR l.expires_at <= $3)
          ORDER BY f.entity_name, f.next_check_at, f.id LIMIT g.most
      ) AS d"
);

fn texts<'a>(texts: impl Iterator<Item = &'a Text>) -> Arg {
    // SAFETY: the values are texts.
    Some(unsafe { array::build(texts.map(|text| Some(text.datum())), TEXT) })
}

pub fn read(job: &Text, names: &[Text], now: Time) -> Vec<(Text, Target)> {
    let args = [Some(job.datum()), texts(names.iter()), time(now)];
    let one = |rows: &Rows, row| {
        let count = |column| rows.get::<i32>(row, column).map(i32::unsigned_abs);
        let at = |column| rows.get::<TimestampWithTimeZone>(row, column).map(from_timestamptz);
        let pace = rows.get::<f64>(row, 3).map(|rate| Pace::new(rate, count(4)));
        let tokens = rows.get::<f64>(row, 6).zip(at(7)).map(|(left, at)| Tokens { left, at });
        let in_flight = rows.get::<i64>(row, 12).unwrap_or(0);
        let target = Target {
            concurrency: count(2),
            pace,
            blocked_until: at(5),
            in_flight: u32::try_from(in_flight).unwrap_or(u32::MAX),
            tokens,
            breaker: breaker(rows, row, 8),
        };
        Some((rows.get(row, 1)?, target))
    };
    select_these().query_latest(&args, |rows| rows.all(|row| one(rows, row)))
}

fn breaker(rows: &Rows, row: usize, first: i32) -> Option<Breaker> {
    let count = |column| rows.get::<i32>(row, column).map(i32::unsigned_abs);
    let at = |column| rows.get::<TimestampWithTimeZone>(row, column).map(from_timestamptz);
    Some(Breaker { failures: count(first)?, since: at(first + 1)?, opened_at: at(first + 2), opens: count(first + 3)? })
}

pub fn due_of(job: &Text, targets: &[(Text, usize)], now: Time) -> Vec<DueCheck> {
    let names = targets.iter().map(|(name, _)| Some(name.datum()));
    // SAFETY: the values are texts.
    let names = unsafe { array::build(names, TEXT) };
    let most: Vec<i64> = targets.iter().map(|(_, most)| *most as i64).collect();
    let args = [Some(job.datum()), Some(names), time(now), arg(most)];
    select_due_of().query_latest(&args, Outcome::read)
}

/// Stops after `due` targets that have a check to hand out, or after `steps` targets in all.
pub fn walk(job: &Text, after: &Text, now: Time, steps: usize, due: usize) -> Vec<(Text, bool)> {
    let args = [Some(job.datum()), Some(after.datum()), time(now), arg(steps as i64), arg(due as i64)];
    let read = |rows: &Rows, row| Some((rows.get(row, 1)?, rows.get(row, 2)?));
    walk_targets().query_latest(&args, |rows| rows.all(|row| read(rows, row)))
}

pub fn take_tokens(job: &Text, taken: &[(Text, Tokens, Time)], now: Time) {
    // SAFETY: the values are times.
    let full = unsafe { array::build(taken.iter().map(|(_, _, full_at)| time(*full_at)), array::TIME) };
    let left: Vec<f64> = taken.iter().map(|(_, tokens, _)| tokens.left).collect();
    let args = [Some(job.datum()), texts(taken.iter().map(|(name, ..)| name)), arg(left), time(now), Some(full)];
    upsert_buckets().execute(&args);
}

pub type Key = (Text, Text);

pub fn breakers(keys: &[Key]) -> Vec<(Key, Breaker)> {
    let args = [texts(keys.iter().map(|(job, _)| job)), texts(keys.iter().map(|(_, target)| target))];
    let one = |rows: &Rows, row| Some(((rows.get(row, 1)?, rows.get(row, 2)?), breaker(rows, row, 3)?));
    select_breakers().query_latest(&args, |rows| rows.all(|row| one(rows, row)))
}

/// If `failed` is `None`, the target has answered.
pub fn set_breaker((job, target): &Key, failed: Option<(Breaker, &str)>, now: Time) {
    let (job, target) = (Some(job.datum()), Some(target.datum()));
    let Some((breaker, text)) = failed else {
        delete_breaker().execute(&[job, target]);
        return;
    };
    let count = |count: u32| arg(i32::try_from(count).unwrap_or(i32::MAX));
    let opened_at = breaker.opened_at.and_then(time);
    let args = [
        job,
        target,
        count(breaker.failures),
        time(breaker.since),
        opened_at,
        count(breaker.opens),
        message(text),
        time(now),
    ];
    upsert_breaker().execute(&args);
}

pub fn forget(now: Time) {
    delete_full().execute(&[time(now)]);
    delete_forgotten().execute(&[time(now)]);
    delete_unblocked().execute(&[time(now)]);
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
        texts(wanted.reset.iter()),
        arg(wanted.unblock),
    ];
    upsert_target().execute(&args);
    delete_empty().execute(&[Some(job.datum())]);
    if wanted.unblock {
        close_breakers().execute(&[Some(job.datum()), Some(target.datum())]);
    }
}

/// Does nothing if the target is blocked for longer or another transaction is writing it. The caller holds the target's
/// lock.
pub fn block(job: &Text, target: &Text, until: Time, note: Option<&Text>, by: pg_sys::Oid, now: Time) -> bool {
    let key = [Some(job.datum()), Some(target.datum())];
    let args = [Some(job.datum()), Some(target.datum()), time(until), time(now), arg(by), note.map(Text::datum)];
    let is_free = select_target().query_latest(&key, Rows::len) == lock_target().query(&key, Rows::len);
    is_free && block_target().query(&args, Rows::len) > 0
}
