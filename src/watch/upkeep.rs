//! The maintainer's work for rules: ends rules without a table, and deletes old alerts.

use super::statements::rule::{self, Rule};
use super::statements::{alert, rule_function, rule_objects};
use super::{end_rule, functions};
use crate::pg::clock;
use crate::pg::table::{self, Described};
use crate::settings;
use awty_core::Time;
use std::time::Duration;

/// Number of alerts that one statement deletes.
const ALERTS: i64 = 10_000;
/// Time limit for deleting in one inspection.
const MOST: Duration = Duration::from_secs(1);

/// Ends rules without a table. For the others, records where their functions are now, and restores the functions'
/// dependency on their tables, which a restore from a dump loses.
pub fn repair(_now: Time) {
    for name in rule::names() {
        let Some(found) = rule::find(&name) else { continue };
        match table::describe(found.relation) {
            // An inspection sees all commits, so this cannot fail.
            None => drop(end_rule::without_table(&name)),
            Some(table) => mend_functions(&found, &table),
        }
    }
}

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

pub fn delete_alerts(now: Time) {
    let Some(then) = settings::history_retention().and_then(|retention| now.checked_sub_signed(retention)) else {
        return;
    };
    let began = clock::mono();
    while alert::delete_cleared(then, ALERTS) > 0 && clock::mono().since(began) < MOST {}
}
