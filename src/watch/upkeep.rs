//! What the maintainer does for rules: it ends those whose tables are gone, has open alerts compared with their rows once a day, and
//! deletes old alerts.
//!
//! Does not: read a watched table, which runs of the rule's job do.

use super::{SWEEP, end, functions};
use crate::pg::{clock, table};
use crate::settings;
use crate::shmem::wakeup;
use crate::store::{alert, job, rule, rule_check, rule_objects};
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
            Some(table) => {
                functions::refresh(&found, &table);
                if let Ok(functions) = functions::find(&found, &table) {
                    for function in std::iter::once(&functions.until).chain(&functions.since) {
                        rule_objects::go_with_table(function, &table);
                    }
                }
            }
        }
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
