//! SQL statements that find or write the checks of rules by the keys of the watched rows.

use super::rule::Rule;
use crate::pg::clock;
use crate::pg::text::Text;
use crate::store::typed::{Outcome, row, statement};
use crate::store::{arg, time};
use awty_core::Time;
use pgrx::{IntoDatum, pg_sys};

statement!(
    put_all,
    [TEXTOID, TEXTOID, TEXTARRAYOID, TIMESTAMPTZARRAYOID, OIDOID, TIMESTAMPTZOID],
    c"INSERT INTO awty.future_job AS f (job, entity_name, entity_key, first_check_at, next_check_at, scheduled_by, scheduled_at)
      SELECT $1, $2, k.key, k.slot, k.slot, $5, $6
      FROM (SELECT pg_catalog.unnest($3) AS key, pg_catalog.unnest($4) AS slot) AS k
      ON CONFLICT (entity_name, entity_key, job) DO UPDATE SET next_check_at = excluded.next_check_at, attempt = 0,
          scheduled_by = excluded.scheduled_by, scheduled_at = excluded.scheduled_at"
);

statement!(
    add_all,
    [TEXTOID, TEXTOID, TEXTARRAYOID, TIMESTAMPTZARRAYOID, OIDOID, TIMESTAMPTZOID],
    c"INSERT INTO awty.future_job (job, entity_name, entity_key, first_check_at, next_check_at, scheduled_by, scheduled_at)
      SELECT $1, $2, k.key, k.slot, k.slot, $5, $6
      FROM (SELECT pg_catalog.unnest($3) AS key, pg_catalog.unnest($4) AS slot) AS k"
);

statement!(
    insert_one,
    [TEXTOID, TEXTOID, TEXTOID, TIMESTAMPTZOID, OIDOID, TIMESTAMPTZOID],
    c"INSERT INTO awty.future_job (job, entity_name, entity_key, first_check_at, next_check_at, scheduled_by, scheduled_at)
      VALUES ($1, $2, $3, $4, $4, $5, $6)
      ON CONFLICT (entity_name, entity_key, job) DO NOTHING"
);

statement!(
    keep_all,
    [TEXTOID, TEXTOID, TEXTARRAYOID, TIMESTAMPTZARRAYOID, OIDOID, TIMESTAMPTZOID],
    c"INSERT INTO awty.future_job (job, entity_name, entity_key, first_check_at, next_check_at, scheduled_by, scheduled_at)
      SELECT $1, $2, k.key, k.slot, k.slot, $5, $6
      FROM (SELECT pg_catalog.unnest($3) AS key, pg_catalog.unnest($4) AS slot) AS k
      ON CONFLICT (entity_name, entity_key, job) DO NOTHING"
);

// Only keys with a pending check are selected, so each INSERT becomes an update. Unlike an UPDATE, ON CONFLICT always
// finds the row by the index.
statement!(
    move_all,
    [TEXTOID, TEXTOID, TEXTARRAYOID, TIMESTAMPTZARRAYOID, OIDOID, TIMESTAMPTZOID],
    c"INSERT INTO awty.future_job AS f (job, entity_name, entity_key, first_check_at, next_check_at, scheduled_by, scheduled_at)
      SELECT $1, $2, k.key, k.slot, k.slot, $5, $6
      FROM (SELECT pg_catalog.unnest($3) AS key, pg_catalog.unnest($4) AS slot) AS k
      CROSS JOIN LATERAL (
          SELECT FROM awty.future_job AS p
          WHERE p.entity_name = $2 AND p.entity_key = k.key AND p.job = $1 AND NOT p.held LIMIT 1) AS p
      ON CONFLICT (entity_name, entity_key, job) DO UPDATE SET next_check_at = excluded.next_check_at
      WHERE f.next_check_at <> excluded.next_check_at"
);

statement! {
    /// The caller must have locked the check. A check that is due earlier stays.
    pub fn advance(check: i64, slot: Option<Time>) = query,
    c"UPDATE awty.future_job SET next_check_at = LEAST(next_check_at, $2) WHERE id = $1"
}

statement!(
    select_pending,
    [TEXTOID, TEXTOID, TEXTARRAYOID],
    c"SELECT f.entity_key, f.scheduled_at, f.held FROM pg_catalog.unnest($3) AS k (key)
      CROSS JOIN LATERAL (
          SELECT p.entity_key, p.scheduled_at, p.held FROM awty.future_job AS p
          WHERE p.entity_name = $2 AND p.entity_key = k.key AND p.job = $1 LIMIT 1
      ) AS f"
);

statement! {
    pub fn keys_after(rule: &Text, entity_name: &Text, after: &Text, limit: i64) -> Vec<Text> = query,
    c"SELECT f.entity_key FROM awty.future_job AS f
      WHERE f.entity_name = $2 AND f.entity_key > $3 AND f.job = $1 ORDER BY f.entity_key LIMIT $4"
}

statement!(
    lock_all,
    [TEXTOID, TEXTOID, TEXTARRAYOID],
    c"SELECT f.id FROM (SELECT u.key FROM pg_catalog.unnest($3) AS u (key) ORDER BY u.key) AS k
      CROSS JOIN LATERAL (
          SELECT p.id FROM awty.future_job AS p
          WHERE p.entity_name = $2 AND p.entity_key = k.key AND p.job = $1 LIMIT 1 FOR UPDATE
      ) AS f"
);

statement!(
    lock_free_all,
    [TEXTOID, TEXTOID, TEXTARRAYOID],
    c"SELECT f.entity_key FROM pg_catalog.unnest($3) AS k (key)
      CROSS JOIN LATERAL (
          SELECT p.entity_key FROM awty.future_job AS p
          WHERE p.entity_name = $2 AND p.entity_key = k.key AND p.job = $1 LIMIT 1 FOR UPDATE SKIP LOCKED
      ) AS f"
);

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

#[derive(Clone, Copy)]
pub struct ScheduledBy {
    pub role: pg_sys::Oid,
    pub at: Time,
}

fn args(rule: &Rule, keys: &[Text], slots: &[Time], by: ScheduledBy) -> [crate::store::statement::Arg; 6] {
    let slot = |slot: &Time| clock::to_timestamptz(*slot);
    [
        Some(rule.name.datum()),
        Some(rule.entity_name.datum()),
        arg(keys.to_vec()),
        slots.iter().map(slot).collect::<Vec<_>>().into_datum(),
        arg(by.role),
        time(by.at),
    ]
}

/// If a check is already pending, it becomes due at the given slot.
pub fn put(rule: &Rule, keys: &[Text], slots: &[Time], by: ScheduledBy) {
    put_all().execute(&args(rule, keys, slots, by));
}

pub fn add(rule: &Rule, keys: &[Text], slots: &[Time], by: ScheduledBy) {
    add_all().execute(&args(rule, keys, slots, by));
}

/// Returns `false` if the check is already pending.
pub fn add_one(rule: &Rule, key: &Text, slot: Time, by: ScheduledBy) -> bool {
    let args = [
        Some(rule.name.datum()),
        Some(rule.entity_name.datum()),
        Some(key.datum()),
        arg(clock::to_timestamptz(slot)),
        arg(by.role),
        time(by.at),
    ];
    insert_one().execute(&args) == 1
}

/// Skips keys that already have a pending check.
pub fn keep(rule: &Rule, keys: &[Text], slots: &[Time], by: ScheduledBy) {
    keep_all().execute(&args(rule, keys, slots, by));
}

fn special(rule: &Text, entity_name: &str, now: Time, role: pg_sys::Oid) -> [crate::store::statement::Arg; 6] {
    [
        Some(rule.datum()),
        Some(Text::from(entity_name).datum()),
        arg(vec![rule.clone()]),
        vec![clock::to_timestamptz(now)].into_datum(),
        arg(role),
        time(now),
    ]
}

/// If a walk is already pending, it is written, so that its run is undone.
pub fn restart_special(rule: &Text, entity_name: &str, now: Time, role: pg_sys::Oid) {
    put_all().execute(&special(rule, entity_name, now, role));
}

/// A walk or a sweep that is already pending stays.
pub fn put_special(rule: &Text, entity_name: &str, now: Time, role: pg_sys::Oid) {
    keep_all().execute(&special(rule, entity_name, now, role));
}

/// The caller must have locked the checks.
pub fn move_to(rule: &Rule, keys: &[Text], slots: &[Time], by: ScheduledBy) {
    move_all().execute(&args(rule, keys, slots, by));
}

pub fn pending(rule: &Rule, keys: &[Text]) -> Vec<Pending> {
    let given = [Some(rule.name.datum()), Some(rule.entity_name.datum()), arg(keys.to_vec())];
    select_pending().query(&given, Outcome::read)
}

pub fn lock(rule: &Rule, keys: &[Text]) -> Vec<i64> {
    if keys.is_empty() {
        return Vec::new();
    }
    let given = [Some(rule.name.datum()), Some(rule.entity_name.datum()), arg(keys.to_vec())];
    lock_all().query(&given, crate::store::future_job::ids)
}

pub fn lock_free(rule: &Rule, keys: &[Text]) -> Vec<Text> {
    let given = [Some(rule.name.datum()), Some(rule.entity_name.datum()), arg(keys.to_vec())];
    lock_free_all().query(&given, |rows| rows.all(|row| rows.get(row, 1)))
}

pub fn given(checks: pg_sys::Datum) -> Vec<RuleCheck> {
    select_rows().query(&[Some(checks)], Outcome::read)
}
