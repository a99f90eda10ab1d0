//! Finds the functions of a rule by OID, or by name and signature if a restore has changed the OIDs.
//!
//! Invariant: a rule uses only functions of the table's owner. A function is never found through a trigger, because the
//! owner may have created the trigger.

use super::fault::Fault;
use super::statements::rule::{self, Rule};
use super::statements::rule_function::{self, StoredFunction};
use super::statements::rule_objects::{self, function_name};
use super::statements::rule_trigger::{self, Trigger};
use super::statements::watched::{Functions, RowFunction};
use crate::error::{Error, WatchError};
use crate::pg::column::Column;
use crate::pg::procedure::{self, Procedure};
use crate::pg::table::{Described, Kind};
use crate::pg::text::Text;
use crate::pg::{catalog, partition};

pub fn of_one_owner(table: Described) -> Result<Described, Error> {
    let Some(partition) = partition::of_another_role(&table, false) else { return Ok(table) };
    let owner = catalog::role_label(table.owner);
    Err(WatchError::OtherPartition { relation: table.qualified(), partition: partition.qualified(), owner }.into())
}

/// `key` has the numbers of the columns of the table's primary key.
pub fn find(rule: &Rule, table: &Described, key: &[i16]) -> Result<Functions, Fault> {
    let stored = rule_function::of(&rule.name);
    if primary_key(&rule.name, &stored, table).is_none_or(|known| known.numbers != key) {
        return Err(Fault::OtherKey);
    }
    if let Some(partition) = partition::of_another_role(table, false) {
        return Err(Fault::Partition { partition: partition.qualified(), table_owner: table.owner });
    }
    let one = |argument: &str| {
        let stored = stored.iter().find(|stored| stored.argument.as_bytes() == argument.as_bytes());
        let missing = || Fault::Function(function_name(&rule.name, argument));
        resolve(&rule.name, stored.ok_or_else(missing)?, table)
    };
    let until = one("until")?;
    let start = rule.terms.start().map(|(argument, _)| one(argument)).transpose()?;
    let stopped = rule.terms.stopped.as_ref().map(|_| one("stopped")).transpose()?;
    Ok(Functions { until, start, stopped })
}

pub fn fault(rule: &Rule, table: &Described) -> Option<Fault> {
    let Some(key) = rule::primary_key(table.oid) else { return Some(Fault::NoKey) };
    if let Err(fault) = find(rule, table, &key) {
        return Some(fault);
    }
    let events = rule_trigger::events(rule.terms.stopped.is_some());
    let triggers = rule_trigger::triggers_of_events(&rule.name, table.oid, events);
    if triggers.len() < events.len() {
        return Some(Fault::Triggers);
    }
    // PostgreSQL fires the statement triggers of a partition only for an INSERT that names the partition.
    if table.kind != Kind::Plain && triggers.iter().any(Trigger::is_insert_statement) {
        return Some(Fault::Attached);
    }
    let disabled = rule_trigger::disabled(&triggers, partition::all(table));
    (!disabled.is_empty()).then_some(Fault::Disabled(disabled))
}

/// Returns the columns that the primary key had at `awty.watch()`, with their present names and numbers.
pub fn primary_key(rule: &Text, stored: &[StoredFunction], table: &Described) -> Option<StoredFunction> {
    let key = rule_function::key_of(rule)?;
    // After a restore, the OIDs of the functions and the numbers of columns are those of another database.
    let is_restored = stored.iter().any(|stored| by_oid(rule, stored).is_none());
    let columns = columns(&key, table, !is_restored).ok()?;
    Some(StoredFunction::new(key.argument, key.function, &columns))
}

fn columns(stored: &StoredFunction, table: &Described, by_number: bool) -> Result<Vec<Column>, Fault> {
    let column = |(number, name): (&i16, &Text)| {
        let found = if by_number { Column::by_number(table.oid, *number) } else { Column::by_name(table.oid, name) };
        found.ok_or_else(|| Fault::Column(name.to_string()))
    };
    std::iter::zip(&stored.numbers, &stored.columns).map(column).collect()
}

/// Returns the function with the stored OID, which may be that of another function after a restore.
fn by_oid(rule: &Text, stored: &StoredFunction) -> Option<Procedure> {
    let name = function_name(rule, &stored.argument.to_string());
    procedure::by_oid(stored.function).filter(|function| function.name == name)
}

pub fn resolve(rule: &Text, stored: &StoredFunction, table: &Described) -> Result<RowFunction, Fault> {
    let argument = stored.argument.to_string();
    let name = function_name(rule, &argument);
    let by_oid = by_oid(rule, stored);
    let columns = columns(stored, table, by_oid.is_some())?;
    let fits = |function: &Procedure| {
        function.result == rule_objects::result_type(&argument)
            && function.args.iter().eq(columns.iter().map(|column| &column.kind))
    };
    let found = match by_oid {
        Some(function) => Some(function).filter(fits),
        None => by_signature(&name, table, fits),
    };
    let function = found.ok_or(Fault::Function(name))?;
    if function.owner != table.owner {
        return Err(Fault::NotOwners { function: function.label(), table_owner: table.owner });
    }
    Ok(RowFunction { argument: stored.argument.clone(), oid: function.oid, name: function.qualified(), columns })
}

fn by_signature(name: &str, table: &Described, fits: impl Fn(&Procedure) -> bool) -> Option<Procedure> {
    let mut found: Vec<Procedure> = procedure::by_name(name).into_iter().filter(fits).collect();
    found.sort_by_key(|function| (function.owner != table.owner, function.schema != table.schema));
    found.into_iter().next()
}
