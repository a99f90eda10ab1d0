//! Ends rules without a table, deletes old alerts, and repairs rules' functions.

use super::statements::{cleared_alert, stop};
use super::{CLEARED, end_rule};
use crate::pg::subtransaction::unless_locked;
use crate::pg::table::{self, Described};
use crate::pg::text::Text;
use crate::pg::{catalog, clock};
use crate::rule::functions;
use crate::rule::statements::{rule, rule_function, rule_objects};
use crate::{settings, shmem};
use awty_core::Time;
use pgrx::pg_sys;
use std::cell::Cell;
use std::collections::HashMap;
use std::time::Duration;

const ALERTS: i64 = 10_000;
const MOST: Duration = Duration::from_secs(1);
const PIECE: usize = 1000;
const LONGEST: Duration = Duration::from_millis(100);
const OF_ROLE: Duration = Duration::from_millis(200);

/// Repairs rules after a restore, because a dump lacks the OIDs of a rule's functions and the functions' dependency on
/// the table. Looks at some of the rules only, because a role may have thousands. The next call goes on after them.
pub fn repair(_now: Time) {
    // The result is never `Unseen`, because only an old snapshot can hide an open alert, and an inspection takes a new
    // snapshot.
    let until = Some(clock::mono().plus(LONGEST));
    let ended = rule::without_table(PIECE).into_iter().take_while(|_| !clock::is_past(until));
    for_each(ended, |name: &Text| unless_locked(|| drop(end_rule::without_table(name))));
    let here = catalog::database();
    let after = shmem::read(|shared| shared.database(here).map_or(i64::MIN, |line| line.rules_repaired));
    let (piece, until) = (rule::piece(after, PIECE), Some(clock::mono().plus(LONGEST)));
    let (is_end, last) = (piece.len() < PIECE, Cell::new(i64::MIN));
    let piece = piece.into_iter().take_while(|_| !clock::is_past(until));
    for_each(piece.map(|rule| (rule.role, rule)), |rule| {
        last.set(rule.number);
        table::describe(rule.relation).map_or(Some(()), |table| mend_functions(&rule.name, &table))
    });
    shmem::write(|shared| {
        if let Some(line) = shared.database_mut(here) {
            line.rules_repaired = if is_end && !clock::is_past(until) { i64::MIN } else { last.get() };
        }
    });
}

/// Calls `act` for each rule. Skips the remaining rules of a role if `act` returns `None`, because rows of the rule are
/// locked, or after `OF_ROLE`, because another session may give back one lock after the other.
pub fn for_each<R>(rules: impl Iterator<Item = (pg_sys::Oid, R)>, act: impl Fn(&R) -> Option<()>) {
    let mut left: HashMap<pg_sys::Oid, Duration> = HashMap::new();
    for (role, rule) in rules {
        let (began, left) = (clock::mono(), left.entry(role).or_insert(OF_ROLE));
        if !left.is_zero() {
            let is_done = act(&rule).is_some();
            *left = if is_done { left.saturating_sub(clock::mono().since(began)) } else { Duration::ZERO };
        }
    }
}

fn mend_functions(rule: &Text, table: &Described) -> Option<()> {
    let all = rule_function::of(rule);
    // Stores the key first, because `primary_key` trusts the stored numbers once the functions have their new OIDs.
    if let Some(now) =
        functions::primary_key(rule, &all, table).filter(|now| rule_function::key_of(rule).as_ref() != Some(now))
    {
        unless_locked(|| rule_function::put(rule, &now))?;
    }
    for stored in all {
        let Ok(function) = functions::resolve(rule, &stored, table) else { continue };
        let now = function.stored();
        if stored != now {
            unless_locked(|| rule_function::put(rule, &now))?;
        }
        rule_objects::go_with_table(&function, table);
    }
    Some(())
}

pub fn delete_alerts(now: Time) {
    let Some(then) = settings::history_retention().and_then(|retention| now.checked_sub_signed(retention)) else {
        return;
    };
    let began = clock::mono();
    let pending = Text::from(CLEARED);
    while cleared_alert::delete_cleared(then, ALERTS, &pending) > 0 && clock::mono().since(began) < MOST {}
    while stop::remove_there(then, ALERTS) > 0 && clock::mono().since(began) < MOST {}
}
