use super::{attempts, end_rule};
use crate::call::args::Args;
use crate::call::argument_limits::MAX_JOB;
use crate::call::rights;
use crate::error::{Error, Result, WatchError};
use crate::pg::subtransaction::undone_or_raised;
use crate::pg::text::Text;
use crate::pg::{catalog, table, table_lock};
use crate::rule::statements::rule::{self, Rule};
use crate::rule::statements::rule_objects;
use crate::store::job;
use crate::store::patience::for_a_moment;
use pgrx::pg_sys;

pub fn may_change(rule: &Rule) -> bool {
    let caller = catalog::current_role();
    match table::describe(rule.relation) {
        Some(table) => catalog::can_become(caller, table.owner),
        None => catalog::can_become(caller, rule.terms.role),
    }
}

fn own_rule(name: &Text) -> Result<Rule> {
    let unknown = || WatchError::UnknownRule { rule: name.to_string() };
    let rule = rule::find(name).ok_or_else(unknown)?;
    if may_change(&rule) {
        return Ok(rule);
    }
    if !rights::job(name).is_ok_and(|job| rights::may_read(&job)) {
        return Err(unknown().into());
    }
    let table = table::describe(rule.relation);
    let (relation, owner) =
        table.map_or_else(Default::default, |table| (table.qualified(), catalog::role_label(table.owner)));
    let caller = catalog::role_label(catalog::current_role());
    Err(WatchError::NotTableOwner { relation, owner, caller }.into())
}

pub fn unwatch_rule(args: &Args) -> Result<i64> {
    rights::gate_write("awty.unwatch()")?;
    let name = args.name(0, "rule", MAX_JOB)?;
    let found = own_rule(&name)?;
    attempts::attempt(|| wait(&name), || end(&name, found.relation))
}

/// Waits for each lock that [`end`] needs, except for those of checks and alerts, of which there may be millions.
pub fn wait(name: &Text) -> Result<()> {
    let rule = own_rule(name)?;
    undone_or_raised(|| job::take_name(name));
    undone_or_raised(|| drop(job::lock(name)));
    if let Some(table) = table::describe(rule.relation) {
        rule_objects::wait(name, &table, &[]);
    }
    Ok(())
}

/// Locks the table, and then the name as writers of the table do.
pub fn end(name: &Text, relation: pg_sys::Oid) -> Result<i64> {
    let changed = || -> Error { WatchError::Changed { rule: name.to_string() }.into() };
    let busy = || WatchError::Busy { rule: name.to_string() }.into();
    if own_rule(name)?.relation != relation {
        return Err(changed());
    }
    if table::describe(relation).is_some() {
        table_lock::against_writes(relation);
    }
    let repeats = for_a_moment(busy, || {
        // During the wait, the name may have become that of another role's rule, or the table may have got another
        // owner.
        let rule = own_rule(name)?;
        if rule.relation != relation {
            return Err(changed());
        }
        end_rule::lock(&rule).map_err(|_| changed())
    })?;
    let table = table::describe(relation);
    let functions = table.as_ref().map(|table| rule_objects::lock(name, table)).transpose()?;
    for_a_moment(busy, || {
        if let Some((table, functions)) = table.as_ref().zip(functions) {
            rule_objects::drop_all(name, table, functions);
        }
        end_rule::locked(name, repeats).map_err(|_| changed())
    })
}
