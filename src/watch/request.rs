//! Reads and judges what a call of `awty.watch()` asks for.

use super::unwatch::may_change;
use crate::calendar;
use crate::call::args::Args;
use crate::call::argument_limits::{MAX_CALENDAR, MAX_CHANNEL, MAX_EXPRESSION, MAX_FUNCTION, MAX_JOB, MAX_RULE_LENGTH};
use crate::call::own_checks::is_own;
use crate::call::run_as::run_as;
use crate::error::{CalendarError, Error, Result, WatchError};
use crate::function;
use crate::pg::expression::Expression;
use crate::pg::primary_key::{self, KeyColumn};
use crate::pg::table::{self, Described, Kind};
use crate::pg::text::Text;
use crate::pg::zone::Local;
use crate::pg::{catalog, clock, relations, scalar};
use crate::rule::fault::Fault;
use crate::rule::statements::distributed;
use crate::rule::statements::rule::{self, Definition, Rule};
use crate::rule::{condition, functions};
use awty_core::Time;
use awty_core::calendar::Length;
use awty_core::limits::Shown;
use awty_core::watch::Levels;
use chrono::TimeDelta;
use pgrx::datum::Interval;
use pgrx::pg_sys;

const OWN_SCHEMAS: [&str; 4] = ["awty", "awty_internal", "awty_http", "awty_http_internal"];

pub struct Request {
    pub name: Text,
    pub table: Described,
    pub key: Vec<KeyColumn>,
    pub until: Expression,
    /// The expression of `since` or `due`, with the argument's name.
    pub start: Option<(&'static str, Expression)>,
    pub stopped: Option<Expression>,
    pub terms: Definition,
    pub levels: Levels<Local>,
    pub found: Found,
}

/// A rule that has the name already.
pub enum Found {
    Nothing,
    /// A rule whose table was dropped.
    Lost,
    /// A rule whose checks and alerts have keys of an earlier primary key of the table.
    OfOtherKey,
    /// A rule that is as the call wants it.
    Same(Rule),
    Replaced(Rule),
}

impl Request {
    /// The caller must have locked the table against changes.
    pub fn read(args: &Args, table: Described) -> Result<Request> {
        let key = key_of(&table)?;
        let until = args.text(1, "until", MAX_EXPRESSION)?.ok_or(Error::Null { argument: "until" })?;
        let (since, due) = (args.text(4, "since", MAX_EXPRESSION)?, args.text(11, "due", MAX_EXPRESSION)?);
        if due.is_some() == args.get::<Interval>(2).is_some() {
            return Err(WatchError::WithinOrDue { both: due.is_some() }.into());
        }
        let starts = match (&since, &due) {
            (Some(_), Some(_)) => return Err(WatchError::SinceAndDue.into()),
            (Some(since), None) => Some(("since", since)),
            (None, Some(due)) => Some(("due", due)),
            (None, None) => None,
        };
        let met = condition::read(&until, "until", &table)?;
        let start = match starts {
            Some((argument, text)) => Some((argument, condition::read(text, argument, &table)?)),
            None => None,
        };
        if start.is_none() && table.kind != Kind::Plain {
            return Err(WatchError::NeedsSince { relation: table.qualified() }.into());
        }
        let stops = args.text(13, "stopped", MAX_EXPRESSION)?;
        let stopped = stops.as_ref().map(|text| condition::read(text, "stopped", &table)).transpose()?;
        let name = rule_name(args, &table)?;
        let terms = terms(args, Expressions { until, since, due, stopped: stops }, &table)?;
        let levels = terms.levels().map_err(WatchError::Levels)?;
        refuse_unreachable(&terms, &levels, clock::now())?;
        let replace = args.get::<bool>(10).unwrap_or(false);
        let found = in_the_way(&name, &terms, &table, replace)?;
        Ok(Request { name, table, key, until: met, start, stopped, terms, levels, found })
    }

    pub fn expressions(&self) -> Vec<(&'static str, &Expression)> {
        let start = self.start.as_ref().map(|(argument, start)| (*argument, start));
        let stopped = self.stopped.as_ref().map(|stopped| ("stopped", stopped));
        [Some(("until", &self.until)), start, stopped].into_iter().flatten().collect()
    }
}

pub fn rule_name(args: &Args, table: &Described) -> Result<Text> {
    match args.optional_name(8, "rule", MAX_JOB) {
        Err(Error::TooLong { max, .. }) => Err(WatchError::NameTooLong { max }.into()),
        given => Ok(given?.unwrap_or_else(|| Text::of_utf8(&table.name))),
    }
}

fn in_the_way(name: &Text, terms: &Definition, table: &Described, replace: bool) -> Result<Found> {
    let Some(old) = rule::find(name) else { return Ok(Found::Nothing) };
    if !may_change(&old) {
        return Err(WatchError::RuleExists { rule: name.to_string(), own: false }.into());
    }
    match table::describe(old.relation) {
        None => Ok(Found::Lost),
        Some(other) if other.oid != table.oid => {
            Err(WatchError::OtherTable { rule: name.to_string(), relation: other.qualified() }.into())
        }
        _ if old.terms != *terms && !replace => {
            Err(WatchError::RuleExists { rule: name.to_string(), own: true }.into())
        }
        _ => match functions::fault(&old, table) {
            Some(Fault::OtherKey) => Ok(Found::OfOtherKey),
            None if old.terms == *terms => Ok(Found::Same(old)),
            _ => Ok(Found::Replaced(old)),
        },
    }
}

/// Judges the rights to the table. A role without them must not be able to lock another user's table.
pub fn own_table(relation: pg_sys::Oid) -> Result<Described> {
    let table = table::describe(relation)
        .ok_or_else(|| WatchError::NotATable { relation: relation.to_u32().to_string(), is: "not there" })?;
    let caller = catalog::current_role();
    if !catalog::can_become(caller, table.owner) {
        let owner = catalog::role_label(table.owner);
        let caller = catalog::role_label(caller);
        return Err(WatchError::NotTableOwner { relation: table.qualified(), owner, caller }.into());
    }
    if distributed::is_distributed(relation) {
        return Err(WatchError::Distributed { relation: table.qualified() }.into());
    }
    let is = match table.kind {
        _ if table.is_system => "one of PostgreSQL's own",
        _ if OWN_SCHEMAS.contains(&table.schema.as_str()) => "one of awty's own",
        _ if table.is_temporary => "temporary",
        _ if is_own(table.name.as_bytes()) => "named like a check of awty's own",
        Kind::Other(pg_sys::RELKIND_VIEW) => "a view",
        Kind::Other(pg_sys::RELKIND_MATVIEW) => "a materialized view",
        Kind::Other(pg_sys::RELKIND_FOREIGN_TABLE) => "a foreign table",
        Kind::Other(_) => "no table",
        Kind::Plain | Kind::Partitioned | Kind::Partition => return functions::of_one_owner(table),
    };
    Err(WatchError::NotATable { relation: table.qualified(), is }.into())
}

fn key_of(table: &Described) -> Result<Vec<KeyColumn>> {
    let key =
        primary_key::columns_of(table.oid).ok_or_else(|| WatchError::NoPrimaryKey { relation: table.qualified() })?;
    for part in &key {
        scalar::check(part.column.kind).map_err(|kind| Error::KeyType { argument: "relation", kind })?;
    }
    Ok(key)
}

struct Expressions {
    until: Text,
    since: Option<Text>,
    due: Option<Text>,
    stopped: Option<Text>,
}

fn terms(
    args: &Args,
    Expressions { until, since, due, stopped }: Expressions,
    table: &Described,
) -> Result<Definition> {
    let calendar = args.optional_name(12, "calendar", MAX_CALENDAR)?;
    let length = |interval: &Interval, argument| match rule::length(interval, argument, calendar.is_some()) {
        Ok(length) if length.is_longer_than(MAX_RULE_LENGTH) => Err(WatchError::LengthTooLong { argument }.into()),
        result => result,
    };
    let within = args.get::<Interval>(2).map(|within| length(&within, "within")).transpose()?;
    let lengths = |index, argument| -> Result<Vec<Length>> {
        let given = args.get::<Vec<Option<Interval>>>(index).unwrap_or_default();
        given.iter().map(|one| length(one.as_ref().ok_or(Error::DurationOutOfRange { argument })?, argument)).collect()
    };
    let (escalate, remind) = (lengths(3, "escalate")?, lengths(14, "remind")?);
    let every = args.get::<Interval>(15).map(|every| length(&every, "every")).transpose()?;
    let slot = crate::settings::slot().delta();
    if matches!(every, Some(Length::Time(time)) if time > 0 && TimeDelta::microseconds(time) < slot) {
        return Err(WatchError::EveryUnderSlot { slot: Shown(slot).to_string() }.into());
    }
    let role = run_as(Some(args.optional_role(9)?.unwrap_or(table.owner)), true)?;
    let owner = || catalog::role_label(table.owner);
    if !table::may_select(table.oid, table.owner) {
        return Err(WatchError::NoSelect { relation: table.qualified(), role: owner() }.into());
    }
    if table::hides_rows(table.oid, table.owner) {
        return Err(WatchError::RowSecurity { relation: table.qualified(), role: owner() }.into());
    }
    let (call, call_cleared) = (called(args, 5, "call", role)?, called(args, 16, "call_cleared", role)?);
    const EXISTING: &str = "upcoming, all, none";
    let existing = args.text(7, "existing", 64)?.ok_or(Error::Null { argument: "existing" })?;
    if !EXISTING.split(", ").any(|word| word.as_bytes() == existing.as_bytes()) {
        return Err(Error::Choice { argument: "existing", value: existing.to_string(), choices: EXISTING.into() });
    }
    let notify = args.optional_name(6, "notify", MAX_CHANNEL)?;
    if let Some(calendar) = &calendar {
        calendar::for_use(calendar, role)?;
    }
    Ok(Definition {
        since,
        due,
        until,
        within,
        escalate,
        calendar,
        stopped,
        remind,
        every,
        call,
        call_cleared,
        notify,
        existing,
        role,
    })
}

fn called(args: &Args, index: usize, argument: &'static str, role: pg_sys::Oid) -> Result<Option<(Text, Text)>> {
    let Some(name) = args.optional_name(index, argument, MAX_FUNCTION)? else { return Ok(None) };
    let (schema, name) = function::parse(&name, &[relations::alert_type()]).map_err(|error| match error {
        Error::FunctionMissing { function, .. } => WatchError::Call { function }.into(),
        other => other,
    })?;
    function::of_alerts(&schema, &name, role, catalog::current_role())?;
    Ok(Some((schema, name)))
}

/// Returns an error if a level of the rule never becomes due, because the rule's calendar stays closed for too long.
fn refuse_unreachable(terms: &Definition, levels: &Levels<Local>, now: Time) -> Result<()> {
    let Some(calendar) = &terms.calendar else { return Ok(()) };
    match times(levels, now).any(|time| time == Time::MAX_UTC) {
        true => Err(CalendarError::NoResult { calendar: calendar.to_string() }.into()),
        false => Ok(()),
    }
}

pub fn times(levels: &Levels<Local>, start: Time) -> impl Iterator<Item = Time> {
    (1..).map_while(move |level| levels.time(level, start))
}
