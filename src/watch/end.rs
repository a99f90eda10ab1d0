//! Ends a rule, and all checks of a job.
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
    let count = checks(name);
    alert::clear_all(name, clock::now());
    job::delete(name);
    rule::remove(name);
    count
}

/// Ends all pending checks of a job as cancelled; returns how many.
pub fn checks(job: &Text) -> i64 {
    let ids = future_job::lock_job(job);
    wakeup::count_ended(ids.len() as u64);
    history::end(&ids, Outcome::Cancelled, clock::now(), None);
    ids.len() as i64
}
