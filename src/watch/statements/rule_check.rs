use crate::error::WatchError;
use crate::pg::text::Text;
use crate::rule::statements::rule::Rule;
use crate::store::patience;
use crate::store::typed::{Outcome, is_true, row, statement};
use awty_core::Time;
use pgrx::pg_sys;

statement! {
    fn put_all(rule: &Text, entity_name: &Text, keys: &[Text], slots: &[Time], role: pg_sys::Oid, at: Time) = query,
    c"INSERT INTO awty.future_job AS f (job, entity_name, entity_key, first_check_at, next_check_at, scheduled_by, scheduled_at)
      SELECT $1, $2, k.key, k.slot, k.slot, $5, $6
      FROM (SELECT pg_catalog.unnest($3) AS key, pg_catalog.unnest($4) AS slot) AS k
      ON CONFLICT (entity_name, entity_key, job) DO UPDATE SET next_check_at = excluded.next_check_at, attempt = 0,
          scheduled_by = excluded.scheduled_by, scheduled_at = excluded.scheduled_at"
}

statement! {
    fn add_all(rule: &Text, entity_name: &Text, keys: &[Text], slots: &[Time], role: pg_sys::Oid, at: Time) = query,
    c"INSERT INTO awty.future_job (job, entity_name, entity_key, first_check_at, next_check_at, scheduled_by, scheduled_at)
      SELECT $1, $2, k.key, k.slot, k.slot, $5, $6
      FROM (SELECT pg_catalog.unnest($3) AS key, pg_catalog.unnest($4) AS slot) AS k"
}

statement! {
    fn insert_one(rule: &Text, entity_name: &Text, key: &Text, slot: Time, role: pg_sys::Oid, at: Time) -> bool = query,
    c"INSERT INTO awty.future_job (job, entity_name, entity_key, first_check_at, next_check_at, scheduled_by, scheduled_at)
      VALUES ($1, $2, $3, $4, $4, $5, $6)
      ON CONFLICT (entity_name, entity_key, job) DO NOTHING"
}

statement! {
    fn keep_all(rule: &Text, entity_name: &Text, keys: &[Text], slots: &[Time], role: pg_sys::Oid, at: Time) = query,
    c"INSERT INTO awty.future_job (job, entity_name, entity_key, first_check_at, next_check_at, scheduled_by, scheduled_at)
      SELECT $1, $2, k.key, k.slot, k.slot, $5, $6
      FROM (SELECT pg_catalog.unnest($3) AS key, pg_catalog.unnest($4) AS slot) AS k
      ON CONFLICT (entity_name, entity_key, job) DO NOTHING"
}

// Changes existing rows by INSERT instead of UPDATE, because ON CONFLICT always finds a row by its unique index.
statement! {
    fn move_all(rule: &Text, entity_name: &Text, keys: &[Text], slots: &[Time], role: pg_sys::Oid, at: Time) = query,
    c"INSERT INTO awty.future_job AS f (job, entity_name, entity_key, first_check_at, next_check_at, scheduled_by, scheduled_at)
      SELECT $1, $2, k.key, k.slot, k.slot, $5, $6
      FROM (SELECT pg_catalog.unnest($3) AS key, pg_catalog.unnest($4) AS slot) AS k
      CROSS JOIN LATERAL (
          SELECT FROM awty.future_job AS p
          WHERE p.entity_name = $2 AND p.entity_key = k.key AND p.job = $1 AND p.held IS NOT DISTINCT FROM false LIMIT 1) AS p
      ON CONFLICT (entity_name, entity_key, job) DO UPDATE SET next_check_at = excluded.next_check_at
      WHERE f.next_check_at <> excluded.next_check_at"
}

statement! {
    /// The caller must have locked the check.
    pub fn advance(check: i64, slot: Option<Time>) = query,
    c"UPDATE awty.future_job SET next_check_at = LEAST(next_check_at, $2) WHERE id = $1"
}

statement! {
    fn select_pending(rule: &Text, entity_name: &Text, keys: &[Text]) -> Vec<Pending> = query,
    c"SELECT f.entity_key, f.scheduled_at, f.held FROM pg_catalog.unnest($3) AS k (key)
      CROSS JOIN LATERAL (
          SELECT p.entity_key, p.scheduled_at, p.held FROM awty.future_job AS p
          WHERE p.entity_name = $2 AND p.entity_key = k.key AND p.job = $1 LIMIT 1
      ) AS f"
}

statement! {
    pub fn keys_after(rule: &Text, entity_name: &Text, after: &Text, limit: i64) -> Vec<Text> = query,
    c"SELECT f.entity_key FROM awty.future_job AS f
      WHERE f.entity_name = $2 AND f.entity_key > $3 AND f.job = $1 ORDER BY f.entity_key LIMIT $4"
}

statement! {
    fn lock_all(rule: &Text, entity_name: &Text, keys: &[Text]) -> Vec<i64> = query,
    c"SELECT f.id FROM (SELECT u.key FROM pg_catalog.unnest($3) AS u (key) ORDER BY u.key) AS k
      CROSS JOIN LATERAL (
          SELECT p.id FROM awty.future_job AS p
          WHERE p.entity_name = $2 AND p.entity_key = k.key AND p.job = $1 LIMIT 1 FOR UPDATE
      ) AS f"
}

statement! {
    fn lock_one(rule: &Text, entity_name: &Text, key: &Text) -> Option<Locked> = query,
    c"SELECT p.id, p.scheduled_at FROM awty.future_job AS p
      WHERE p.entity_name = $2 AND p.entity_key = $3 AND p.job = $1 FOR UPDATE"
}

statement! {
    /// The caller must have locked the check.
    pub fn move_one(check: i64, slot: Time) = query,
    c"UPDATE awty.future_job SET next_check_at = $2
      WHERE id = $1 AND next_check_at <> $2 AND held IS NOT DISTINCT FROM false"
}

statement! {
    fn lock_free_all(rule: &Text, entity_name: &Text, keys: &[Text]) -> Vec<Text> = query,
    c"SELECT f.entity_key FROM pg_catalog.unnest($3) AS k (key)
      CROSS JOIN LATERAL (
          SELECT p.entity_key FROM awty.future_job AS p
          WHERE p.entity_name = $2 AND p.entity_key = k.key AND p.job = $1 LIMIT 1 FOR UPDATE SKIP LOCKED
      ) AS f"
}

statement! {
    /// Rewrites all checks of the rule, so that concurrent runs of the checks are rolled back. The caller must have locked
    /// the checks.
    pub fn set_scheduled_by(rule: &Text, role: pg_sys::Oid) = query,
    c"UPDATE awty.future_job AS f SET scheduled_by = $2
      WHERE f.id = ANY (ARRAY(SELECT p.id FROM awty.future_job AS p WHERE p.job = $1 AND NOT p.held
                              UNION ALL
                              SELECT q.id FROM awty.future_job AS q WHERE q.job = $1 AND q.held))"
}

statement! {
    /// Returns whether the rule has a check or an open alert of another role.
    pub fn is_any_of_others(rule: &Text, role: pg_sys::Oid) -> bool = query_latest(is_true),
    c"SELECT EXISTS (SELECT FROM awty.alert AS a WHERE a.rule = $1 AND a.cleared_at IS NULL AND a.role <> $2)
          OR EXISTS (SELECT FROM awty.future_job AS p WHERE p.job = $1 AND NOT p.held AND p.scheduled_by <> $2)
          OR EXISTS (SELECT FROM awty.future_job AS q WHERE q.job = $1 AND q.held AND q.scheduled_by <> $2)"
}

statement!(
    select_rows,
    [RECORDARRAYOID],
    c"SELECT c.job, c.entity_name, c.entity_key, c.scheduled_at, c.id, c.next_check_at, c.attempt FROM pg_catalog.unnest($1) WITH ORDINALITY AS c ORDER BY c.ordinality"
);

pub struct RuleCheck {
    pub job: Text,
    pub entity_name: Text,
    pub key: Text,
    pub scheduled_at: Time,
    pub id: i64,
    pub slot: Time,
    pub attempt: i32,
}

row!(RuleCheck { job, entity_name, key, scheduled_at, id, slot, attempt });

pub struct Pending {
    pub key: Text,
    pub scheduled_at: Time,
    pub is_held: bool,
}

row!(Pending { key, scheduled_at, is_held });

pub struct Locked {
    pub id: i64,
    pub scheduled_at: Time,
}

row!(Locked { id, scheduled_at });

#[derive(Clone, Copy)]
pub struct ScheduledBy {
    pub role: pg_sys::Oid,
    pub at: Time,
}

pub fn put(rule: &Rule, keys: &[Text], slots: &[Time], by: ScheduledBy) {
    put_all(&rule.name, &rule.entity_name, keys, slots, by.role, by.at);
}

pub fn add(rule: &Rule, keys: &[Text], slots: &[Time], by: ScheduledBy) {
    add_all(&rule.name, &rule.entity_name, keys, slots, by.role, by.at);
}

pub fn add_one(rule: &Rule, key: &Text, slot: Time, by: ScheduledBy) -> bool {
    insert_one(&rule.name, &rule.entity_name, key, slot, by.role, by.at)
}

pub fn keep(rule: &Rule, keys: &[Text], slots: &[Time], by: ScheduledBy) {
    keep_all(&rule.name, &rule.entity_name, keys, slots, by.role, by.at);
}

/// Waits for transactions that have locked rows of the rule, but no longer than `PATIENCE`.
pub fn waiting_for<R>(rule: &Text, run: impl FnOnce() -> R) -> R {
    patience::wait(|| WatchError::Busy { rule: rule.to_string() }.into(), run)
}

/// Makes a background check of the rule due at `now`. Also rewrites the row of a check that is already pending, so that
/// a concurrent run of the check is rolled back.
pub fn restart_special(rule: &Text, entity_name: &str, now: Time, role: pg_sys::Oid) {
    let put = || put_all(rule, &Text::from(entity_name), std::slice::from_ref(rule), &[now], role, now);
    waiting_for(rule, put);
}

/// Makes a background check of the rule due at `now`. Returns `false` if another session has locked the check's row.
/// Waiting could deadlock, because the caller has locked other checks of the rule.
pub fn restart_special_if_free(rule: &Text, entity_name: &str, now: Time, role: pg_sys::Oid) -> bool {
    let (name, keys) = (Text::from(entity_name), std::slice::from_ref(rule));
    let is_free = lock_free_all(rule, &name, keys).len() == select_pending(rule, &name, keys).len();
    if is_free {
        put_all(rule, &name, keys, &[now], role, now);
    }
    is_free
}

/// Locks the rule's background checks. The caller must lock the rule itself afterwards, in the same order as a change
/// of a calendar.
pub fn lock_special(rule: &Text, entity_names: [&str; 2]) {
    waiting_for(rule, || {
        for name in entity_names {
            lock_one(rule, &Text::from(name), rule);
        }
    });
}

pub fn put_special(rule: &Text, entity_name: &str, now: Time, role: pg_sys::Oid) {
    keep_all(rule, &Text::from(entity_name), std::slice::from_ref(rule), &[now], role, now);
}

/// The caller must have locked the checks.
pub fn move_to(rule: &Rule, keys: &[Text], slots: &[Time], by: ScheduledBy) {
    move_all(&rule.name, &rule.entity_name, keys, slots, by.role, by.at);
}

pub fn pending(rule: &Rule, keys: &[Text]) -> Vec<Pending> {
    select_pending(&rule.name, &rule.entity_name, keys)
}

pub fn lock(rule: &Rule, keys: &[Text]) -> Vec<i64> {
    if keys.is_empty() { Vec::new() } else { lock_all(&rule.name, &rule.entity_name, keys) }
}

pub fn lock_row(rule: &Rule, key: &Text) -> Option<Locked> {
    lock_one(&rule.name, &rule.entity_name, key)
}

pub fn lock_free(rule: &Rule, keys: &[Text]) -> Vec<Text> {
    lock_free_all(&rule.name, &rule.entity_name, keys)
}

pub fn given(checks: pg_sys::Datum) -> Vec<RuleCheck> {
    select_rows().query(&[Some(checks)], Outcome::read)
}
