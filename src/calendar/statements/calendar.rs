use crate::error::{CalendarError, Error};
use crate::pg::array::{self, DATE, TEXT};
use crate::pg::text::Text;
use crate::pg::zone;
use crate::store::statement::{Arg, Rows};
use crate::store::typed::{self, number, row, statement};
use crate::store::{arg, patience, time};
use awty_core::Time;
use awty_core::calendar::hash;
use pgrx::pg_sys;

/// Day 0 of PostgreSQL's dates, 2000-01-01, in days since 1970-01-01.
pub const POSTGRES_EPOCH: i64 = 10_957;

pub struct Definition {
    pub name: Text,
    pub zone: String,
    pub hours: Vec<String>,
    /// Closed days in ascending order, as days since 1970-01-01.
    pub closed: Vec<i64>,
}

pub struct Stored {
    pub role: pg_sys::Oid,
    pub zone: String,
    pub hours: Vec<String>,
    pub closed: Vec<i64>,
}

impl typed::Row for Stored {
    fn read(rows: &Rows, row: usize) -> Option<Self> {
        // SAFETY: column 3 of these statements is an array of texts, and column 4 is an array of dates.
        let (hours, closed) =
            unsafe { (array::elements(rows.datum(row, 3)?, TEXT), array::elements(rows.datum(row, 4)?, DATE)) };
        // SAFETY: the datum is an element of an array of texts.
        let text = |datum| unsafe { pgrx::FromDatum::from_datum(datum, false) }.map(|text: Text| text.to_string());
        Some(Self {
            role: rows.get(row, 1)?,
            zone: rows.get::<Text>(row, 2)?.to_string(),
            hours: hours?.into_iter().flatten().filter_map(text).collect(),
            closed: closed?.into_iter().flatten().map(|date| i64::from(date.value() as i32) + POSTGRES_EPOCH).collect(),
        })
    }
}

statement! {
    pub fn find(name: &Text) -> Option<Stored> = query_latest,
    c"SELECT role::pg_catalog.oid, zone, hours, closed FROM awty.calendar WHERE calendar = $1"
}

statement! {
    fn lock_one(name: &Text) -> Option<Stored> = query,
    c"SELECT role::pg_catalog.oid, zone, hours, closed FROM awty.calendar WHERE calendar = $1 FOR UPDATE"
}

statement! {
    fn share_one(name: &Text) = query,
    c"SELECT 1 FROM awty.calendar WHERE calendar = $1 FOR KEY SHARE"
}

// The caller's snapshot may be old, but this does no harm, because only error messages use these names of calendars.
statement! {
    pub fn all(limit: i64) -> Vec<(Text, pg_sys::Oid)> = query_as_caller,
    c"SELECT calendar, role::pg_catalog.oid FROM awty.calendar ORDER BY calendar LIMIT $1"
}

statement! {
    pub fn count(role: pg_sys::Oid, limit: i64) -> i64 = query(number),
    c"SELECT pg_catalog.count(*) FROM (SELECT 1 FROM awty.calendar AS c WHERE c.role = $1 LIMIT $2) AS counted"
}

statement!(
    insert_one,
    [TEXTOID, TEXTOID, TEXTARRAYOID, DATEARRAYOID, OIDOID, TIMESTAMPTZOID, INT8OID],
    c"INSERT INTO awty.calendar (calendar, zone, hours, closed, role, changed_by, changed_at, zone_hash, hashed_at)
      VALUES ($1, $2, $3, $4, $5, $5, $6, $7, $6)
      ON CONFLICT (calendar) DO NOTHING"
);

statement!(
    update_one,
    [TEXTOID, TEXTOID, TEXTARRAYOID, DATEARRAYOID, OIDOID, TIMESTAMPTZOID, INT8OID],
    c"UPDATE awty.calendar SET zone = $2, hours = $3, closed = $4, changed_by = $5, changed_at = $6, zone_hash = $7, hashed_at = $6
      WHERE calendar = $1"
);

statement! {
    pub fn delete(name: &Text) -> bool = query,
    c"DELETE FROM awty.calendar WHERE calendar = $1"
}

pub struct Hashed {
    pub name: Text,
    pub zone: Text,
    pub hash: Option<i64>,
    pub at: Option<Time>,
}

row!(Hashed { name, zone, hash, at });

statement! {
    pub fn hashed(now: Time) -> Vec<Hashed> = query,
    c"SELECT calendar, zone, zone_hash, hashed_at FROM awty.calendar
      WHERE (hashed_at BETWEEN pg_catalog.pg_postmaster_start_time() AND $1) IS NOT TRUE ORDER BY calendar"
}

statement! {
    pub fn set_hash(name: &Text, hash: i64, at: Time) -> bool = query,
    c"UPDATE awty.calendar SET zone_hash = $2, hashed_at = $3
      WHERE calendar = ANY (ARRAY(SELECT c.calendar FROM awty.calendar AS c WHERE c.calendar = $1 FOR NO KEY UPDATE SKIP LOCKED))"
}

fn written(definition: &Definition, by: pg_sys::Oid, now: Time) -> [Arg; 7] {
    let Definition { name, zone, hours, closed } = definition;
    let date = |day: &i64| Some(pg_sys::Datum::from((day - POSTGRES_EPOCH) as i32));
    let hours = hours.iter().map(|element| Some(Text::from(element.as_str()).datum()));
    // SAFETY: the elements of each array have the type that the call names.
    let (hours, closed) = unsafe { (array::build(hours, TEXT), array::build(closed.iter().map(date), DATE)) };
    let hash = zone::find(zone).map(|zone| hash(&zone, now));
    let zone = Some(Text::from(zone.as_str()).datum());
    [Some(name.datum()), zone, Some(hours), Some(closed), arg(by), time(now), hash.and_then(arg)]
}

pub fn busy(name: &Text) -> Error {
    CalendarError::Busy { calendar: name.to_string() }.into()
}

pub fn waiting_for<R>(name: &Text, run: impl FnOnce() -> R) -> R {
    patience::wait(|| busy(name), run)
}

pub fn lock(name: &Text) -> Option<Stored> {
    waiting_for(name, || lock_one(name))
}

pub fn lock_for_use(name: &Text) {
    waiting_for(name, || share_one(name));
}

pub fn insert(definition: &Definition, role: pg_sys::Oid, now: Time) -> bool {
    waiting_for(&definition.name, || insert_one().execute(&written(definition, role, now))) > 0
}

pub fn update(definition: &Definition, by: pg_sys::Oid, now: Time) {
    update_one().execute(&written(definition, by, now));
}
