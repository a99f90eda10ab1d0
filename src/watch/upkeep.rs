//! What the maintainer does for rules: it ends those whose tables are gone, has open alerts compared with their rows once a day, and
//! deletes old alerts.
//!
//! Does not: read a watched table, which runs of the rule's job do.

use super::{SWEEP, end, functions};
use crate::pg::clock;
use crate::pg::table::{self, Described};
use crate::settings;
use crate::shmem::wakeup;
use crate::store::rule::{self, Rule};
use crate::store::{alert, job, rule_check, rule_function, rule_objects};
use awty_core::Time;
use chrono::TimeDelta;
use std::time::Duration;

/// Alerts are deleted so many at a time.
const ALERTS: i64 = 10_000;
/// For so long in one inspection.
const MOST: Duration = Duration::from_secs(1);

/// Ends rules without a table. For the others, writes down where their functions are now and ties the functions to their tables,
/// which a restore has forgotten.
pub fn mend(_now: Time) {
    for name in rule::names() {
        let Some(found) = rule::find(&name) else { continue };
        match table::describe(found.relation) {
            // An inspection sees all that is committed, so nothing is refused.
            None => drop(end::rule(&found)),
            Some(table) => mend_functions(&found, &table),
        }
    }
}

/// Writes down where the functions of a rule are now, and ties each to the table.
fn mend_functions(rule: &Rule, table: &Described) {
    let Ok(found) = functions::find(rule, table) else { return };
    let stored = rule_function::of(&rule.name);
    for function in found.all() {
        let now = function.stored();
        if !stored.contains(&now) {
            rule_function::put(&rule.name, &now);
        }
        rule_objects::go_with_table(function, table);
    }
}

/// Schedules the sweeps that are due.
pub fn schedule_sweeps(now: Time) {
    let Some(then) = now.checked_sub_signed(TimeDelta::days(1)) else { return };
    for name in rule::to_sweep(then) {
        let Some(Ok(job)) = job::find(&name) else { continue };
        rule_check::put_special(&name, SWEEP, now, job.role);
        wakeup::at_commit(job.runner(), clock::to_timestamp(now));
    }
}

/// Deletes alerts that were cleared long ago.
pub fn delete_alerts(now: Time) {
    let Some(then) = settings::history_retention().and_then(|retention| now.checked_sub_signed(retention)) else {
        return;
    };
    let began = clock::mono();
    while alert::delete_cleared(then, ALERTS) > 0 && clock::mono().since(began) < MOST {}
}
