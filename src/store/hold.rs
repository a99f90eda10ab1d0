//! A hold keeps a pending check from running.
//!
//! A run that began before the hold was committed can still end the check. If the check has a repetition, the
//! maintainer then copies the hold to the repetition's next check.
//!
//! Invariant: workers and inspections never wait for a client, because they skip rows that a client is releasing.

use super::typed::{row, statement};
use crate::pg::text::Text;
use awty_core::Time;
use pgrx::pg_sys;

pub struct Held {
    pub at: Time,
    pub until: Option<Time>,
}

row!(Held { at, until });

statement! {
    /// An existing hold keeps its `held_at`, because the check has been held since this time.
    pub fn put(id: i64, runs: bool, by: pg_sys::Oid, now: Time, note: Option<&Text>, until: Option<Time>, job: &Text) = query,
    c"INSERT INTO awty_internal.hold (check_id, job, held_by, held_at, changed_at, note, held_until, repetition_id) VALUES ($1, $7, $3, $4, $4, $5, $6, (
          SELECT r.id FROM awty.future_job AS f JOIN awty_internal.repetition AS r
              ON r.entity_name = f.entity_name AND r.entity_key = f.entity_key AND r.job = f.job
          WHERE $2 AND f.id = $1))
      ON CONFLICT (check_id) DO UPDATE SET held_by = excluded.held_by, note = excluded.note, held_until = excluded.held_until,
          changed_at = excluded.changed_at, repetition_id = excluded.repetition_id"
}

statement! {
    pub fn remove(id: i64) -> Option<Held> = query,
    c"DELETE FROM awty_internal.hold WHERE check_id = $1 RETURNING held_at, held_until"
}

statement! {
    pub fn remove_passed(id: i64, now: Time) -> Option<Held> = query,
    c"DELETE FROM awty_internal.hold AS h WHERE h.check_id = ANY (ARRAY(
          SELECT p.check_id FROM awty_internal.hold AS p WHERE p.check_id = $1 AND p.held_until <= $2 FOR UPDATE SKIP LOCKED))
      RETURNING h.held_at, h.held_until"
}

// Writes `IS NOT DISTINCT FROM true`, because the planner could otherwise read the whole index of held checks.
statement! {
    pub fn is_after_crashes(id: i64, max_crashes: i32) -> bool = query,
    c"SELECT 1 FROM awty.future_job AS f
      WHERE f.id = $1 AND f.held IS NOT DISTINCT FROM true AND (
          NOT EXISTS (SELECT FROM awty_internal.hold AS h WHERE h.check_id = f.id)
          OR EXISTS (SELECT FROM awty_internal.check_stat AS t WHERE t.check_id = f.id AND t.crashes::pg_catalog.int8 + t.exits >= $2))"
}

statement! {
    pub fn remove_lost(entity_name: &Text, entity_key: &Text, job: &Text) -> bool = query,
    c"DELETE FROM awty_internal.hold AS h USING awty_internal.repetition AS r
      WHERE r.entity_name = $1 AND r.entity_key = $2 AND r.job = $3 AND h.repetition_id = r.id AND h.repetition_id IS NOT NULL"
}

statement! {
    /// Returns the holds that [`carry_lost`] has to copy, each with the role of its job.
    ///
    /// Each LIMIT makes the planner look up single rows. For a join of empty tables, it plans to read whole indexes.
    pub fn lost() -> Vec<(pg_sys::Oid, i64)> = query,
    c"SELECT j.role::pg_catalog.oid, h.check_id
      FROM awty_internal.hold AS h
      CROSS JOIN LATERAL (
          SELECT r.entity_name, r.entity_key, r.job FROM awty_internal.repetition AS r WHERE r.id = h.repetition_id LIMIT 1) AS r
      CROSS JOIN LATERAL (
          SELECT f.id FROM awty.future_job AS f
          WHERE f.entity_name = r.entity_name AND f.entity_key = r.entity_key AND f.job = r.job LIMIT 1) AS f
      CROSS JOIN LATERAL (SELECT j.role FROM awty.job AS j WHERE j.job = r.job LIMIT 1) AS j
      WHERE h.repetition_id IS NOT NULL AND f.id <> h.check_id"
}

// FOR KEY SHARE locks each hold that is copied. A client that releases such a hold waits for the lock, and then
// releases the copy too.
statement! {
    /// Copies the hold of an ended check to the next check of the same repetition, before [`apply`] marks the next check
    /// as held.
    ///
    /// Waits for a client that is holding the next check.
    pub fn carry_lost(id: i64) = query,
    c"INSERT INTO awty_internal.hold (check_id, job, held_by, held_at, changed_at, note, held_until, repetition_id)
      SELECT f.id, f.job, h.held_by, h.held_at, h.changed_at, h.note, h.held_until, h.repetition_id
      FROM awty_internal.hold AS h
      JOIN awty_internal.repetition AS r ON r.id = h.repetition_id
      JOIN awty.future_job AS f ON f.entity_name = r.entity_name AND f.entity_key = r.entity_key AND f.job = r.job
      WHERE h.check_id = $1 AND f.id <> h.check_id FOR KEY SHARE OF h SKIP LOCKED
      ON CONFLICT (check_id) DO UPDATE SET held_by = excluded.held_by, held_at = excluded.held_at, note = excluded.note,
          held_until = excluded.held_until, changed_at = excluded.changed_at
      WHERE hold.changed_at < excluded.changed_at"
}

statement! {
    fn carry_all(repetitions: Vec<i64>, checks: Vec<i64>) = query,
    c"INSERT INTO awty_internal.hold (check_id, job, held_by, held_at, changed_at, note, held_until)
      SELECT f.id, f.job, h.held_by, h.held_at, h.changed_at, h.note, h.held_until
      FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) AS n (repetition_id, check_id)
      JOIN awty_internal.hold AS h ON h.check_id = n.check_id
      JOIN awty_internal.repetition AS r ON r.id = n.repetition_id
      JOIN awty.future_job AS f ON f.entity_name = r.entity_name AND f.entity_key = r.entity_key AND f.job = r.job
      ON CONFLICT (check_id) DO NOTHING"
}

statement! {
    pub fn late(after: i64, limit: i64) -> Vec<i64> = query,
    c"SELECT f.id FROM awty_internal.hold AS h JOIN awty.future_job AS f ON f.id = h.check_id
      WHERE h.check_id > $1 AND NOT f.held ORDER BY h.check_id LIMIT $2 FOR KEY SHARE OF h SKIP LOCKED"
}

// Skips a hold that a client is releasing. If the client rolls back the release, a later inspection finds the hold.
statement! {
    /// Returns which checks are on hold, even if their column `held` is still false because a run was in progress.
    pub fn in_force(ids: &[i64]) -> Vec<i64> = query,
    c"SELECT h.check_id FROM awty_internal.hold AS h WHERE h.check_id = ANY ($1) FOR KEY SHARE SKIP LOCKED"
}

statement! {
    pub fn apply(ids: Vec<i64>) = query,
    c"UPDATE awty.future_job SET held = true WHERE id = ANY ($1)"
}

statement! {
    /// Deletes holds whose check has ended, except holds that [`carry_lost`] still has to copy to another check.
    pub fn remove_orphans(limit: i64) = query,
    c"DELETE FROM awty_internal.hold AS h WHERE h.check_id IN (
          SELECT o.check_id FROM awty_internal.hold AS o
          WHERE NOT EXISTS (SELECT FROM awty.future_job AS f WHERE f.id = o.check_id) AND NOT EXISTS (
              SELECT FROM awty_internal.repetition AS r
              JOIN awty.future_job AS f ON f.entity_name = r.entity_name AND f.entity_key = r.entity_key AND f.job = r.job
              WHERE r.id = o.repetition_id AND NOT EXISTS (
                  SELECT FROM awty_internal.hold AS n WHERE n.check_id = f.id AND (n.changed_at < o.changed_at) IS NOT TRUE))
          LIMIT $1 FOR UPDATE SKIP LOCKED)"
}

statement! {
    pub fn silence(ids: Vec<i64>, by: pg_sys::Oid, now: Time, job: &Text) = query,
    c"INSERT INTO awty_internal.hold (check_id, job, held_by, held_at, silent) SELECT i.id, $4, $2, $3, true FROM pg_catalog.unnest($1) AS i (id)
      ON CONFLICT (check_id) DO UPDATE SET silent = true, held_by = excluded.held_by, held_at = excluded.held_at, note = NULL, held_until = NULL"
}

statement! {
    pub fn silenced(ids: &[i64]) -> Vec<i64> = query,
    c"SELECT h.check_id FROM awty_internal.hold AS h WHERE h.check_id = ANY ($1) AND h.silent"
}

pub fn is_silenced(id: i64) -> bool {
    !silenced(&[id]).is_empty()
}

statement! {
    fn delete_silent(ids: &[i64]) = query,
    c"WITH ended AS (DELETE FROM awty_internal.hold AS h WHERE h.check_id = ANY ($1) AND h.silent RETURNING h.check_id)
      UPDATE awty.future_job AS f SET held = false FROM ended WHERE f.id = ended.check_id"
}

pub fn unsilence(ids: &[i64]) {
    if !ids.is_empty() {
        delete_silent(ids);
    }
}

pub fn carry(ended: &[(i64, i64)]) {
    let (repetitions, checks): (Vec<i64>, Vec<i64>) = ended.iter().copied().unzip();
    carry_all(repetitions, checks);
}

statement! {
    pub fn first_end(role: pg_sys::Oid, after: Time) -> Option<Time> = query,
    c"SELECT h.held_until
      FROM (SELECT o.job FROM awty.job AS o WHERE $1 IS NULL OR o.role::pg_catalog.oid = $1 ORDER BY o.job) AS j
      CROSS JOIN LATERAL (
          SELECT n.held_until FROM awty_internal.hold AS n
          WHERE n.job = j.job AND n.held_until IS NOT NULL AND n.held_until > $2 ORDER BY n.held_until LIMIT 1
      ) AS h
      ORDER BY h.held_until LIMIT 1"
}

statement! {
    pub fn jobs_passed(now: Time, role: pg_sys::Oid) -> Vec<(pg_sys::Oid, Text)> = query,
    c"SELECT j.role::pg_catalog.oid, j.job FROM awty.job AS j
      CROSS JOIN LATERAL (
          SELECT FROM awty_internal.hold AS n
          WHERE n.job = j.job AND n.held_until IS NOT NULL AND n.held_until <= $1 LIMIT 1
      ) AS h
      WHERE $2 IS NULL OR j.role::pg_catalog.oid = $2
      ORDER BY j.role::pg_catalog.oid, j.job"
}

statement! {
    pub fn passed(job: &Text, now: Time, after: Time, after_id: i64, limit: i64) -> Vec<(Time, i64)> = query,
    c"SELECT h.held_until, h.check_id FROM awty_internal.hold AS h
      WHERE h.job = $1 AND h.held_until IS NOT NULL AND h.held_until <= $2 AND (h.held_until, h.check_id) > ($3, $4)
      ORDER BY h.held_until, h.check_id LIMIT $5"
}

statement! {
    pub fn remove_unheld(ids: &[i64], now: Time) -> u64 = query,
    c"DELETE FROM awty_internal.hold AS h WHERE h.check_id = ANY (ARRAY(
          SELECT o.check_id FROM awty_internal.hold AS o
          WHERE o.check_id = ANY ($1) AND o.held_until <= $2
            AND NOT EXISTS (SELECT FROM awty.future_job AS f WHERE f.id = o.check_id AND f.held IS NOT DISTINCT FROM true)
          FOR UPDATE SKIP LOCKED))"
}
