use super::statements::{alert, rule_check, stop};
use super::unwatch::{may_change, unwatch_rule};
use super::{BACKFILL, CLEARED, FUNCTION, SWEEP, end_rule, hand_over, new_job, walk};
use crate::calendar;
use crate::call::args::{Args, calls};
use crate::call::argument_limits::{MAX_CALENDAR, MAX_CHANNEL, MAX_EXPRESSION, MAX_FUNCTION, MAX_JOB, MAX_RULE_LENGTH};
use crate::call::rights;
use crate::call::run_as::{check_quota, run_as};
use crate::error::{self, CalendarError, Error, Result, WatchError};
use crate::function;
use crate::pg::expression::Expression;
use crate::pg::subtransaction::kept_if_ok;
use crate::pg::table::{self, Described, KeyColumn, Kind};
use crate::pg::text::Text;
use crate::pg::zone::{self, Local};
use crate::pg::{catalog, clock, relations, scalar, table_lock};
use crate::rule::statements::rule::{self, Definition, Rule, Walk};
use crate::rule::statements::watched::{Functions, Source};
use crate::rule::statements::{distributed, rule_objects};
use crate::rule::{condition, functions};
use crate::shmem::wakeup;
use crate::store::job::Job;
use crate::store::job_option::Options;
use crate::store::origin;
use awty_core::Time;
use awty_core::calendar::Length;
use awty_core::limits::Shown;
use awty_core::repeat::Zone;
use awty_core::watch::Levels;
use chrono::TimeDelta;
use pgrx::datum::Interval;
use pgrx::pg_sys;

const OWN_SCHEMAS: [&str; 4] = ["awty", "awty_internal", "awty_http", "awty_http_internal"];

calls! {
    fn watch -> Text = |args| kept_if_ok(|| watch_table(args));
    fn unwatch -> i64 = |args| kept_if_ok(|| unwatch_rule(args));
}

fn watch_table(args: &Args) -> Result<Text> {
    rights::gate("awty.watch()")?;
    let table = own_table(args)?;
    let key = key_of(&table)?;
    let until = args.text(1, "until", MAX_EXPRESSION)?.ok_or(Error::Null { argument: "until" })?;
    let (since, due) = (args.text(4, "since", MAX_EXPRESSION)?, args.text(11, "due", MAX_EXPRESSION)?);
    if due.is_some() == args.get::<Interval>(2).is_some() {
        return Err(WatchError::WithinOrDue { both: due.is_some() }.into());
    }
    let start = match (&since, &due) {
        (Some(_), Some(_)) => return Err(WatchError::SinceAndDue.into()),
        (Some(since), None) => Some(("since", since)),
        (None, Some(due)) => Some(("due", due)),
        (None, None) => None,
    };
    let there = condition::read(&until, "until", &table)?;
    let starts = match start {
        Some((argument, text)) => Some((argument, condition::read(text, argument, &table)?)),
        None => None,
    };
    if starts.is_none() && table.kind != Kind::Plain {
        return Err(WatchError::NeedsSince { relation: table.qualified() }.into());
    }
    let stopped = args.text(13, "stopped", MAX_EXPRESSION)?;
    let stops = stopped.as_ref().map(|text| condition::read(text, "stopped", &table)).transpose()?;
    let name = match args.optional_name(8, "rule", MAX_JOB) {
        Err(Error::TooLong { max, .. }) => return Err(WatchError::NameTooLong { max }.into()),
        given => given?,
    };
    let name = name.unwrap_or_else(|| Text::of_utf8(&table.name));
    let terms = terms(args, Expressions { until, since, due, stopped }, &table)?;
    let now = clock::now();
    let levels = terms.levels().map_err(WatchError::Levels)?;
    refuse_unreachable(&terms, &levels, now)?;
    let entity_name = Text::of_utf8(&table.name);
    let old = in_the_way(&name)?;
    let replaces = match &old {
        Some(old) => match table::describe(old.relation) {
            Some(other) if other.oid != table.oid => {
                return Err(WatchError::OtherTable { rule: name.to_string(), relation: other.qualified() }.into());
            }
            _ if old.terms == terms && functions::fault(old, &table).is_none() => {
                walk::go_on(old, now);
                return Ok(name);
            }
            _ if old.terms == terms || args.get::<bool>(10).unwrap_or(false) => true,
            _ => return Err(WatchError::RuleExists { rule: name.to_string(), own: true }.into()),
        },
        None => false,
    };
    if replaces {
        hand_over::lock(&name, terms.role); // waits before drop_all() locks the table against reads
    }
    rule_objects::drop_all(&name, &table);
    let mut expressions = vec![("until", &there)];
    expressions.extend(starts.as_ref().map(|(argument, start)| (*argument, start)));
    expressions.extend(stops.as_ref().map(|stops| ("stopped", stops)));
    check_room(&name, &table, &expressions)?;
    tell_times(&terms, &levels, now);
    write_job(&name, &terms, replaces)?;
    let walk = match terms.existing.as_bytes() {
        b"none" => Walk::Done,
        _ if replaces => Walk::Changed,
        _ => Walk::New,
    };
    let rule = Rule {
        name: name.clone(),
        relation: table.oid,
        entity_name: old.map_or(entity_name, |old| old.entity_name),
        terms,
        watched_by: catalog::current_role(),
        watched_at: now,
        walk,
        walked_to: None,
        walk_after: (walk == Walk::Changed).then(|| Text::from("0")),
        swept_at: None,
        swept_to: None,
    };
    rule::put(&rule);
    let create = |argument, expression| rule_objects::create_function(&name, &table, argument, expression);
    let functions = Functions {
        until: create("until", &there),
        start: starts.as_ref().map(|(argument, start)| create(argument, start)),
        stopped: stops.as_ref().map(|stops| create("stopped", stops)),
    };
    let source = Source::new(table, key, functions);
    rule_objects::create_triggers(&name, &source);
    if replaces {
        if rule.terms.stopped.is_none() {
            stop::remove_all(&name);
        }
        sweep(&rule, now);
    }
    take_in(&rule, &source, now);
    Ok(name)
}

fn in_the_way(name: &Text) -> Result<Option<Rule>> {
    let Some(old) = rule::find(name) else { return Ok(None) };
    if !may_change(&old) {
        return Err(WatchError::RuleExists { rule: name.to_string(), own: false }.into());
    }
    if table::describe(old.relation).is_some() {
        return Ok(Some(old));
    }
    end_rule::without_table(name).map_err(|_| WatchError::Changed { rule: name.to_string() })?;
    Ok(None)
}

fn check_room(name: &Text, table: &Described, expressions: &[(&str, &Expression)]) -> Result<()> {
    if !table::may_create_in(&table.schema, table.owner) {
        let (schema, owner) = (table::quoted(&table.schema), catalog::role_label(table.owner));
        return Err(WatchError::NoCreate { schema, owner }.into());
    }
    match rule_objects::name_taken(name, table, expressions) {
        Some(object) => Err(WatchError::NameTaken { rule: name.to_string(), object }.into()),
        None => Ok(()),
    }
}

fn own_table(args: &Args) -> Result<Described> {
    let oid = args.get::<pg_sys::Oid>(0).ok_or(Error::Null { argument: "relation" })?;
    let judge = || -> Result<Described> {
        let table = table::describe(oid)
            .ok_or_else(|| WatchError::NotATable { relation: oid.to_u32().to_string(), is: "not there" })?;
        let caller = catalog::current_role();
        if !catalog::can_become(caller, table.owner) {
            let owner = catalog::role_label(table.owner);
            let caller = catalog::role_label(caller);
            return Err(WatchError::NotTableOwner { relation: table.qualified(), owner, caller }.into());
        }
        if distributed::is_distributed(oid) {
            return Err(WatchError::Distributed { relation: table.qualified() }.into());
        }
        let is = match table.kind {
            _ if table.is_system => "one of PostgreSQL's own",
            _ if OWN_SCHEMAS.contains(&table.schema.as_str()) => "one of awty's own",
            _ if table.is_temporary => "temporary",
            _ if [BACKFILL, CLEARED, SWEEP].contains(&table.name.as_str()) => "named like a check of awty's own",
            Kind::Other(pg_sys::RELKIND_VIEW) => "a view",
            Kind::Other(pg_sys::RELKIND_MATVIEW) => "a materialized view",
            Kind::Other(pg_sys::RELKIND_FOREIGN_TABLE) => "a foreign table",
            Kind::Other(_) => "no table",
            Kind::Plain | Kind::Partitioned | Kind::Partition => return functions::of_one_owner(table),
        };
        Err(WatchError::NotATable { relation: table.qualified(), is }.into())
    };
    // Checks the caller's rights before locking the table, so that an unauthorised caller cannot lock another user's
    // table. Checks the rights again after the lock, because the table may have changed.
    judge()?;
    table_lock::against_writes(oid);
    judge()
}

fn key_of(table: &Described) -> Result<Vec<KeyColumn>> {
    let key = table::primary_key(table.oid).ok_or_else(|| WatchError::NoPrimaryKey { relation: table.qualified() })?;
    for column in &key {
        scalar::check(column.kind).map_err(|kind| Error::KeyType { argument: "relation", kind })?;
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

fn times(levels: &Levels<Local>, start: Time) -> impl Iterator<Item = Time> {
    (1..).map_while(move |level| levels.time(level, start))
}

fn tell_times(terms: &Definition, levels: &Levels<Local>, now: Time) {
    let slot = crate::settings::slot().delta();
    let is_short = |length: &Length| matches!(length, Length::Time(time) if TimeDelta::microseconds(*time) < slot);
    if terms.within.iter().chain(&terms.escalate).any(is_short) {
        error::log::notice(format!("times are rounded up to a slot, which is {} (awty.slot)", Shown(slot)));
    }
    let Some(calendar) = terms.calendar.as_ref().and_then(calendar::find) else { return };
    let zone = zone::find(&calendar.zone);
    let local = |time: Time| {
        let offset = zone.as_ref().map_or(0, |zone| zone.span_at(time.timestamp_micros()).offset);
        (time.naive_utc() + TimeDelta::seconds(i64::from(offset))).format("%a %Y-%m-%d %H:%M")
    };
    let reminders = levels.reminders(now).filter(|time| *time > now).map(|time| format!("reminder {}", local(time)));
    let levels = (1..).zip(times(levels, now)).map(|(level, time)| format!("level {level} {}", local(time)));
    let times: Vec<String> = reminders.chain(levels).collect();
    let starts = if terms.due.is_some() { "is due now" } else { "starts now" };
    error::log::notice(format!("a row that {starts}: {}", times.join(", ")));
    let weeks =
        terms.within.iter().chain(&terms.escalate).chain(&terms.remind).chain(&terms.every).find_map(|length| {
            match length {
                Length::Days(days) if days % 7 == 0 => Some(days),
                _ => None,
            }
        });
    if let Some(days) = weeks {
        let week = calendar.calendar.hours().weekdays();
        error::log::notice(format!("{days} days are {days} open days; one week of this calendar is {week} days"));
    }
}

fn write_job(name: &Text, terms: &Definition, replaces: bool) -> Result<()> {
    if replaces {
        let old = rights::job(name)?;
        if old.role != terms.role {
            check_quota(terms.role)?;
            hand_over::job(old, terms.role)?;
        }
    } else {
        check_quota(terms.role)?;
        origin::claim_if_new();
        let mut options = Options::defaults(crate::settings::slot());
        // Sets no limits on checks and attempts, because a check that ends at a limit would not report the higher
        // levels of its alert.
        (options.limits.max_checks, options.limits.max_attempts) = (0, 0);
        let job = Job {
            name: name.clone(),
            schema: Text::from(FUNCTION.0),
            function: Text::from(FUNCTION.1),
            role: terms.role,
            set_based: true,
            options,
            paused: false,
            resumed_at: None,
            registered_by: catalog::current_role(),
            notify: None,
            repeats: false,
        };
        if !new_job::insert(&job)? {
            return Err(WatchError::RuleExists { rule: name.to_string(), own: false }.into());
        }
    }
    if terms.role != catalog::current_role() {
        error::log::notice(format!("job \"{name}\" runs as \"{}\"", catalog::role_label(terms.role)));
    }
    wakeup::inspect_at_commit(false);
    Ok(())
}

fn sweep(rule: &Rule, now: Time) {
    if alert::is_any_open(&rule.name) {
        rule_check::restart_special(&rule.name, SWEEP, now, rule.terms.role);
        wakeup::at_commit(Some(rule.terms.role), clock::to_timestamp(now));
    }
}

fn take_in(rule: &Rule, source: &Source, now: Time) {
    if rule.walk == Walk::Done {
        return;
    }
    rule_check::restart_special(&rule.name, BACKFILL, now, rule.terms.role);
    wakeup::at_commit(Some(rule.terms.role), clock::to_timestamp(now));
    if rule.terms.existing.as_bytes() == b"upcoming" && source.has_rows() {
        error::log::notice("rows that are already late get no alert; existing => 'all' includes them".into());
    }
}
