use super::alert::moment;
use crate::pg::subtransaction::unless_duplicate;
use crate::pg::text::Text;
use crate::rule::statements::rule::Rule;
use crate::store::statement::{Arg, Kept, Rows};
use crate::store::typed::statement;
use crate::store::{arg, time};
use awty_core::Time;
use pgrx::{IntoDatum, pg_sys};

pub struct Raised<'a> {
    pub id: Option<i64>,
    pub key: &'a Text,
    pub from: u32,
    pub level: u32,
    pub since: Option<Time>,
    pub due_at: Time,
}

statement!(
    select_raised,
    [INT8ARRAYOID, INT4ARRAYOID, TIMESTAMPTZOID],
    c"SELECT a.entity_key, a.id,
             pg_catalog.jsonb_populate_record(a, pg_catalog.jsonb_build_object('level', n.level,
                 'raised_at', CASE WHEN n.level > 0 THEN COALESCE(a.raised_at, w.at) END,
                 'reminded_at', CASE WHEN n.level = 0 THEN $3 ELSE a.reminded_at END,
                 'escalated_at', CASE WHEN n.level > a.level AND a.level > 0 THEN w.at ELSE a.escalated_at END,
                 'told', a.told + 1, 'told_at', GREATEST(w.at, a.raised_at, a.escalated_at), 'held_by', NULL, 'held_until', NULL, 'note', NULL))
      FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) AS n (id, level)
      JOIN awty.alert AS a ON a.id = n.id AND a.cleared_at IS NULL
      CROSS JOIN LATERAL (SELECT GREATEST($3, a.told_at + '1 microsecond') AS at) AS w"
);

statement! {
    insert_all,
    [
        TEXTOID, TEXTOID, OIDOID, TIMESTAMPTZOID, TEXTARRAYOID, TIMESTAMPTZARRAYOID, TIMESTAMPTZARRAYOID, INT8OID,
        INT4ARRAYOID
    ],
    c"INSERT INTO awty.alert AS a (rule, entity_name, entity_key, level, since, due_at, raised_at, role, told, told_at, reminded_at)
      SELECT $1, $2, n.key, n.level, n.since, n.due_at, CASE WHEN n.level > 0 THEN $4 END, $3, $8, CASE WHEN $8 > 0 THEN $4 END,
          CASE WHEN n.level = 0 THEN $4 END
      FROM ROWS FROM (pg_catalog.unnest($5), pg_catalog.unnest($6), pg_catalog.unnest($7), pg_catalog.unnest($9))
          AS n (key, since, due_at, level)
      ON CONFLICT (rule, entity_key, (held_by IS NULL)) WHERE cleared_at IS NULL DO NOTHING
      RETURNING a.entity_key, a.id, a"
}

statement! {
    add_all,
    [
        TEXTOID, TEXTOID, OIDOID, TIMESTAMPTZOID, TEXTARRAYOID, TIMESTAMPTZARRAYOID, TIMESTAMPTZARRAYOID, INT8OID,
        INT4ARRAYOID
    ],
    c"INSERT INTO awty.alert (rule, entity_name, entity_key, level, since, due_at, raised_at, role, told, told_at, reminded_at)
      SELECT $1, $2, n.key, n.level, n.since, n.due_at, CASE WHEN n.level > 0 THEN $4 END, $3, $8, CASE WHEN $8 > 0 THEN $4 END,
          CASE WHEN n.level = 0 THEN $4 END
      FROM (SELECT pg_catalog.unnest($5) AS key, pg_catalog.unnest($6) AS since, pg_catalog.unnest($7) AS due_at,
                pg_catalog.unnest($9) AS level) AS n"
}

// `GREATEST` keeps the times of an alert in order even if the server's clock is set back. awty compares `told_at` with
// `raised_at` and `escalated_at` to find out whether the alert's current level was reported.
statement!(
    update_level,
    [INT8ARRAYOID, INT4ARRAYOID, TIMESTAMPTZOID, INT8OID],
    c"UPDATE awty.alert AS a SET level = n.level,
          raised_at = CASE WHEN n.level > 0 THEN COALESCE(a.raised_at, GREATEST($3, a.told_at + '1 microsecond')) END,
          reminded_at = CASE WHEN n.level = 0 THEN $3 ELSE a.reminded_at END,
          escalated_at = CASE WHEN n.level > a.level AND a.level > 0 THEN GREATEST($3, a.told_at + '1 microsecond') ELSE a.escalated_at END,
          told = a.told + $4,
          told_at = CASE WHEN $4 > 0 THEN GREATEST($3, a.raised_at, a.escalated_at, a.told_at + '1 microsecond') ELSE a.told_at END,
          held_by = CASE WHEN $4 = 0 THEN a.held_by END, held_until = CASE WHEN $4 = 0 THEN a.held_until END,
          note = CASE WHEN $4 = 0 THEN a.note END
      FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) AS n (id, level)
      WHERE a.id = n.id AND a.id = ANY (ARRAY(
          SELECT f.id FROM awty.alert AS f WHERE f.id = ANY ($1) AND f.cleared_at IS NULL FOR UPDATE SKIP LOCKED))"
);

/// Inserts an alert for each given row that has none. Returns the alerts of all given rows as they will be reported.
///
/// A returned alert that was already open has the values that [`escalate`] will write. If `tells` is false, nothing is
/// reported, so the returned list may be incomplete.
pub fn raise(rule: &Rule, raised: &[Raised], now: Time, tells: bool) -> Vec<(Text, i64, pg_sys::Datum)> {
    let (first, higher): (Vec<&Raised>, Vec<&Raised>) = raised.iter().partition(|raised| raised.id.is_none());
    let read = |rows: &Rows| {
        let one = |row| Some((rows.get(row, 1)?, rows.get(row, 2)?, rows.get::<Kept>(row, 3)?.0));
        rows.all(one)
    };
    let mut written = Vec::new();
    if !first.is_empty() {
        let args = new_alerts(rule, &first, now, 1);
        // Tries an INSERT without ON CONFLICT. The INSERT rarely fails, because the run has found no open alerts of
        // these rows.
        let add = || {
            add_all().execute(&args);
        };
        if tells || unless_duplicate(add).is_none() {
            written.extend(insert_all().query(&args, read));
        }
    }
    if tells && !higher.is_empty() {
        written.extend(select_raised().query(&levels(higher.into_iter(), now), read));
    }
    written
}

/// Raises the level of open alerts, and adds 1 to each alert's number of reports. Returns `false` if another
/// transaction has locked or cleared one of the alerts.
pub fn escalate(raised: &[Raised], now: Time) -> bool {
    let higher: Vec<&Raised> = raised.iter().filter(|raised| raised.id.is_some()).collect();
    let count = higher.len() as u64;
    count == 0 || set_levels(higher.into_iter(), now, 1) == count
}

/// Raises the level of held alerts. Does not count a report, because held alerts are not reported. Returns `false` if
/// another transaction has locked or cleared one of the alerts.
pub fn escalate_untold(raised: &[Raised], now: Time) -> bool {
    raised.is_empty() || set_levels(raised.iter(), now, 0) == raised.len() as u64
}

pub fn raise_untold(rule: &Rule, raised: &Raised, now: Time) -> bool {
    let count = match raised.id {
        None => insert_all().execute(&new_alerts(rule, &[raised], now, 0)),
        Some(_) => set_levels(std::iter::once(raised), now, 0),
    };
    count > 0
}

fn new_alerts(rule: &Rule, raised: &[&Raised], now: Time, told: i64) -> [Arg; 9] {
    let keys: Vec<Text> = raised.iter().map(|raised| raised.key.clone()).collect();
    let since: Vec<_> = raised.iter().map(|raised| raised.since.and_then(moment)).collect();
    let due_at: Vec<_> = raised.iter().map(|raised| moment(raised.due_at)).collect();
    [
        Some(rule.name.datum()),
        Some(rule.entity_name.datum()),
        arg(rule.terms.role),
        time(now),
        arg(keys),
        since.into_datum(),
        due_at.into_datum(),
        arg(told),
        arg(raised.iter().map(|raised| raised.level.cast_signed()).collect::<Vec<_>>()),
    ]
}

fn set_levels<'a>(raised: impl Iterator<Item = &'a Raised<'a>>, now: Time, told: i64) -> u64 {
    let [ids, levels, now] = levels(raised, now);
    update_level().execute(&[ids, levels, now, arg(told)])
}

fn levels<'a>(raised: impl Iterator<Item = &'a Raised<'a>>, now: Time) -> [Arg; 3] {
    let (ids, levels): (Vec<i64>, Vec<i32>) =
        raised.filter_map(|raised| Some((raised.id?, raised.level.cast_signed()))).unzip();
    [arg(ids), arg(levels), time(now)]
}
