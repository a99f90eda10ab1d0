use super::request::{Found, Request, own_table, rule_name, times};
use super::statements::{alert, rule_check, stop};
use super::unwatch::{self, unwatch_rule};
use super::{BACKFILL, FUNCTION, SWEEP, attempts, end_rule, hand_over, new_job, walk};
use crate::calendar;
use crate::call::args::{Args, calls};
use crate::call::rights;
use crate::call::run_as::check_quota;
use crate::error::{self, Error, Result, WatchError};
use crate::pg::column::Column;
use crate::pg::procedure::Procedure;
use crate::pg::subtransaction::{kept_if_ok, undone_or_raised};
use crate::pg::table::{self, Described};
use crate::pg::text::Text;
use crate::pg::zone::{self, Local};
use crate::pg::{catalog, clock, table_lock};
use crate::rule::statements::rule::{self, Definition, Rule, Walk};
use crate::rule::statements::rule_function::{self, KEY, StoredFunction};
use crate::rule::statements::rule_objects;
use crate::rule::statements::watched::{Functions, Source};
use crate::shmem::wakeup;
use crate::store::job::{self, Job};
use crate::store::job_option::Options;
use crate::store::origin;
use crate::store::patience::for_a_moment;
use awty_core::Time;
use awty_core::calendar::Length;
use awty_core::limits::Shown;
use awty_core::repeat::Zone;
use awty_core::watch::Levels;
use chrono::TimeDelta;
use pgrx::pg_sys;

calls! {
    fn watch -> Text = |args| kept_if_ok(|| watch_table(args));
    fn unwatch -> i64 = |args| kept_if_ok(|| unwatch_rule(args));
}

fn watch_table(args: &Args) -> Result<Text> {
    rights::gate("awty.watch()")?;
    let relation = args.get::<pg_sys::Oid>(0).ok_or(Error::Null { argument: "relation" })?;
    attempts::attempt(|| wait(args, relation), || watch_now(args, relation))
}

/// Waits for each lock that [`watch_now`] needs, except for those of rows of which there may be millions.
fn wait(args: &Args, relation: pg_sys::Oid) -> Result<()> {
    let table = own_table(relation)?;
    let request = undone_or_raised(|| {
        table_lock::against_changes(table.oid);
        Request::read(args, own_table(relation)?)
    })?;
    let name = &request.name;
    match &request.found {
        Found::Same(old) => {
            undone_or_raised(|| walk::go_on(old, clock::now()));
            return Ok(());
        }
        Found::Nothing if job::find(name).is_some() => {}
        Found::Nothing => new_job::wait(name)?,
        Found::Lost => end_lost(name)?,
        Found::OfOtherKey => unwatch::wait(name)?,
        Found::Replaced(_) => hand_over::wait(name, request.terms.role, clock::now()),
    }
    refuse_foreign_schema(&request.table)?;
    rule_objects::wait(name, &request.table, &request.expressions());
    Ok(())
}

/// Ends a rule whose table was dropped, before the new table is locked, because the rule may have many checks.
fn end_lost(name: &Text) -> Result<()> {
    undone_or_raised(|| job::take_name(name));
    end_rule::without_table(name).map_err(|_| WatchError::Changed { rule: name.to_string() }.into())
}

/// Locks the table. Judges the rights before and after, because they may have changed during each wait.
fn watch_now(args: &Args, relation: pg_sys::Oid) -> Result<Text> {
    own_table(relation)?;
    table_lock::against_writes(relation);
    let table = own_table(relation)?;
    let name = rule_name(args, &table)?;
    let now = clock::now();
    let busy = || WatchError::Busy { rule: name.to_string() }.into();
    let request = for_a_moment(busy, || {
        let request = Request::read(args, table)?;
        match &request.found {
            Found::Nothing | Found::OfOtherKey => {}
            Found::Lost => return Err(busy()),
            Found::Same(old) => walk::go_on(old, now),
            Found::Replaced(_) => hand_over::lock(&name, request.terms.role),
        }
        Ok(request)
    })?;
    if matches!(request.found, Found::OfOtherKey) {
        unwatch::end(&name, relation)?;
    }
    if !matches!(request.found, Found::Same(_)) {
        let functions = rule_objects::lock(&name, &request.table)?;
        for_a_moment(busy, || put(request, functions, now))?;
    }
    Ok(name)
}

fn put(request: Request, former: Vec<Procedure>, now: Time) -> Result<()> {
    rule_objects::drop_all(&request.name, &request.table, former);
    check_room(&request)?;
    tell_times(&request.terms, &request.levels, now);
    let replaces = matches!(request.found, Found::Replaced(_));
    write_job(&request.name, &request.terms, replaces)?;
    let Request { name, table, key, until, start, stopped, terms, found, .. } = request;
    let walk = match terms.existing.as_bytes() {
        b"none" => Walk::Done,
        _ if replaces => Walk::Changed,
        _ => Walk::New,
    };
    let entity_name = match found {
        Found::Replaced(old) => old.entity_name,
        _ => Text::of_utf8(&table.name),
    };
    let rule = Rule {
        name,
        relation: table.oid,
        entity_name,
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
    let create = |argument, expression| rule_objects::create_function(&rule.name, &table, argument, expression);
    let functions = Functions {
        until: create("until", &until),
        start: start.as_ref().map(|(argument, start)| create(argument, start)),
        stopped: stopped.as_ref().map(|stopped| create("stopped", stopped)),
    };
    let columns: Vec<Column> = key.iter().map(|part| part.column.clone()).collect();
    rule_function::put(&rule.name, &StoredFunction::new(KEY.into(), pg_sys::InvalidOid, &columns));
    let source = Source::new(table, key, functions);
    rule_objects::create_triggers(&rule.name, &source);
    if replaces {
        if rule.terms.stopped.is_none() {
            stop::remove_all(&rule.name);
        }
        sweep(&rule, now);
    }
    take_in(&rule, &source, now);
    Ok(())
}

fn refuse_foreign_schema(table: &Described) -> Result<()> {
    if table::may_create_in(&table.schema, table.owner) {
        return Ok(());
    }
    let (schema, owner) = (table::quoted(&table.schema), catalog::role_label(table.owner));
    Err(WatchError::NoCreate { schema, owner }.into())
}

fn check_room(request: &Request) -> Result<()> {
    let Request { name, table, .. } = request;
    refuse_foreign_schema(table)?;
    match rule_objects::name_taken(name, table, &request.expressions()) {
        Some(object) => Err(WatchError::NameTaken { rule: name.to_string(), object }.into()),
        None => Ok(()),
    }
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
        // With the table locked, there is no time to end what may be left.
        let is_clear = |name: &Text| match new_job::is_any_left(name) {
            true => Err(WatchError::Busy { rule: name.to_string() }.into()),
            false => Ok(()),
        };
        if !new_job::insert(&job, is_clear)? {
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
