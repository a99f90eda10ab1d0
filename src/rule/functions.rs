//! Finds the functions of a rule by OID, or by name and signature if a restore has changed the OIDs.
//!
//! Invariant: a rule uses only functions of the table's owner. A function is never found through a trigger, because the
//! owner may have created the trigger.

use super::fault::Fault;
use super::statements::rule::{self, Rule};
use super::statements::rule_function::{self, StoredFunction};
use super::statements::rule_objects::{self, Trigger, function_name};
use super::statements::watched::{Functions, RowFunction};
use crate::error::{Error, WatchError};
use crate::pg::column::Column;
use crate::pg::procedure::{self, Procedure};
use crate::pg::table::Described;
use crate::pg::text::Text;
use crate::pg::{catalog, partition};

pub fn of_one_owner(table: Described) -> Result<Described, Error> {
    let Some(partition) = partition::of_another_role(&table, false) else { return Ok(table) };
    let owner = catalog::role_label(table.owner);
    Err(WatchError::OtherPartition { relation: table.qualified(), partition: partition.qualified(), owner }.into())
}

pub fn find(rule: &Rule, table: &Described) -> Result<Functions, Fault> {
    if let Some(partition) = partition::of_another_role(table, false) {
        return Err(Fault::Partition { partition: partition.qualified(), table_owner: table.owner });
    }
    let stored = rule_function::of(&rule.name);
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
    if !rule::has_primary_key(table.oid) {
        return Some(Fault::NoKey);
    }
    if let Err(fault) = find(rule, table) {
        return Some(fault);
    }
    let events = rule_objects::events(rule.terms.stopped.is_some());
    let triggers = rule_objects::triggers_of_events(&rule.name, table.oid, events);
    if triggers.len() < events.len() {
        return Some(Fault::Triggers);
    }
    let disabled: Vec<String> = triggers.into_iter().filter(Trigger::is_disabled).map(|trigger| trigger.name).collect();
    (!disabled.is_empty()).then_some(Fault::Disabled(disabled))
}

pub fn resolve(rule: &Text, stored: &StoredFunction, table: &Described) -> Result<RowFunction, Fault> {
    let argument = stored.argument.to_string();
    let name = function_name(rule, &argument);
    let by_oid = procedure::by_oid(stored.function).filter(|function| function.name == name);
    let columns: Vec<Column> = if by_oid.is_some() {
        std::iter::zip(&stored.numbers, &stored.columns)
            .map(|(number, name)| Column::by_number(table.oid, *number).ok_or_else(|| Fault::Column(name.to_string())))
            .collect::<Result<_, _>>()?
    } else {
        let by_name = |name| Column::by_name(table.oid, name).ok_or_else(|| Fault::Column(name.to_string()));
        stored.columns.iter().map(by_name).collect::<Result<_, _>>()?
    };
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
