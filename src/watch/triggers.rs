use super::statements::alert;
use super::statements::rule_check::{self, RuleCheck};
use super::written::{self, Refusal};
use super::{BACKFILL, SWEEP, judge};
use crate::call::args::Args;
use crate::call::rights;
use crate::error::{Error, Result, WatchError};
use crate::pg::relations::{self, Purpose};
use crate::pg::reraise::raising;
use crate::pg::table;
use crate::pg::trigger::Firing;
use crate::rule::fault::stopped;
use crate::rule::{Missing, Watched};
use pgrx::datum::TimestampWithTimeZone;
use pgrx::{IntoDatum, pg_sys};
use std::cell::Cell;

// Does not use pgrx's macro for trigger functions, because the macro drops the SQLSTATE and the CONTEXT of errors in
// users' functions.
const PLAIN: pg_sys::Pg_finfo_record = pg_sys::Pg_finfo_record { api_version: 1 };

#[unsafe(no_mangle)]
pub extern "C" fn pg_finfo_row_changed_wrapper() -> &'static pg_sys::Pg_finfo_record {
    &PLAIN
}

#[unsafe(no_mangle)]
pub extern "C" fn pg_finfo_check_rows_wrapper() -> &'static pg_sys::Pg_finfo_record {
    &PLAIN
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn row_changed_wrapper(fcinfo: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    raising(|| {
        fired(fcinfo).unwrap_or_else(|error| error.raise());
        pg_sys::Datum::null()
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn check_rows_wrapper(fcinfo: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    raising(|| {
        let answers = check(&Args::new(fcinfo)).unwrap_or_else(|error| error.raise());
        answers.into_datum().unwrap_or(pg_sys::Datum::null())
    })
}

fn fired(fcinfo: pg_sys::FunctionCallInfo) -> Result<()> {
    let firing = Firing::of(fcinfo).ok_or(Error::NotTrigger { function: "awty_internal.row_changed()" })?;
    let Some(name) = firing.argument() else { return Ok(()) };
    let rule = || name.to_string();
    relations::lock(Purpose::Write);
    let watched = match Watched::find(&name) {
        Ok(watched) => watched,
        Err(missing) => return warn_of(missing, rule(), firing),
    };
    if !firing.is_on(watched.rule.relation) {
        let relation = table::describe(firing.table()).map(|table| table.qualified()).unwrap_or_default();
        return Err(WatchError::ForeignTrigger { rule: rule(), relation }.into());
    }
    let watched = watched.of_partition(firing.table());
    let written = match (firing.is_for_row(), firing.has_new_rows()) {
        (true, _) if firing.arguments() > 1 => written::stopped(&watched, firing),
        (true, _) => written::changed(&watched, firing),
        (false, true) => written::inserted(&watched, firing),
        (false, false) => written::emptied(&watched),
    };
    rights::warn_if_nothing_runs();
    written.map_err(|refused| match refused {
        Refusal::Changed => WatchError::Changed { rule: rule() }.into(),
        Refusal::KeyTooLong(max) => {
            let relation = watched.source.table.qualified();
            WatchError::KeyTooLong { rule: rule(), relation, max }.into()
        }
    })
}

/// Reports a stopped rule as a warning, once per session, because an error would make the client's write fail.
fn warn_of(missing: Missing, rule: String, firing: Firing) -> Result<()> {
    thread_local! {
        static WARNED: Cell<bool> = const { Cell::new(false) };
    }
    let error = match missing {
        Missing::Table => return Ok(()),
        Missing::Rule => {
            let relation = table::describe(firing.table()).map(|table| table.qualified()).unwrap_or_default();
            WatchError::NoRule { rule, relation }
        }
        Missing::Part(rule, table, fault) => stopped(&rule, &table, &fault),
    };
    if !WARNED.replace(true) {
        Error::from(error).warn();
    }
    Ok(())
}

fn check(args: &Args) -> Result<Vec<Option<TimestampWithTimeZone>>> {
    rights::gate_write("awty_internal.check_rows()")?;
    let given = args.datum(0).map(rule_check::given).unwrap_or_default();
    let Some(first) = given.first() else { return Ok(Vec::new()) };
    let job = rights::job(&first.job)?;
    if !rights::owns(&job) || given.iter().any(|check| check.job != first.job) {
        return Err(Error::NotOwner { job: job.name.to_string() });
    }
    let is_special =
        |check: &RuleCheck| [BACKFILL, SWEEP].iter().any(|name| check.entity_name.as_bytes() == name.as_bytes());
    let found = if given.iter().any(is_special) { Watched::find_again(&first.job) } else { Watched::find(&first.job) };
    let answers = match found {
        Ok(watched) => judge::answers(&watched, &given)?,
        Err(Missing::Part(rule, table, fault)) => return Err(stopped(&rule, &table, &fault).into()),
        Err(Missing::Rule) => return Err(WatchError::LostRule { rule: job.name.to_string() }.into()),
        Err(Missing::Table) => vec![None; given.len()],
    };
    Ok(answers.into_iter().map(|answer| answer.and_then(alert::moment)).collect())
}
