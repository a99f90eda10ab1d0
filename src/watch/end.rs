//! Ends a rule.
//!
//! Invariant: nothing of the rule is left but its alerts, which are cleared, and its history.
//! Does not: check who may do so.

use crate::pg::text::Text;
use crate::pg::{clock, table};
use crate::shmem::wakeup;
use crate::store::rule::{self, Rule};
use crate::store::{alert, future_job, history, job, rule_objects};
use awty_core::Outcome;

/// Ends a rule; returns how many checks were pending.
pub fn rule(rule: &Rule) -> i64 {
    if let Some(table) = table::describe(rule.relation) {
        rule_objects::drop_all(&rule.name, &table);
    }
    let name: &Text = &rule.name;
    let now = clock::now();
    let ids = future_job::lock_job(name);
    wakeup::count_ended(ids.len() as u64);
    history::end(&ids, Outcome::Cancelled, now, None);
    alert::clear_all(name, now);
    job::delete(name);
    rule::remove(name);
    ids.len() as i64
}
