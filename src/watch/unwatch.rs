use super::end_rule;
use crate::call::args::Args;
use crate::call::argument_limits::MAX_JOB;
use crate::call::rights;
use crate::error::{Result, WatchError};
use crate::pg::subtransaction::undone_or_raised;
use crate::pg::text::Text;
use crate::pg::{catalog, table, table_lock};
use crate::rule::statements::rule::{self, Rule};
use crate::store::job;

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
    let changed = || WatchError::Changed { rule: name.to_string() };
    let found = own_rule(&name)?;
    // Waits before it locks the table, because writers of the table would also wait.
    undone_or_raised(|| job::take_name(&name));
    if table::describe(found.relation).is_some() {
        table_lock::against_writes(found.relation);
    }
    // During the wait, the name may have become that of another role's rule, or the table may have got another owner.
    let rule = own_rule(&name)?;
    if rule.relation != found.relation {
        return Err(changed().into());
    }
    end_rule::rule(&rule).map_err(|_| changed().into())
}
