//! Validates the expressions of a rule. An expression may read only one row. Its value must not change unless the row
//! is written.

use crate::error::{Result, WatchError};
use crate::pg::catch::Raised;
use crate::pg::expression::{self, Expression, Unreadable};
use crate::pg::role::as_reader;
use crate::pg::sqlstate;
use crate::pg::table::Described;
use crate::pg::text::{Text, type_name};
use pgrx::pg_sys;

/// SQLSTATEs of errors about aggregates, window functions, system columns, parameters and subqueries.
const NOT_OVER_ONE_ROW: [&str; 5] = ["42803", "42P20", "42P10", "42P02", "0A000"];

const MAX_COLUMNS: usize = 100;

pub fn read(text: &Text, argument: &'static str, table: &Described) -> Result<Expression> {
    // The parser runs code of literals' types, for example the CHECK of a domain in an array.
    let read = as_reader(table.owner, || expression::read(text, table.oid)).map_err(|unreadable| match unreadable {
        Unreadable::NotOne => WatchError::NotAnExpression { argument, what: "it is none, or more than one".into() },
        Unreadable::SetReturning => WatchError::NotAnExpression { argument, what: "it gives a set of values".into() },
        Unreadable::WholeRow => WatchError::WholeRow { argument },
        Unreadable::SystemColumn => WatchError::NotAnExpression { argument, what: "it uses a system column".into() },
        Unreadable::Raised(raised) => refused(raised, argument, text),
    })?;
    let (wanted, name) = match argument {
        "since" | "due" => (pg_sys::TIMESTAMPTZOID, "timestamp with time zone"),
        _ => (pg_sys::BOOLOID, "boolean"),
    };
    if read.kind != wanted {
        return Err(WatchError::WrongType {
            argument,
            text: text.to_string(),
            wanted: name,
            found: type_name(read.kind),
        }
        .into());
    }
    if let Some(clock) = read.clock {
        return Err(WatchError::NotStable { argument, what: clock }.into());
    }
    // Of a rule's expressions, only `due` may read calendars, because only its value is computed again when a calendar
    // is replaced.
    if let Some(function) = read.calendar.clone().filter(|_| argument != "due") {
        return Err(WatchError::NotStable { argument, what: function }.into());
    }
    if read.is_volatile {
        return Err(WatchError::NotStable { argument, what: "volatile functions".into() }.into());
    }
    if read.columns.len() > MAX_COLUMNS {
        let what = format!("it uses more than {MAX_COLUMNS} columns");
        return Err(WatchError::NotAnExpression { argument, what }.into());
    }
    Ok(read)
}

fn refused(raised: Raised, argument: &'static str, text: &Text) -> WatchError {
    let Raised { failure, hint, position } = raised;
    if NOT_OVER_ONE_ROW.contains(&failure.sqlstate.as_str()) {
        let what = failure.message.replace(" in check constraints", "").replace(" in check constraint", "");
        return WatchError::NotAnExpression { argument, what };
    }
    let (sqlstate, message) = (sqlstate::code(&failure.sqlstate), failure.message);
    WatchError::Unreadable { argument, text: text.to_string(), sqlstate, message, hint, position }
}
