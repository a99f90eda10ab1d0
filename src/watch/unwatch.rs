use super::end_rule;
use crate::call::args::Args;
use crate::call::argument_limits::MAX_JOB;
use crate::call::rights;
use crate::error::{Error, Result, WatchError};
use crate::pg::subtransaction::{kept_if_ok, undone_or_raised};
use crate::pg::text::Text;
use crate::pg::{catalog, table, table_lock};
use crate::rule::statements::rule::{self, Rule};
use crate::store::job;
use pgrx::pg_sys;

const TRIES: usize = 10;

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
    lock(&name, found.relation)?;
    // During the wait, the name may have become that of another role's rule, or the table may have got another owner.
    let rule = own_rule(&name)?;
    if rule.relation != found.relation {
        return Err(changed().into());
    }
    end_rule::rule(&rule).map_err(|_| changed().into())
}

/// Locks the table, and then the name as writers of the table do. Waits for the name only while the table is not locked,
/// because the writers would also wait.
fn lock(name: &Text, table: pg_sys::Oid) -> Result<()> {
    let try_both = || {
        undone_or_raised(|| job::take_name(name));
        kept_if_ok(|| {
            if table::describe(table).is_some() {
                table_lock::against_writes(table);
            }
            if job::try_take_name(name) { Ok(()) } else { Err(Error::JobBusy { job: name.to_string() }) }
        })
    };
    let mut locked = try_both();
    for _ in 1..TRIES {
        if locked.is_ok() {
            break;
        }
        locked = try_both(); // another transaction took the name in the moment between
    }
    locked
}
