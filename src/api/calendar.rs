//! Lock order: first a calendar, then the checks that use the calendar.
//!
//! Calendar names are unique, even among calendars that the caller cannot see.

use crate::calendar::statements::calendar::{self, Definition, POSTGRES_EPOCH, Stored};
use crate::calendar::{may_use, unknown};
use crate::call::args::{Args, calls};
use crate::call::argument_limits::{MAX_CALENDAR, MAX_ZONE};
use crate::call::{rights, zone_name};
use crate::error::{CalendarError, Error, Result};
use crate::pg::array::{self, DATE, Element, TEXT};
use crate::pg::subtransaction::kept_if_ok;
use crate::pg::text::Text;
use crate::pg::{catalog, clock, zone};
use crate::repeat::replaced::{self, Users};
use crate::store::patience;
use crate::watch;
use awty_core::argument_limits::{MAX_CLOSED, MAX_ELEMENTS};
use awty_core::calendar::{Calendar, Hours};
use pgrx::pg_sys;

/// Limits the number of a role's calendars, because each query of `awty.calendar` checks the querying role's rights to
/// every calendar.
const MAX_CALENDARS: i64 = 1_000;

calls! {
    fn create_calendar -> () = |args| kept_if_ok(|| patience::shared(|| create(args)));
    fn drop_calendar -> () = |args| kept_if_ok(|| drop(args));
}

fn create(args: &Args) -> Result<()> {
    rights::gate("awty.create_calendar()")?;
    let definition = definition(args)?;
    let replace = args.get::<bool>(4).ok_or(Error::Null { argument: "replace" })?;
    let (caller, now, name) = (catalog::current_role(), clock::now(), &definition.name);
    let exists = |own| CalendarError::Exists { calendar: name.to_string(), own };
    let judge = |owner| if may_change(caller, owner) { Ok(()) } else { Err(exists(false)) };
    match calendar::find(name) {
        // Checks the caller's right before taking the lock, because PostgreSQL may keep a failed statement's lock until
        // the caller reads the error.
        Some(old) => judge(old.role)?,
        None if calendar::insert(&definition, caller, now) => return check_quota(caller),
        // Meanwhile, another transaction has created the calendar.
        None => judge(calendar::find(name).ok_or_else(|| exists(false))?.role)?,
    }
    let old = calendar::lock(name).ok_or_else(|| exists(false))?;
    judge(old.role)?;
    let Stored { zone, hours, closed, .. } = &old;
    if (zone, hours, closed) == (&definition.zone, &definition.hours, &definition.closed) {
        return Ok(());
    }
    if !replace {
        return Err(exists(true).into());
    }
    let users = Users::of(name);
    calendar::update(&definition, caller, now);
    users.follow(now);
    watch::follow_calendar(name, caller, now);
    Ok(())
}

fn check_quota(role: pg_sys::Oid) -> Result<()> {
    if calendar::count(role, MAX_CALENDARS + 1) <= MAX_CALENDARS {
        return Ok(());
    }
    Err(CalendarError::TooManyCalendars { role: catalog::role_label(role), max: MAX_CALENDARS }.into())
}

fn may_change(caller: pg_sys::Oid, owner: pg_sys::Oid) -> bool {
    catalog::can_become(caller, owner) || catalog::owns_database(caller)
}

fn definition(args: &Args) -> Result<Definition> {
    let name = args.name(0, "calendar", MAX_CALENDAR)?;
    let elements = elements(args, 1, "hours", TEXT, MAX_ELEMENTS)?;
    // SAFETY: each datum is an element of a text array.
    let text = |datum| unsafe { pgrx::FromDatum::from_datum(datum, false) }.map(|text: Text| text.to_string());
    let elements: Vec<String> = elements.into_iter().filter_map(text).collect();
    let hours = Hours::new(elements.iter().map(String::as_str)).map_err(CalendarError::Hours)?;
    let zone = args.text(2, "zone", MAX_ZONE)?.ok_or(Error::Null { argument: "zone" })?;
    let zone = zone_name::known(zone.to_string())?;
    let local = zone::find(&zone).ok_or_else(|| zone_name::unknown(&zone))?;
    let calendar = Calendar::new(hours, closed(args)?, local);
    if let Some(day) = calendar.day_out_of_reach() {
        return Err(CalendarError::DayOutOfReach { day }.into());
    }
    if calendar.next_opening(clock::now()).is_none() {
        return Err(CalendarError::NoOpenTime { calendar: name.to_string() }.into());
    }
    Ok(Definition { name, zone, hours: calendar.hours().elements(), closed: calendar.closed().to_vec() })
}

fn closed(args: &Args) -> Result<Vec<i64>> {
    let day = |date: pg_sys::Datum| match date.value() as i32 {
        i32::MIN | i32::MAX => Err(CalendarError::InfiniteDay.into()),
        date => Ok(i64::from(date) + POSTGRES_EPOCH),
    };
    elements(args, 3, "closed", DATE, MAX_CLOSED)?.into_iter().map(day).collect()
}

fn elements(
    args: &Args,
    index: usize,
    argument: &'static str,
    element: Element,
    max: usize,
) -> Result<Vec<pg_sys::Datum>> {
    let array = args.datum(index).ok_or(Error::Null { argument })?;
    // SAFETY: SQL declares the argument as an array of `element`.
    let elements = unsafe { array::elements(array, element) }.ok_or(CalendarError::Dimensions { argument })?;
    if elements.len() > max {
        return Err(CalendarError::TooMany { argument, max }.into());
    }
    elements.into_iter().map(|element| element.ok_or(CalendarError::NullElement { argument }.into())).collect()
}

fn drop(args: &Args) -> Result<()> {
    rights::gate("awty.drop_calendar()")?;
    let name = args.name(0, "calendar", MAX_CALENDAR)?;
    let caller = catalog::current_role();
    let judge = |owner| match owner {
        Some(owner) if may_change(caller, owner) => Ok(()),
        Some(owner) if may_use(caller, owner) => Err(CalendarError::NotOwner { calendar: name.to_string() }),
        _ => Err(unknown(&name)),
    };
    judge(calendar::find(&name).map(|calendar| calendar.role))?;
    judge(calendar::lock(&name).map(|calendar| calendar.role))?;
    refuse_if_used(&name)?;
    calendar::delete(&name);
    Ok(())
}

fn refuse_if_used(name: &Text) -> Result<()> {
    let ((mut users, mut others), (rules, of_others)) = (replaced::users(name), watch::users(name));
    users.extend(rules);
    others += of_others;
    match others {
        0 if users.is_empty() => Ok(()),
        others => Err(CalendarError::InUse { calendar: name.to_string(), users, others }.into()),
    }
}
