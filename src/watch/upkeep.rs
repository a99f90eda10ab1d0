//! Ends rules without a table, deletes old alerts, and repairs the functions of rules. The maintainer calls this code.

use super::statements::rule::{self, Rule};
use super::statements::{alert, rule_function, rule_objects};
use super::{CLEARED, end_rule, functions};
use crate::pg::clock;
use crate::pg::table::{self, Described};
use crate::pg::text::Text;
use crate::settings;
use awty_core::Time;
use std::time::Duration;

const ALERTS: i64 = 10_000;
const MOST: Duration = Duration::from_secs(1);

/// Ends rules without a table. For other rules, stores the functions' current OIDs, and restores the dependency of the
/// functions on their table. A dump does not include this dependency.
pub fn repair(_now: Time) {
    for name in rule::names() {
        let Some(found) = rule::find(&name) else { continue };
        match table::describe(found.relation) {
            // `without_table` fails only under an older snapshot. An inspection always has a new snapshot, so the
            // result is ignored.
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
    let pending = Text::from(CLEARED);
    while alert::delete_cleared(then, ALERTS, &pending) > 0 && clock::mono().since(began) < MOST {}
}
