//! Statements of the inspections. Each reads the jobs one by one by index, so that its cost does not depend on the
//! number of checks.

use super::typed::statement;
use crate::pg::clock::Timestamp;
use awty_core::Time;
use pgrx::datum::TimestampWithTimeZone;
use pgrx::pg_sys;

statement! {
    pub fn lock_some_of(ids: &[i64]) -> Vec<i64> = query,
    c"SELECT id FROM awty.future_job WHERE id = ANY ($1) ORDER BY id FOR UPDATE SKIP LOCKED"
}

statement!(
    select_first_per_role,
    [],
    c"SELECT j.role::pg_catalog.oid, pg_catalog.min(f.next_check_at)
      FROM awty.job AS j
      CROSS JOIN LATERAL (
          SELECT p.next_check_at FROM awty.future_job AS p
          WHERE p.job = j.job AND NOT p.held ORDER BY p.next_check_at LIMIT 1
      ) AS f
      WHERE NOT j.paused AND j.function_name IS NOT NULL GROUP BY j.role"
);

statement! {
    /// Returns whether any job exists. Without jobs, awty creates no partitions, because a restore in progress may
    /// create them.
    pub fn any_job() -> bool = query,
    c"SELECT 1 FROM awty.job LIMIT 1"
}

statement! {
    fn select_orphans(limit: i64) -> Vec<i64> = query,
    c"WITH RECURSIVE n (job) AS (
          (SELECT f.job FROM awty.future_job AS f WHERE NOT f.held ORDER BY f.job LIMIT 1)
          UNION ALL
          SELECT (SELECT f.job FROM awty.future_job AS f WHERE NOT f.held AND f.job > n.job ORDER BY f.job LIMIT 1)
          FROM n WHERE n.job IS NOT NULL
      )
      SELECT o.id FROM n CROSS JOIN LATERAL (
          SELECT f.id FROM awty.future_job AS f WHERE NOT f.held AND f.job = n.job LIMIT $1
      ) AS o
      WHERE NOT EXISTS (SELECT FROM awty.job AS j WHERE j.job = n.job) LIMIT $1"
}

statement! {
    fn select_roleless(now: Time, limit: i64) -> Vec<i64> = query,
    c"SELECT o.id FROM awty.job AS j CROSS JOIN LATERAL (
          SELECT f.id FROM awty.future_job AS f
          WHERE f.job = j.job AND NOT f.held AND f.next_check_at <= $1 ORDER BY f.next_check_at LIMIT $2
      ) AS o
      WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_roles AS r WHERE r.oid = j.role::pg_catalog.oid) LIMIT $2"
}

pub fn first_per_role() -> Vec<(pg_sys::Oid, Timestamp)> {
    select_first_per_role()
        .query(&[], |rows| rows.all(|row| Some((rows.get(row, 1)?, rows.get::<TimestampWithTimeZone>(row, 2)?.into()))))
}

/// Locks checks whose job is no longer registered. A session may commit such a check after `awty.unregister()`.
pub fn lock_orphans(limit: i64) -> Vec<i64> {
    lock_some_of(&select_orphans(limit))
}

pub fn lock_roleless(now: Time, limit: i64) -> Vec<i64> {
    lock_some_of(&select_roleless(now, limit))
}
