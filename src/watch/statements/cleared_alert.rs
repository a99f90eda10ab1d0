use crate::pg::text::Text;
use crate::store::statement::Kept;
use crate::store::typed::statement;
use awty_core::Time;
use pgrx::pg_sys;

statement! {
    pub fn clear(rule: &Text, keys: &[Text], now: Time) = query,
    c"UPDATE awty.alert AS a SET cleared_at = $3, held_by = NULL, held_until = NULL, note = NULL
      WHERE a.cleared_at IS NULL AND a.id = ANY (ARRAY(
          SELECT f.id FROM pg_catalog.unnest($2) AS k (key)
          CROSS JOIN LATERAL (
              SELECT o.id FROM awty.alert AS o WHERE o.rule = $1 AND o.entity_key = k.key AND o.cleared_at IS NULL LIMIT 1
          ) AS f))"
}

// An alert counts as reported if it was last reported (`told_at`) at or after its rise to level 1 (`raised_at`). A
// report before the rise was an early reminder.
//
// The end of a hold sets `told_at` of a reported alert to NULL, so NULL counts as reported.
statement! {
    /// Clears the open alerts of these rows. For each alert that was reported at level 1 or above, schedules a check
    /// whose key is the alert's id.
    pub fn clear_and_schedule(rule: &Text, keys: &[Text], now: Time, entity_name: &Text, role: pg_sys::Oid) -> u64 = query,
    c"WITH cleared AS (
          UPDATE awty.alert AS a SET cleared_at = $3, held_by = NULL, held_until = NULL, note = NULL
          WHERE a.cleared_at IS NULL AND a.id = ANY (ARRAY(
              SELECT f.id FROM pg_catalog.unnest($2) AS k (key)
              CROSS JOIN LATERAL (
                  SELECT o.id FROM awty.alert AS o WHERE o.rule = $1 AND o.entity_key = k.key AND o.cleared_at IS NULL LIMIT 1
              ) AS f))
          RETURNING a.id, a.level > 0 AND a.told > 0 AND (a.told_at >= a.raised_at) IS NOT FALSE AS is_told)
      INSERT INTO awty.future_job (job, entity_name, entity_key, first_check_at, next_check_at, scheduled_by, scheduled_at)
      SELECT $1, $4, c.id::pg_catalog.text, $3, $3, $5, $3 FROM cleared AS c WHERE c.is_told
      ON CONFLICT (entity_name, entity_key, job) DO UPDATE SET next_check_at = excluded.next_check_at"
}

statement! {
    pub fn clear_all(rule: &Text, now: Time) = query,
    c"UPDATE awty.alert SET cleared_at = $2, held_by = NULL, held_until = NULL, note = NULL WHERE rule = $1 AND cleared_at IS NULL"
}

// Reads only alerts of the given rule and role. Otherwise, a role could read another role's alert by scheduling a check
// with this alert's id as the key. A former rule of the name may have had another role.
statement! {
    pub fn rows(rule: &Text, ids: &[i64], role: pg_sys::Oid) -> Vec<pg_sys::Datum> = query(|rows| rows.all(|row| Some(rows.get::<Kept>(row, 1)?.0))),
    c"SELECT a FROM awty.alert AS a WHERE a.id = ANY ($2) AND a.rule = $1 AND a.role = $3 AND a.cleared_at IS NOT NULL"
}

statement! {
    pub fn delete_cleared(then: Time, limit: i64, pending: &Text) -> u64 = query,
    c"DELETE FROM awty.alert AS d WHERE d.id = ANY (ARRAY(
          SELECT a.id FROM awty.alert AS a
          WHERE a.cleared_at IS NOT NULL AND a.cleared_at < $1
              AND NOT EXISTS (SELECT FROM awty.future_job AS f
                              WHERE f.entity_name = $3 AND f.entity_key = a.id::pg_catalog.text AND f.job = a.rule OFFSET 0)
          ORDER BY a.cleared_at LIMIT $2))"
}
