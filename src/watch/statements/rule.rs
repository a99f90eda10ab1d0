use crate::pg::clock;
use crate::pg::text::Text;
use crate::store::statement::{Arg, Rows};
use crate::store::typed::statement;
use crate::store::{arg, from_timestamptz, time};
use awty_core::Time;
use awty_core::watch::Levels;
use chrono::TimeDelta;
use pgrx::datum::{Interval, TimestampWithTimeZone};
use pgrx::{IntoDatum, pg_sys};

#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    pub since: Option<Text>,
    pub until: Text,
    pub within: TimeDelta,
    pub escalate: Vec<TimeDelta>,
    /// The function that gets the alert.
    pub call: Option<(Text, Text)>,
    pub notify: Option<Text>,
    /// The option `existing`: `upcoming`, `all` or `none`.
    pub existing: Text,
    pub role: pg_sys::Oid,
}

#[derive(Clone, Debug)]
pub struct Rule {
    pub name: Text,
    pub relation: pg_sys::Oid,
    pub entity_name: Text,
    pub terms: Definition,
    pub watched_by: pg_sys::Oid,
    pub watched_at: Time,
    pub walk: Walk,
    pub walked_to: Option<Text>,
}

/// State of the walk through the rows that existed before the rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Walk {
    /// Pending checks keep their slots.
    New,
    /// Pending checks move to the slots of the changed rule.
    Changed,
    Done,
}

impl Walk {
    pub fn word(self) -> &'static str {
        match self {
            Walk::New => "new",
            Walk::Changed => "changed",
            Walk::Done => "done",
        }
    }
}

impl Rule {
    /// Returns `None` if the stored levels are invalid.
    pub fn levels(&self) -> Option<Levels> {
        Levels::new(self.terms.within, &self.terms.escalate).ok()
    }
}

statement!(
    select_one,
    [TEXTOID],
    c"SELECT r.rule, r.relation::pg_catalog.oid, r.entity_name, r.since, r.until, r.within, r.escalate, r.call_schema, r.call_name,
             r.notify, r.existing, r.role::pg_catalog.oid, r.watched_by::pg_catalog.oid, r.watched_at, r.walk, r.walked_to
      FROM awty.rule AS r WHERE r.rule = $1"
);

statement!(
    insert_one,
    [
        TEXTOID, OIDOID, TEXTOID, TEXTOID, TEXTOID, INTERVALOID, INTERVALARRAYOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, OIDOID,
        OIDOID, TIMESTAMPTZOID, TEXTOID
    ],
    c"INSERT INTO awty.rule (rule, relation, entity_name, since, until, within, escalate, call_schema, call_name, notify, existing,
          role, watched_by, watched_at, walk)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
      ON CONFLICT (rule) DO UPDATE SET relation = excluded.relation, since = excluded.since, until = excluded.until,
          within = excluded.within, escalate = excluded.escalate, call_schema = excluded.call_schema, call_name = excluded.call_name,
          notify = excluded.notify, existing = excluded.existing, role = excluded.role, watched_by = excluded.watched_by,
          watched_at = excluded.watched_at, walk = excluded.walk, walked_to = NULL, swept_at = NULL"
);

statement! {
    pub fn remove(name: &Text) = query,
    c"DELETE FROM awty.rule WHERE rule = $1"
}

statement!(update_walk, [TEXTOID, TEXTOID, TEXTOID], c"UPDATE awty.rule SET walk = $2, walked_to = $3 WHERE rule = $1");

statement! {
    /// Records that the open alerts of a rule have been compared with their rows.
    pub fn set_swept(name: &Text, now: Time) = query,
    c"UPDATE awty.rule SET swept_at = $2 WHERE rule = $1"
}

statement! {
    pub fn sweep_all() = query,
    c"UPDATE awty.rule SET swept_at = NULL WHERE swept_at IS NOT NULL"
}

statement! {
    pub fn names() -> Vec<Text> = query,
    c"SELECT r.rule FROM awty.rule AS r ORDER BY r.rule"
}

statement! {
    /// Returns the rules with open alerts that were not swept after `then`.
    pub fn to_sweep(then: Time) -> Vec<Text> = query,
    c"SELECT r.rule FROM awty.rule AS r
      WHERE (r.swept_at IS NULL OR r.swept_at <= $1)
        AND EXISTS (SELECT FROM awty.alert AS a WHERE a.rule = r.rule AND a.cleared_at IS NULL)
      ORDER BY r.rule"
}

fn read(rows: &Rows) -> Option<Rule> {
    let length = |interval: &Interval| clock::delta(interval);
    let walk: Text = rows.first(15)?;
    Some(Rule {
        name: rows.first(1)?,
        relation: rows.first(2)?,
        entity_name: rows.first(3)?,
        terms: Definition {
            since: rows.first(4),
            until: rows.first(5)?,
            within: rows.first::<Interval>(6).as_ref().and_then(length)?,
            escalate: rows.first::<Vec<Interval>>(7)?.iter().map(length).collect::<Option<_>>()?,
            call: rows.first(8).zip(rows.first(9)),
            notify: rows.first(10),
            existing: rows.first(11)?,
            role: rows.first(12)?,
        },
        watched_by: rows.first(13)?,
        watched_at: rows.first::<TimestampWithTimeZone>(14).map(from_timestamptz)?,
        walk: [Walk::New, Walk::Changed]
            .into_iter()
            .find(|w| w.word().as_bytes() == walk.as_bytes())
            .unwrap_or(Walk::Done),
        walked_to: rows.first(16),
    })
}

/// Reads by the latest snapshot, because rows that are written under an older snapshot are watched as well.
pub fn find(name: &Text) -> Option<Rule> {
    select_one().query_latest(&[Some(name.datum())], |rows| if rows.len() > 0 { read(rows) } else { None })
}

/// Replaces a rule with the same name.
pub fn put(rule: &Rule) {
    let text = |text: &Option<Text>| text.as_ref().map(Text::datum);
    let terms = &rule.terms;
    let escalate: Option<Vec<Interval>> =
        terms.escalate.iter().map(|delta| crate::store::to_interval(*delta)).collect();
    let (schema, name) = terms.call.clone().unzip();
    let args: [Arg; 15] = [
        Some(rule.name.datum()),
        arg(rule.relation),
        Some(rule.entity_name.datum()),
        text(&terms.since),
        Some(terms.until.datum()),
        crate::store::interval(terms.within),
        escalate.and_then(IntoDatum::into_datum),
        text(&schema),
        text(&name),
        text(&terms.notify),
        Some(terms.existing.datum()),
        arg(terms.role),
        arg(rule.watched_by),
        time(rule.watched_at),
        Some(Text::from(rule.walk.word()).datum()),
    ];
    insert_one().execute(&args);
}

pub fn set_walked(name: &Text, walk: Walk, to: Option<&Text>) {
    let args = [Some(name.datum()), Some(Text::from(walk.word()).datum()), to.map(Text::datum)];
    update_walk().execute(&args);
}
