//! Lock order: the row's check, the row's alert, then the row's stops. A run locks alerts and stops only after all user
//! functions have returned, so that no client waits for these functions.

use super::alert::moment;
use crate::pg::array::{self, TIME};
use crate::pg::clock;
use crate::pg::text::Text;
use crate::store::statement::Rows;
use crate::store::typed::{Row, is_true, statement};
use crate::store::{arg, from_timestamptz};
use awty_core::Time;
use awty_core::watch::{Clock, Stops};
use pgrx::datum::TimestampWithTimeZone;
use pgrx::{FromDatum, IntoDatum, pg_sys};
use std::ops::Range;

#[derive(Debug)]
pub struct Known {
    pub key: Text,
    pub clock: Option<Clock>,
    pub there_at: Option<Time>,
    pub alert_since: Option<Time>,
    pub raised_at: Option<Time>,
}

statement! {
    pub fn read(rule: &Text, keys: &[Text]) -> Vec<Known> = query,
    c"SELECT k.key, s.since, s.begins, s.ends, s.stopped_since, s.there_at, a.since, a.raised_at
      FROM pg_catalog.unnest($2) AS k (key)
      LEFT JOIN LATERAL (
          SELECT o.since, ARRAY(SELECT pg_catalog.lower(p) FROM pg_catalog.unnest(o.stops) AS p) AS begins,
              ARRAY(SELECT pg_catalog.upper(p) FROM pg_catalog.unnest(o.stops) AS p) AS ends, o.stopped_since, o.there_at
          FROM awty_internal.stop AS o WHERE o.rule = $1 AND o.key = k.key LIMIT 1
      ) AS s ON true
      LEFT JOIN LATERAL (
          SELECT l.since, COALESCE(l.escalated_at, l.raised_at) AS raised_at FROM awty.alert AS l
          WHERE l.rule = $1 AND l.entity_key = k.key AND l.cleared_at IS NULL LIMIT 1
      ) AS a ON true"
}

statement! {
    pub fn lock_free(rule: &Text, keys: &[Text]) -> Vec<Text> = query,
    c"SELECT s.key FROM awty_internal.stop AS s WHERE s.rule = $1 AND s.key = ANY ($2) FOR UPDATE SKIP LOCKED"
}

statement! {
    put_all,
    [
        TEXTOID, TEXTARRAYOID, TIMESTAMPTZARRAYOID, TIMESTAMPTZARRAYOID, TIMESTAMPTZARRAYOID, INT8ARRAYOID,
        TIMESTAMPTZARRAYOID, TIMESTAMPTZARRAYOID, BOOLOID
    ],
    c"INSERT INTO awty_internal.stop (rule, key, since, stops, stopped_since, there_at)
      SELECT $1, n.key, n.since, COALESCE((
              SELECT pg_catalog.range_agg(pg_catalog.tstzrange(p.begins, p.ends))
              FROM ROWS FROM (pg_catalog.unnest($6), pg_catalog.unnest($7), pg_catalog.unnest($8)) AS p (place, begins, ends)
              WHERE p.place = n.place), '{}'), n.stopped_since, n.there_at
      FROM ROWS FROM (pg_catalog.unnest($2), pg_catalog.unnest($3), pg_catalog.unnest($4), pg_catalog.unnest($5))
          WITH ORDINALITY AS n (key, since, stopped_since, there_at, place)
      ON CONFLICT (rule, key) DO UPDATE SET since = excluded.since, stops = excluded.stops,
          stopped_since = excluded.stopped_since, there_at = excluded.there_at WHERE $9"
}

statement! {
    pub fn remove(rule: &Text, keys: &[Text]) = query,
    c"DELETE FROM awty_internal.stop WHERE rule = $1 AND key = ANY ($2)"
}

statement! {
    pub fn is_any(rule: &Text) -> bool = query_latest(is_true),
    c"SELECT EXISTS (SELECT FROM awty_internal.stop AS s WHERE s.rule = $1)"
}

statement! {
    pub fn remove_all(rule: &Text) = query,
    c"DELETE FROM awty_internal.stop WHERE rule = $1"
}

statement! {
    pub fn remove_there(then: Time, limit: i64) -> u64 = query,
    c"DELETE FROM awty_internal.stop AS d WHERE d.ctid = ANY (ARRAY(
          SELECT s.ctid FROM awty_internal.stop AS s
          WHERE s.there_at IS NOT NULL AND s.there_at < $1 ORDER BY s.there_at LIMIT $2 FOR UPDATE SKIP LOCKED))"
}

impl Row for Known {
    fn read(rows: &Rows, row: usize) -> Option<Self> {
        let time = |column| rows.get::<TimestampWithTimeZone>(row, column).map(from_timestamptz);
        let clock = time(2).map(|start| {
            let past = std::iter::zip(times(rows.raw(row, 3)), times(rows.raw(row, 4)));
            Clock { start, stops: Stops::new(past.map(|(begin, end)| begin..end).collect(), time(5)) }
        });
        Some(Self { key: rows.get(row, 1)?, clock, there_at: time(6), alert_since: time(7), raised_at: time(8) })
    }
}

fn times(array: Option<pg_sys::Datum>) -> Vec<Time> {
    // SAFETY: the column is an array of timestamptz without NULLs.
    let elements = unsafe { array.and_then(|array| array::elements(array, TIME)) }.unwrap_or_default();
    // SAFETY: a timestamptz is stored as an i64.
    let time = |datum: pg_sys::Datum| unsafe { i64::from_datum(datum, false) }.map(clock::clamped);
    elements.into_iter().flatten().filter_map(time).collect()
}

pub type Stored = (Text, Clock, Option<Time>);

pub fn put(rule: &Text, rows: &[Stored], replaces: bool) {
    if rows.is_empty() {
        return;
    }
    let column = |value: fn(&Stored) -> Option<Time>| -> Vec<Option<TimestampWithTimeZone>> {
        rows.iter().map(|row| value(row).and_then(moment)).collect()
    };
    let stops = || {
        (1_i64..).zip(rows).flat_map(|(place, (_, clock, _))| clock.stops.past().iter().map(move |stop| (place, stop)))
    };
    let bounds = |bound: fn(&Range<Time>) -> Time| -> Vec<_> { stops().map(|(_, stop)| moment(bound(stop))).collect() };
    put_all().execute(&[
        Some(rule.datum()),
        arg(rows.iter().map(|(key, ..)| key.clone()).collect::<Vec<_>>()),
        column(|(_, clock, _)| Some(clock.start)).into_datum(),
        column(|(_, clock, _)| clock.stops.since()).into_datum(),
        column(|(.., there_at)| *there_at).into_datum(),
        arg(stops().map(|(place, _)| place).collect::<Vec<_>>()),
        bounds(|stop| stop.start).into_datum(),
        bounds(|stop| stop.end).into_datum(),
        arg(replaces),
    ]);
}
