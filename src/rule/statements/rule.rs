use crate::calendar;
use crate::error::{CalendarError, Error};
use crate::pg::clock;
use crate::pg::text::Text;
use crate::pg::zone::Local;
use crate::store::statement::{Arg, Rows};
use crate::store::typed::{is_true, row, statement};
use crate::store::{arg, from_timestamptz, time};
use awty_core::Time;
use awty_core::calendar::Length;
use awty_core::watch::{LevelError, Levels};
use chrono::TimeDelta;
use pgrx::datum::{Interval, TimestampWithTimeZone};
use pgrx::{IntoDatum, pg_sys};
use std::rc::Rc;

#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    pub since: Option<Text>,
    pub due: Option<Text>,
    pub until: Text,
    pub within: Option<Length>,
    pub escalate: Vec<Length>,
    pub calendar: Option<Text>,
    pub stopped: Option<Text>,
    pub remind: Vec<Length>,
    pub every: Option<Length>,
    pub call: Option<(Text, Text)>,
    pub call_cleared: Option<(Text, Text)>,
    pub notify: Option<Text>,
    pub existing: Text,
    pub role: pg_sys::Oid,
}

impl Definition {
    pub fn start(&self) -> Option<(&'static str, &Text)> {
        self.since.as_ref().map(|since| ("since", since)).or(self.due.as_ref().map(|due| ("due", due)))
    }

    pub fn levels(&self) -> Result<Levels<Local>, LevelError> {
        let calendar = self.calendar.as_ref().and_then(calendar::find).map(|known| Rc::clone(&known.calendar));
        Levels::new(self.within, self.escalate.clone(), calendar)?.telling(self.remind.clone(), self.every)
    }
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
    /// Transaction number. The second visit of all rows waits until all earlier transactions have ended, because they
    /// may use the replaced calendar. The number is 0 until the first visit begins.
    pub walk_after: Option<Text>,
    pub swept_at: Option<Time>,
    pub swept_to: Option<Text>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Walk {
    /// The rule is new. Pending checks keep their times.
    New,
    /// The rule was changed. Pending checks move to new times.
    Changed,
    /// The calendar was replaced. Pending checks move to new times, but no checks are added.
    Moved,
    /// The calendar was replaced, and all transactions that may have used the old one have ended.
    Again,
    Done,
}

impl Walk {
    pub fn adds_rows(self) -> bool {
        matches!(self, Walk::New | Walk::Changed)
    }

    pub fn word(self) -> &'static str {
        match self {
            Walk::New => "new",
            Walk::Changed => "changed",
            Walk::Moved => "moved",
            Walk::Again => "again",
            Walk::Done => "done",
        }
    }
}

impl Rule {
    pub fn levels(&self) -> Option<Levels<Local>> {
        self.terms.levels().ok()
    }
}

statement!(
    select_one,
    [TEXTOID],
    c"SELECT r.rule, r.relation::pg_catalog.oid, r.entity_name, r.since, r.until, r.within, r.escalate, r.call_schema, r.call_name,
             r.notify, r.existing, r.role::pg_catalog.oid, r.watched_by::pg_catalog.oid, r.watched_at, r.walk, r.walked_to, r.due, r.calendar,
             r.remind, r.every, r.cleared_schema, r.cleared_name, r.stopped,
             r.walk_after::pg_catalog.text, r.swept_at, r.swept_to
      FROM awty.rule AS r WHERE r.rule = $1"
);

statement!(
    insert_one,
    [
        TEXTOID, OIDOID, TEXTOID, TEXTOID, TEXTOID, INTERVALOID, INTERVALARRAYOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, OIDOID,
        OIDOID, TIMESTAMPTZOID, TEXTOID, TEXTOID, TEXTOID, INTERVALARRAYOID, INTERVALOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID
    ],
    c"INSERT INTO awty.rule (rule, relation, entity_name, since, until, within, escalate, call_schema, call_name, notify, existing,
          role, watched_by, watched_at, walk, due, calendar, remind, every, cleared_schema, cleared_name, stopped, walk_after)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22,
          $23::pg_catalog.xid8)
      ON CONFLICT (rule) DO UPDATE SET relation = excluded.relation, since = excluded.since, until = excluded.until,
          within = excluded.within, escalate = excluded.escalate, call_schema = excluded.call_schema, call_name = excluded.call_name,
          notify = excluded.notify, existing = excluded.existing, role = excluded.role, watched_by = excluded.watched_by,
          watched_at = excluded.watched_at, walk = excluded.walk, walked_to = NULL,
          walk_after = excluded.walk_after, swept_at = NULL, swept_to = NULL, due = excluded.due,
          calendar = excluded.calendar, remind = excluded.remind, every = excluded.every, cleared_schema = excluded.cleared_schema,
          cleared_name = excluded.cleared_name, stopped = excluded.stopped"
);

statement! {
    pub fn remove(name: &Text) = query,
    c"DELETE FROM awty.rule WHERE rule = $1"
}

statement!(
    update_sweep,
    [TEXTOID, TIMESTAMPTZOID, TEXTOID],
    c"UPDATE awty.rule SET swept_at = $2, swept_to = $3 WHERE rule = $1"
);

statement!(update_walk, [TEXTOID, TEXTOID, TEXTOID], c"UPDATE awty.rule SET walk = $2, walked_to = $3 WHERE rule = $1");

statement! {
    pub fn walk_moved(name: &Text) = query,
    c"UPDATE awty.rule SET walk = CASE WHEN walk IN ('new', 'changed') THEN 'changed' ELSE 'moved' END, walked_to = NULL, walk_after = '0'
      WHERE rule = $1"
}

statement! {
    /// Stores the next transaction's number in `walk_after`. All open transactions have lower numbers.
    pub fn note_open(name: &Text) = query,
    c"UPDATE awty.rule SET walk_after = pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot()) WHERE rule = $1"
}

statement! {
    pub fn forget_open(name: &Text) = query,
    c"UPDATE awty.rule SET walk_after = NULL WHERE rule = $1"
}

statement! {
    /// Returns whether every transaction with a number below `before` has ended.
    ///
    /// Also returns `true` if this server has not assigned the number `before` yet, because the number then comes from
    /// a dump of another server.
    pub fn have_ended(before: &Text) -> bool = query(is_true),
    c"SELECT $1::pg_catalog.xid8 > pg_catalog.pg_snapshot_xmax(s.now)
          OR NOT EXISTS (SELECT FROM pg_catalog.pg_snapshot_xip(s.now) AS p (xid) WHERE p.xid < $1::pg_catalog.xid8)
      FROM (SELECT pg_catalog.pg_current_snapshot()) AS s (now)"
}

statement! {
    pub fn of_due() -> Vec<(Text, pg_sys::Oid)> = query_latest,
    c"SELECT r.rule, r.role::pg_catalog.oid FROM awty.rule AS r
      JOIN awty_internal.rule_function AS f ON f.rule = r.rule AND f.argument = 'due'
      WHERE EXISTS (SELECT FROM pg_catalog.pg_depend AS d
                    WHERE d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.objid = f.function
                        AND d.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass
                        AND d.refobjid = 'awty.due(timestamptz, interval, text)'::pg_catalog.regprocedure)
      ORDER BY r.rule"
}

statement! {
    pub fn sweep_anew(name: &Text) = query,
    c"UPDATE awty.rule SET swept_at = NULL, swept_to = NULL WHERE rule = $1"
}

statement! {
    pub fn sweep_all() = query,
    c"UPDATE awty.rule SET swept_at = NULL, swept_to = NULL WHERE swept_at IS NOT NULL"
}

/// A rule that may need repair.
pub struct Place {
    pub name: Text,
    pub relation: pg_sys::Oid,
    pub role: pg_sys::Oid,
    /// Number of the name, by which the rules are in order. Unlike the name, it fits into shared memory.
    pub number: i64,
}

row!(Place { name, relation, role, number });

statement! {
    /// Returns roles and names. The roles take turns, so that the limit leaves out no role.
    pub fn without_table(limit: usize) -> Vec<(pg_sys::Oid, Text)> = query,
    c"SELECT r.role::pg_catalog.oid, r.rule FROM awty.rule AS r
      WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_class AS c WHERE c.oid = r.relation)
      ORDER BY pg_catalog.row_number() OVER (PARTITION BY r.role ORDER BY r.rule), r.role LIMIT $1"
}

statement! {
    /// Returns the numbers of the columns. [`primary_key::columns_of`] locks the table, and this statement does not, so
    /// that a reader of `awty.status` never waits for a transaction that has locked a watched table.
    ///
    /// [`primary_key::columns_of`]: crate::pg::primary_key::columns_of
    pub fn primary_key(table: pg_sys::Oid) -> Option<Vec<i16>> = query(|rows| rows.first(1)),
    c"SELECT (i.indkey::pg_catalog.int2[])[0:i.indnkeyatts - 1]
      FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
      JOIN pg_catalog.pg_am AS a ON a.oid = c.relam
      WHERE i.indrelid = $1 AND i.indisprimary AND i.indisvalid AND a.amname = 'btree'"
}

statement! {
    pub fn piece(after: i64, limit: usize) -> Vec<Place> = query,
    c"SELECT r.rule, r.relation::pg_catalog.oid, r.role::pg_catalog.oid, n.number
      FROM awty.rule AS r CROSS JOIN LATERAL pg_catalog.hashtextextended(r.rule, 0) AS n (number)
      WHERE n.number > $1 ORDER BY n.number LIMIT $2"
}

statement! {
    pub fn of_calendar(calendar: &Text) -> Vec<Text> = query_latest,
    c"SELECT r.rule FROM awty.rule AS r WHERE r.calendar = $1 ORDER BY r.rule"
}

statement! {
    pub fn to_sweep(then: Time) -> Vec<Text> = query,
    c"SELECT r.rule FROM awty.rule AS r
      WHERE (r.swept_at IS NULL OR r.swept_at <= $1)
        AND EXISTS (SELECT FROM awty.alert AS a WHERE a.rule = r.rule AND a.cleared_at IS NULL)
      ORDER BY r.rule"
}

/// A length of open time is in days or in hours, not both. Without a calendar, a day has 24 hours.
pub fn length(interval: &Interval, argument: &'static str, is_open_time: bool) -> Result<Length, Error> {
    if is_open_time {
        let (months, days, micros) = (interval.months(), interval.days(), interval.micros());
        return Length::new(argument, months, days, micros).map_err(|error| CalendarError::Length(error).into());
    }
    let micros = clock::delta(interval).and_then(|delta| delta.num_microseconds());
    micros.map(Length::Time).ok_or(Error::DurationOutOfRange { argument })
}

pub fn interval(length: Length, is_open_time: bool) -> Option<Interval> {
    match length {
        Length::Days(days) => Interval::new(0, i32::try_from(days).ok()?, 0).ok(),
        Length::Time(time) if is_open_time => Interval::new(0, 0, time).ok(),
        Length::Time(time) => crate::store::to_interval(TimeDelta::microseconds(time)),
    }
}

fn read(rows: &Rows) -> Option<Rule> {
    let calendar: Option<Text> = rows.first(18);
    let length = |interval: &Interval| length(interval, "within", calendar.is_some()).ok();
    let escalate = rows.first::<Vec<Interval>>(7)?.iter().map(length).collect::<Option<_>>()?;
    let within = match rows.first::<Interval>(6) {
        Some(within) => Some(length(&within)?),
        None => None,
    };
    let remind = rows.first::<Vec<Interval>>(19)?.iter().map(length).collect::<Option<_>>()?;
    let every = match rows.first::<Interval>(20) {
        Some(every) => Some(length(&every)?),
        None => None,
    };
    let walk: Text = rows.first(15)?;
    Some(Rule {
        name: rows.first(1)?,
        relation: rows.first(2)?,
        entity_name: rows.first(3)?,
        terms: Definition {
            since: rows.first(4),
            due: rows.first(17),
            until: rows.first(5)?,
            within,
            escalate,
            calendar,
            stopped: rows.first(23),
            remind,
            every,
            call: rows.first(8).zip(rows.first(9)),
            call_cleared: rows.first(21).zip(rows.first(22)),
            notify: rows.first(10),
            existing: rows.first(11)?,
            role: rows.first(12)?,
        },
        watched_by: rows.first(13)?,
        watched_at: rows.first::<TimestampWithTimeZone>(14).map(from_timestamptz)?,
        walk: [Walk::New, Walk::Changed, Walk::Moved, Walk::Again]
            .into_iter()
            .find(|w| w.word().as_bytes() == walk.as_bytes())
            .unwrap_or(Walk::Done),
        walked_to: rows.first(16),
        walk_after: rows.first(24),
        swept_at: rows.first::<TimestampWithTimeZone>(25).map(from_timestamptz),
        swept_to: rows.first(26),
    })
}

/// Reads the rule with the latest snapshot, so that a transaction that began before the rule was created also sees the
/// rule.
pub fn find(name: &Text) -> Option<Rule> {
    select_one().query_latest(&[Some(name.datum())], |rows| if rows.len() > 0 { read(rows) } else { None })
}

pub fn put(rule: &Rule) {
    let text = |text: &Option<Text>| text.as_ref().map(Text::datum);
    let terms = &rule.terms;
    let stored = |length: &Length| interval(*length, terms.calendar.is_some());
    let escalate: Option<Vec<Interval>> = terms.escalate.iter().map(stored).collect();
    let remind: Option<Vec<Interval>> = terms.remind.iter().map(stored).collect();
    let (schema, name) = terms.call.clone().unzip();
    let (cleared_schema, cleared_name) = terms.call_cleared.clone().unzip();
    let args: [Arg; 23] = [
        Some(rule.name.datum()),
        arg(rule.relation),
        Some(rule.entity_name.datum()),
        text(&terms.since),
        Some(terms.until.datum()),
        terms.within.as_ref().and_then(stored).and_then(IntoDatum::into_datum),
        escalate.and_then(IntoDatum::into_datum),
        text(&schema),
        text(&name),
        text(&terms.notify),
        Some(terms.existing.datum()),
        arg(terms.role),
        arg(rule.watched_by),
        time(rule.watched_at),
        Some(Text::from(rule.walk.word()).datum()),
        text(&terms.due),
        text(&terms.calendar),
        remind.and_then(IntoDatum::into_datum),
        terms.every.as_ref().and_then(stored).and_then(IntoDatum::into_datum),
        text(&cleared_schema),
        text(&cleared_name),
        text(&terms.stopped),
        text(&rule.walk_after),
    ];
    insert_one().execute(&args);
}

pub fn set_walked(name: &Text, walk: Walk, to: Option<&Text>) {
    let args = [Some(name.datum()), Some(Text::from(walk.word()).datum()), to.map(Text::datum)];
    update_walk().execute(&args);
}

pub fn set_swept(name: &Text, at: Option<Time>, to: Option<&Text>) {
    update_sweep().execute(&[Some(name.datum()), at.and_then(time), to.map(Text::datum)]);
}
