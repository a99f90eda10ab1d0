//! Says which part of a stopped rule is missing, and which command repairs the rule.

use super::statements::rule::Rule;
use crate::error::{WatchError, quote};
use crate::pg::catalog;
use crate::pg::table::{Described, quoted};
use awty_core::calendar::Length;
use pgrx::pg_sys;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    NoKey,
    /// The primary key has other columns than at `awty.watch()`, so the keys of checks and alerts may mean other rows.
    OtherKey,
    Column(String),
    Function(String),
    NotOwners {
        function: String,
        table_owner: pg_sys::Oid,
    },
    Partition {
        partition: String,
        table_owner: pg_sys::Oid,
    },
    Triggers,
    /// The table has become a partition since `awty.watch()`.
    Attached,
    Disabled(Vec<String>),
}

pub fn stopped(rule: &Rule, table: &Described, fault: &Fault) -> WatchError {
    let (why, fix) = words(rule, table, fault);
    let not_owners = matches!(fault, Fault::NotOwners { .. } | Fault::Partition { .. });
    WatchError::Stopped { rule: rule.name.to_string(), why, not_owners, fix }
}

pub fn words(rule: &Rule, table: &Described, fault: &Fault) -> (String, String) {
    let relation = table.qualified();
    let why = match fault {
        Fault::NoKey => format!("table {relation} has no primary key any more"),
        Fault::OtherKey => format!("the primary key of table {relation} has other columns than at awty.watch()"),
        Fault::Column(column) => format!("column \"{column}\" of table {relation} is gone"),
        Fault::Function(function) => format!("its function {function} is gone or changed"),
        Fault::NotOwners { function, .. } => format!("{function} does not belong to the owner of table {relation}"),
        Fault::Partition { partition, .. } => {
            format!("table {relation} is in a partition tree with {partition}, which has another owner")
        }
        Fault::Triggers => format!("its triggers on table {relation} are gone"),
        Fault::Attached => {
            format!(
                "table {relation} has become a partition, so an INSERT into its parent fires no trigger of the rule"
            )
        }
        Fault::Disabled(_) => format!("its triggers on table {relation} are disabled"),
    };
    let fix = match fault {
        Fault::NoKey => format!("ALTER TABLE {relation} ADD PRIMARY KEY (…);"),
        Fault::NotOwners { function, table_owner } => {
            // The text is not valid SQL on purpose, so that a user reads the text before giving the function the rights
            // of `owner`.
            let owner = quoted(&catalog::role_label(*table_owner));
            format!("If role {owner} may run {function}, execute: ALTER FUNCTION {function} OWNER TO {owner};")
        }
        // For the same reason no valid SQL.
        Fault::Partition { partition, table_owner } => {
            let owner = quoted(&catalog::role_label(*table_owner));
            format!(
                "If role {owner} may run the code of the indexes of {partition}, execute: ALTER TABLE {partition} OWNER TO {owner};"
            )
        }
        Fault::Disabled(triggers) => {
            let enable: Vec<String> = triggers.iter().map(|name| format!("ENABLE TRIGGER {}", quoted(name))).collect();
            format!("ALTER TABLE {relation} {};", enable.join(", "))
        }
        Fault::OtherKey | Fault::Column(_) | Fault::Function(_) | Fault::Triggers | Fault::Attached => {
            call(rule, table)
        }
    };
    (why, fix)
}

fn call(rule: &Rule, table: &Described) -> String {
    let terms = &rule.terms;
    let is_open_time = terms.calendar.is_some();
    let mut args = vec![quote(&table.qualified())];
    let mut named = |name: &str, value: String| args.push(format!("{name} => {value}"));
    if let Some(since) = &terms.since {
        named("since", quote(&since.utf8()));
    }
    if let Some(due) = &terms.due {
        named("due", quote(&due.utf8()));
    }
    named("until", quote(&terms.until.utf8()));
    if let Some(within) = terms.within {
        named("within", quote(&interval(within, is_open_time)));
    }
    if let Some(calendar) = &terms.calendar {
        named("calendar", quote(&calendar.utf8()));
    }
    if !terms.escalate.is_empty() {
        let levels: Vec<String> = terms.escalate.iter().map(|level| interval(*level, is_open_time)).collect();
        named("escalate", quote(&format!("{{{}}}", levels.join(", "))));
    }
    if let Some(stopped) = &terms.stopped {
        named("stopped", quote(&stopped.utf8()));
    }
    if !terms.remind.is_empty() {
        let lengths: Vec<String> = terms.remind.iter().map(|length| interval(*length, is_open_time)).collect();
        named("remind", quote(&format!("{{{}}}", lengths.join(", "))));
    }
    if let Some(every) = terms.every {
        named("every", quote(&interval(every, is_open_time)));
    }
    for (argument, function) in [("call", &terms.call), ("call_cleared", &terms.call_cleared)] {
        if let Some((schema, name)) = function {
            named(argument, quote(&format!("{}.{}", quoted(&schema.utf8()), quoted(&name.utf8()))));
        }
    }
    if let Some(channel) = &terms.notify {
        named("notify", quote(&channel.utf8()));
    }
    if terms.existing.as_bytes() != b"upcoming" {
        named("existing", quote(&terms.existing.to_string()));
    }
    let name = rule.name.utf8();
    if name != table.name {
        named("rule", quote(&name));
    }
    if terms.role != table.owner {
        named("run_as", quote(&catalog::role_label(terms.role)));
    }
    named("replace", "true".into());
    format!("SELECT awty.watch({});", args.join(", "))
}

/// In a calendar's open time, a day is not 24 hours, so hours are not converted to days.
fn interval(length: Length, is_open_time: bool) -> String {
    let micros = match length {
        Length::Days(days) => return format!("{days} days"),
        Length::Time(micros) => micros,
    };
    let units = [(86_400_000_000, "days"), (3_600_000_000, "hours"), (60_000_000, "minutes"), (1_000_000, "seconds")];
    let units = &units[usize::from(is_open_time)..];
    let (size, unit) = units.iter().find(|(size, _)| micros % size == 0).unwrap_or(&(1, "microseconds"));
    format!("{} {unit}", micros / size)
}
