use super::repetition::StoredRepetition;
use crate::store::statement::Rows;
use crate::store::typed::statement;
use awty_core::Time;

pub struct Piece {
    pub last: Option<i64>,
    pub alone: Vec<i64>,
    pub stray: Vec<i64>,
}

statement! {
    pub fn piece(after: i64, size: i64) -> Piece = query(read_piece),
    c"SELECT CASE WHEN pg_catalog.count(*) = $2 THEN pg_catalog.max(p.id) END,
          pg_catalog.array_agg(p.id) FILTER (WHERE p.is_stray),
          pg_catalog.array_agg(p.id) FILTER (WHERE NOT p.is_stray AND NOT EXISTS (
              SELECT FROM awty.future_job AS f
              WHERE f.entity_name = p.entity_name AND f.entity_key = p.entity_key AND f.job = p.job))
      FROM (SELECT r.id, r.entity_name, r.entity_key, r.job, NOT EXISTS (
                SELECT FROM awty.job AS j JOIN pg_catalog.pg_roles AS o ON o.oid = j.role::pg_catalog.oid WHERE j.job = r.job
            ) AS is_stray
            FROM awty_internal.repetition AS r WHERE r.id > $1 ORDER BY r.id LIMIT $2) AS p"
}

statement! {
    pub fn lock(repetitions: &[i64]) -> Vec<StoredRepetition> = query,
    c"SELECT r.id, r.job, r.entity_name, r.entity_key, r.every, r.cron, r.zone, r.starts, r.ends, r.jitter, r.catch_up, r.calendar
      FROM awty_internal.repetition AS r WHERE r.id = ANY ($1) ORDER BY r.id FOR UPDATE SKIP LOCKED"
}

statement! {
    pub fn zoned(after: i64, size: i64, now: Time) -> (Option<i64>, Vec<i64>) = query(read_zoned),
    c"SELECT pg_catalog.max(p.id), pg_catalog.array_agg(f.id) FILTER (WHERE f.first_check_at > $3)
      FROM (SELECT r.id, r.entity_name, r.entity_key, r.job
            FROM awty_internal.repetition AS r WHERE r.id > $1 AND (r.zone <> 'UTC' OR r.calendar IS NOT NULL) ORDER BY r.id LIMIT $2) AS p
      LEFT JOIN awty.future_job AS f ON f.entity_name = p.entity_name AND f.entity_key = p.entity_key AND f.job = p.job"
}

statement! {
    pub fn lock_pending(checks: &[i64]) -> Vec<i64> = query,
    c"SELECT id FROM awty.future_job WHERE id = ANY ($1) ORDER BY id FOR UPDATE SKIP LOCKED"
}

statement! {
    /// The caller must have locked the check's row.
    pub fn move_to(check: i64, slot: Time) = query,
    c"UPDATE awty.future_job SET first_check_at = $2, next_check_at = $2 WHERE id = $1"
}

fn read_piece(rows: &Rows) -> Piece {
    Piece { last: rows.first(1), stray: rows.first_ids(2), alone: rows.first_ids(3) }
}

fn read_zoned(rows: &Rows) -> (Option<i64>, Vec<i64>) {
    (rows.first(1), rows.first_ids(2))
}
