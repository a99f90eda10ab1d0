//! The module `stop` describes the lock order.
//!
//! LATERAL with LIMIT makes PostgreSQL find each key by index, even if the table was small at planning time.

use crate::pg::clock;
use crate::pg::text::Text;
use crate::rule::statements::rule::Rule;
use crate::store::statement::{Arg, Rows};
use crate::store::typed::{Row, is_true, row, statement};
use crate::store::{arg, from_timestamptz};
use awty_core::Time;
use awty_core::watch::{Alert, Hold};
use pgrx::datum::TimestampWithTimeZone;
use pgrx::pg_sys;

pub struct Open {
    pub key: Text,
    pub id: i64,
    pub alert: Alert,
}

pub struct Held {
    pub level: i32,
    pub since: Option<Time>,
}

row!(Held { level, since });

pub struct Found {
    pub key: Text,
    pub level: i32,
    pub since: Option<Time>,
    pub version: Text,
}

row!(Found { key, level, since, version });

pub struct Start {
    pub key: Text,
    pub version: Text,
    pub since: Option<Time>,
    pub due_at: Time,
}

statement!(
    select_open,
    [TEXTOID, TEXTARRAYOID],
    c"SELECT a.entity_key, a.id, a.level, a.told_at >= COALESCE(a.escalated_at, a.raised_at), a.held_by IS NOT NULL, a.held_until,
             a.told_at, a.reminded_at, l.id IS NOT NULL
      FROM pg_catalog.unnest($2) AS k (key)
      CROSS JOIN LATERAL (
          SELECT o.id, o.entity_key, o.level, o.told_at, o.escalated_at, o.raised_at, o.held_by, o.held_until, o.reminded_at FROM awty.alert AS o
          WHERE o.rule = $1 AND o.entity_key = k.key AND o.cleared_at IS NULL LIMIT 1
      ) AS a
      LEFT JOIN LATERAL (
          SELECT f.id FROM awty.alert AS f WHERE f.id = a.id AND f.cleared_at IS NULL FOR UPDATE SKIP LOCKED
      ) AS l ON true"
);

statement! {
    pub fn open(rule: &Text, keys: &[Text]) -> Vec<Open> = query,
    c"SELECT a.entity_key, a.id, a.level, a.told_at >= COALESCE(a.escalated_at, a.raised_at), a.held_by IS NOT NULL, a.held_until,
             a.told_at, a.reminded_at
      FROM pg_catalog.unnest($2) AS k (key)
      CROSS JOIN LATERAL (
          SELECT o.id, o.entity_key, o.level, o.told_at, o.escalated_at, o.raised_at, o.held_by, o.held_until, o.reminded_at FROM awty.alert AS o
          WHERE o.rule = $1 AND o.entity_key = k.key AND o.cleared_at IS NULL LIMIT 1
      ) AS a"
}

statement!(
    update_since,
    [TEXTOID, TEXTOID, TIMESTAMPTZOID, TIMESTAMPTZOID],
    c"UPDATE awty.alert SET since = $3, due_at = $4 WHERE rule = $1 AND entity_key = $2 AND cleared_at IS NULL"
);

statement! {
    /// Locks each open alert that still has the given version (`xmin`), and returns the keys of the locked alerts.
    /// Skips alerts that another transaction has locked.
    pub fn lock_unchanged(rule: &Text, keys: &[Text], versions: &[Text]) -> Vec<Text> = query,
    c"SELECT a.entity_key FROM ROWS FROM (pg_catalog.unnest($2), pg_catalog.unnest($3)) AS k (key, version)
      CROSS JOIN LATERAL (
          SELECT o.entity_key FROM awty.alert AS o
          WHERE o.rule = $1 AND o.entity_key = k.key AND o.cleared_at IS NULL AND o.xmin::pg_catalog.text = k.version
          LIMIT 1 FOR UPDATE SKIP LOCKED
      ) AS a"
}

statement! {
    /// Updates the given open alerts without changing a value. Each update changes the alert's version (`xmin`), so
    /// that [`lock_unchanged`] skips the alert.
    ///
    /// Skips locked alerts, and returns the keys of the updated alerts.
    pub fn touch(rule: &Text, keys: &[Text]) -> Vec<Text> = query,
    c"UPDATE awty.alert AS a SET level = a.level
      WHERE a.id = ANY (ARRAY(
          SELECT l.id FROM pg_catalog.unnest($2) AS k (key)
          CROSS JOIN LATERAL (
              SELECT o.id FROM awty.alert AS o
              WHERE o.rule = $1 AND o.entity_key = k.key AND o.cleared_at IS NULL LIMIT 1 FOR UPDATE SKIP LOCKED
          ) AS l))
      RETURNING a.entity_key"
}

statement!(
    update_starts,
    [TEXTOID, TEXTARRAYOID, TEXTARRAYOID, TIMESTAMPTZARRAYOID, TIMESTAMPTZARRAYOID],
    c"UPDATE awty.alert AS a SET since = n.since, due_at = COALESCE(n.due_at, a.due_at)
      FROM ROWS FROM (pg_catalog.unnest($2), pg_catalog.unnest($4), pg_catalog.unnest($5)) AS n (key, since, due_at)
      WHERE a.entity_key = n.key AND (a.since IS DISTINCT FROM n.since OR a.due_at <> n.due_at) AND a.id = ANY (ARRAY(
          SELECT l.id FROM ROWS FROM (pg_catalog.unnest($2), pg_catalog.unnest($3)) AS k (key, version)
          CROSS JOIN LATERAL (
              SELECT o.id FROM awty.alert AS o
              WHERE o.rule = $1 AND o.entity_key = k.key AND o.cleared_at IS NULL AND o.xmin::pg_catalog.text = k.version
              LIMIT 1 FOR UPDATE SKIP LOCKED
          ) AS l))"
);

statement! {
    pub fn hold(rule: &Text, key: &Text, by: pg_sys::Oid, until: Option<Time>, note: Option<&Text>) -> Option<Held> = query,
    c"UPDATE awty.alert SET held_by = $3, held_until = $4, note = $5
      WHERE rule = $1 AND entity_key = $2 AND cleared_at IS NULL RETURNING level, since"
}

statement! {
    /// A released alert of level 1 or above is reported again.
    pub fn release(rule: &Text, key: &Text) -> Option<Held> = query,
    c"UPDATE awty.alert SET held_by = NULL, held_until = NULL, note = NULL, told_at = CASE WHEN level = 0 OR told_at < raised_at THEN told_at END
      WHERE rule = $1 AND entity_key = $2 AND cleared_at IS NULL AND held_by IS NOT NULL RETURNING level, since"
}

statement! {
    pub fn end_holds(ids: &[i64], now: Time) = query,
    c"UPDATE awty.alert AS a SET held_by = NULL, held_until = NULL, note = NULL,
          told_at = CASE WHEN a.level = 0 OR a.told_at < a.raised_at THEN a.told_at END
      WHERE a.held_until <= $2 AND a.id = ANY (ARRAY(
          SELECT f.id FROM awty.alert AS f WHERE f.id = ANY ($1) AND f.cleared_at IS NULL FOR UPDATE SKIP LOCKED))"
}

statement!(
    insert_held,
    [TEXTOID, TEXTOID, TEXTOID, OIDOID, TIMESTAMPTZOID, TIMESTAMPTZOID, OIDOID, TIMESTAMPTZOID, TEXTOID],
    c"INSERT INTO awty.alert (rule, entity_name, entity_key, level, role, since, due_at, held_by, held_until, note)
      VALUES ($1, $2, $3, 0, $4, $5, $6, $7, $8, $9)"
);

statement! {
    pub fn rename(rule: &Text, from: &Text, to: &Text) = query,
    c"UPDATE awty.alert SET entity_key = $3 WHERE rule = $1 AND entity_key = $2 AND cleared_at IS NULL"
}

statement! {
    pub fn open_after(rule: &Text, after: &Text, limit: i64) -> Vec<Found> = query,
    c"SELECT a.entity_key, a.level, a.since, a.xmin::pg_catalog.text FROM awty.alert AS a
      WHERE a.rule = $1 AND a.cleared_at IS NULL AND a.entity_key > $2 ORDER BY a.entity_key LIMIT $3"
}

statement!(
    select_unseen,
    [TEXTOID, TEXTOID, TEXTARRAYOID, TEXTARRAYOID],
    c"SELECT EXISTS (SELECT FROM pg_catalog.unnest($4) AS k (key) CROSS JOIN LATERAL (
                         SELECT FROM awty.alert AS a WHERE a.rule = $1 AND a.entity_key = k.key AND a.cleared_at IS NULL OFFSET 0) AS a)
          OR EXISTS (SELECT FROM pg_catalog.unnest($3) AS k (key) CROSS JOIN LATERAL (
                         SELECT FROM awty.future_job AS f
                         WHERE f.entity_name = $2 AND f.entity_key = k.key AND f.job = $1 OFFSET 0) AS f)"
);

statement! {
    pub fn is_any_open(rule: &Text) -> bool = query_latest(is_true),
    c"SELECT EXISTS (SELECT FROM awty.alert AS a WHERE a.rule = $1 AND a.cleared_at IS NULL)"
}

statement! {
    /// Waits for transactions that have locked one of these alerts.
    pub fn lock(rule: &Text, keys: &[Text]) -> Vec<i64> = query,
    c"SELECT f.id FROM (SELECT u.key FROM pg_catalog.unnest($2) AS u (key) ORDER BY u.key) AS k
      CROSS JOIN LATERAL (
          SELECT a.id FROM awty.alert AS a
          WHERE a.rule = $1 AND a.entity_key = k.key AND a.cleared_at IS NULL LIMIT 1 FOR UPDATE
      ) AS f"
}

statement! {
    pub fn lock_all(rule: &Text) -> Vec<i64> = query,
    c"SELECT a.id FROM awty.alert AS a WHERE a.rule = $1 AND a.cleared_at IS NULL ORDER BY a.entity_key FOR UPDATE"
}

statement! {
    pub fn set_role(rule: &Text, role: pg_sys::Oid) = query,
    c"UPDATE awty.alert SET role = $2 WHERE rule = $1 AND cleared_at IS NULL"
}

pub fn moment(time: Time) -> Option<TimestampWithTimeZone> {
    let stored = if time == Time::MIN_UTC { i64::MIN } else { clock::to_timestamp(time) };
    TimestampWithTimeZone::try_from(stored).ok()
}

fn keys_arg(keys: &[Text]) -> Arg {
    arg(keys.to_vec())
}

impl Row for Open {
    fn read(rows: &Rows, row: usize) -> Option<Self> {
        let hold = match (rows.get(row, 5)?, rows.get(row, 6).map(from_timestamptz)) {
            (false, _) => None,
            (true, Some(end)) => Some(Hold::Until(end)),
            (true, None) => Some(Hold::Released),
        };
        let level = rows.get::<i32>(row, 3)?.unsigned_abs();
        // A row with an alert of level 0 is not late, so there is nothing to report.
        let is_told = level == 0 || rows.get(row, 4).unwrap_or(false);
        let (told_at, reminded_at) = (rows.get(row, 7).map(from_timestamptz), rows.get(row, 8).map(from_timestamptz));
        let alert = Alert { level, is_told, told_at, reminded_at, hold };
        Some(Open { key: rows.get(row, 1)?, id: rows.get(row, 2)?, alert })
    }
}

/// The second value of each pair says whether this call has locked the alert.
pub fn lock_open(rule: &Text, keys: &[Text]) -> Vec<(Open, bool)> {
    let read = |rows: &Rows, row| Some((Open::read(rows, row)?, rows.get(row, 9)?));
    select_open().query(&[Some(rule.datum()), keys_arg(keys)], |rows| rows.all(|row| read(rows, row)))
}

pub fn set_starts(rule: &Text, starts: &[Start]) {
    if !starts.is_empty() {
        let keys: Vec<Text> = starts.iter().map(|start| start.key.clone()).collect();
        let versions: Vec<Text> = starts.iter().map(|start| start.version.clone()).collect();
        let since: Vec<_> = starts.iter().map(|start| start.since.and_then(moment)).collect();
        let due_at: Vec<_> = starts.iter().map(|start| moment(start.due_at)).collect();
        update_starts().execute(&[Some(rule.datum()), arg(keys), arg(versions), arg(since), arg(due_at)]);
    }
}

pub fn set_since(rule: &Text, key: &Text, since: Option<Time>, due_at: Time) {
    let (since, due_at) = (since.and_then(moment), moment(due_at));
    update_since().execute(&[Some(rule.datum()), Some(key.datum()), arg(since), arg(due_at)]);
}

pub struct NewHold<'a> {
    pub by: pg_sys::Oid,
    pub until: Option<Time>,
    pub note: Option<&'a Text>,
}

/// The caller must have locked the row's check.
pub fn put_held(rule: &Rule, key: &Text, since: Option<Time>, due_at: Time, hold: &NewHold) {
    let args = [
        Some(rule.name.datum()),
        Some(rule.entity_name.datum()),
        Some(key.datum()),
        arg(rule.terms.role),
        arg(since.and_then(moment)),
        arg(moment(due_at)),
        arg(hold.by),
        arg(hold.until.and_then(moment)),
        hold.note.map(Text::datum),
    ];
    insert_held().execute(&args);
}

pub fn any_left(rule: &Rule, over: &[Text], clear: &[Text]) -> bool {
    let args = [Some(rule.name.datum()), Some(rule.entity_name.datum()), keys_arg(over), keys_arg(clear)];
    select_unseen().query_latest(&args, |rows| rows.first(1)).unwrap_or(false)
}
