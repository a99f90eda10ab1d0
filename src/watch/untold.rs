//! Raises an alert's level even if the run that reports the alert fails.
//!
//! A copy of the alert is in shared memory, because awty terminates the process of a run that ignores its timeout.
//!
//! Invariant: the level is raised only if the check is unchanged since the run, because every change of the row also
//! changes the check.

use super::statements::raised::{self, Raised};
use super::statements::rule_check::RuleCheck;
use super::statements::{alert, stop};
use crate::pg::subtransaction::kept_whole;
use crate::pg::text::Text;
use crate::rule::statements::rule;
use crate::shmem::{self, wakeup};
use crate::store::check_row::Row;
use awty_core::watch::Untold;
use awty_core::{After, Time};
use std::cell::Cell;

thread_local! {
    static UNTOLD: Cell<Option<Untold>> = const { Cell::new(None) };
    static ENTRY: Cell<Option<usize>> = const { Cell::new(None) };
}

pub fn keep_in(entry: usize) {
    ENTRY.set(Some(entry));
}

pub fn forget() {
    UNTOLD.set(None);
}

pub fn remember(check: &RuleCheck, raised: &Raised, next: Option<Time>) {
    let Raised { id: alert, from, level, since, due_at, .. } = *raised;
    let check = (check.id, check.slot, check.attempt, check.scheduled_at);
    let untold = Untold { check, alert, from, level, since, due_at, next };
    UNTOLD.set(Some(untold));
    if let Some(entry) = ENTRY.get() {
        shmem::write(|shared| shared.workers[entry].untold = Some(untold));
    }
}

pub fn resume(untold: Option<Untold>) {
    UNTOLD.set(untold);
}

/// The caller must have locked the check's row.
pub fn of(row: &Row) -> Option<Untold> {
    UNTOLD.take().filter(|untold| untold.check == (row.id, row.slot, row.attempt, row.scheduled_at()))
}

pub fn raise(untold: &Untold, rule: &Text, key: &Text, now: Time) -> bool {
    let Untold { alert, from, level, since, due_at, .. } = *untold;
    let store = || {
        // Searches for an alert again if the run found none, because a client may have put the row on hold during the
        // run, which adds an alert.
        let held = || alert::open(rule, std::slice::from_ref(key)).pop().map(|open| open.id);
        let raised = Raised { id: alert.or_else(held), key, from, level, since, due_at };
        rule::find(rule).is_some_and(|rule| !is_stopped(&rule, key) && raised::raise_untold(&rule, &raised, now))
    };
    let is_raised = level > from && kept_whole(store).unwrap_or(false);
    wakeup::count_rows(rule.as_bytes(), 0, u64::from(is_raised && from == 0));
    is_raised
}

/// Returns whether a client has stopped the row's clock since the run read the row. Stopping the clock does not change
/// the row's check, so the function reads the stored stops.
fn is_stopped(rule: &rule::Rule, key: &Text) -> bool {
    let read = || stop::read(&rule.name, std::slice::from_ref(key));
    let is_stopped = |known: &stop::Known| known.clock.as_ref().is_some_and(|clock| clock.stops.since().is_some());
    rule.terms.stopped.is_some() && read().iter().any(is_stopped)
}

/// A retry never delays the next level. After the last retry, the check continues with the next level.
pub fn fate(untold: &Untold, fate: After) -> After {
    match (fate, untold.next) {
        (After::Again(retry), Some(next)) => After::Again(retry.min(next)),
        (After::End(_), Some(next)) => After::Again(next),
        (fate, None) => fate,
    }
}
