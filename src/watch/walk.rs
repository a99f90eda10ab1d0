//! Adds checks for rows that existed before their rule, batch by batch in key order. After a change of the rule or its
//! calendar, moves the rule's pending checks to new times.

use super::statements::alert;
use super::statements::rule_check::{self, Pending, ScheduledBy};
use super::stops::{Clocks, Seeing};
use super::{BACKFILL, SWEEP, pieces};
use crate::pg::primary_key;
use crate::pg::reraise::{Carried, caught};
use crate::pg::role::as_role;
use crate::pg::subtransaction::kept_if_ok;
use crate::pg::text::Text;
use crate::pg::{catalog, clock, table_lock};
use crate::rule::Watched;
use crate::rule::statements::rule::{self, Rule, Walk};
use crate::rule::statements::watched::WatchedRow;
use crate::shmem::wakeup;
use awty_core::watch::{self, Alert, RowState, Stops};
use awty_core::{Time, later};
use chrono::TimeDelta;
use std::collections::{HashMap, HashSet};

const POLL: TimeDelta = TimeDelta::seconds(5);

/// Schedules the rule's unfinished backfill again, because a role may have cancelled the backfill's check.
pub fn go_on(rule: &Rule, now: Time) {
    if rule.walk != Walk::Done {
        rule_check::waiting_for(&rule.name, || {
            rule_check::put_special(&rule.name, BACKFILL, now, rule.terms.role);
        });
        wakeup::at_commit(Some(rule.terms.role), clock::to_timestamp(now));
    }
}

/// Returns when to continue, or `None` if all rows were visited.
pub fn piece(watched: &Watched, now: Time) -> Option<Time> {
    let rule = &watched.rule;
    let adds_rows = rule.walk.adds_rows();
    // Locks the table before the rule and its checks, as clients do that change the table. The opposite order could
    // deadlock.
    table_lock::against_changes(watched.source.table.oid);
    match rule.walk {
        Walk::Done => return None,
        Walk::Again if !rule.walk_after.as_ref().is_none_or(rule::have_ended) => return Some(later(now, POLL)),
        Walk::Again => rule::forget_open(&rule.name),
        _ if rule.walk_after.as_ref().is_some_and(|after| after.as_bytes() == b"0") => rule::note_open(&rule.name),
        _ => {}
    }
    let locks = rule.walk != Walk::New || watched.source.stopped.is_some();
    let reached = pieces::piece(watched, locks, rule.walked_to.as_ref(), |after, limit| {
        if adds_rows {
            let rows = watched.source.after(after, limit);
            let keys: Vec<Text> = rows.iter().map(|row| row.key.clone()).collect();
            take(watched, &keys, rows, now);
            keys
        } else {
            let after = after.cloned().unwrap_or_else(|| Text::from(""));
            let keys = rule_check::keys_after(&rule.name, &rule.entity_name, &after, limit);
            move_readable(watched, &keys, now);
            keys
        }
    });
    if reached.is_none() {
        return end(watched, now);
    }
    rule::set_walked(&rule.name, rule.walk, reached.as_ref());
    Some(now)
}

/// Finishes a pass over all rows. Returns the time of the next call, or `None` if no second pass is needed.
///
/// If the calendar was replaced, also schedules a comparison of the open alerts with their rows, because open alerts
/// may depend on the calendar.
fn end(watched: &Watched, now: Time) -> Option<Time> {
    let rule = &watched.rule;
    let comes_again = rule.walk != Walk::Again && rule.walk_after.is_some();
    if comes_again || rule.walk == Walk::Again {
        // Restarts a running sweep, because it may have used the old calendar.
        if !rule_check::restart_special_if_free(&rule.name, SWEEP, now, watched.job.role) {
            return Some(later(now, POLL));
        }
        rule::sweep_anew(&rule.name);
        wakeup::at_commit(watched.job.runner(), clock::to_timestamp(now));
    }
    rule::set_walked(&rule.name, if comes_again { Walk::Again } else { Walk::Done }, None);
    comes_again.then_some(now)
}

/// Moves the checks of these keys. Leaves out a key that is no value of the table's key or whose row cannot be read,
/// because the check of such a key fails by itself, and the other checks must still move.
fn move_readable(watched: &Watched, keys: &[Text], now: Time) {
    if undone_if_err(|| take(watched, keys, Vec::new(), now)).is_err() {
        take(watched, &readable(watched, keys), Vec::new(), now);
    }
}

/// Locks and writes nothing, because a subtransaction that does so for each key makes a walk of many such keys slow.
fn readable(watched: &Watched, keys: &[Text]) -> Vec<Text> {
    match (undone_if_err(|| watched.source.by_keys(keys)), keys) {
        (Ok(_), _) => keys.to_vec(),
        (Err(error), [] | [_]) => {
            if may_be_of_table(&error.sqlstate()) && keys.iter().all(|key| is_of_types(watched, key)) {
                error.raise();
            }
            Vec::new()
        }
        (Err(_), _) => {
            let (first, second) = keys.split_at(keys.len() / 2);
            [readable(watched, first), readable(watched, second)].concat()
        }
    }
}

/// Returns whether the key can be cast to the types of the table's key.
fn is_of_types(watched: &Watched, key: &Text) -> bool {
    let source = &watched.source;
    undone_if_err(|| as_role(source.table.owner, || primary_key::cast_key(&source.key, key))).is_ok()
}

/// Undoes `body` and returns its error, such as an error of the CHECK of a domain. Raises an error that no key causes,
/// such as a cancel, a deadlock or a lack of memory.
fn undone_if_err<R>(body: impl FnOnce() -> R) -> Result<R, Carried> {
    kept_if_ok(|| caught(body)).map_err(|error| {
        if is_one_of(&error.sqlstate(), &["40", "53", "57", "58", "XX"]) {
            error.raise()
        }
        error
    })
}

/// Returns whether the error may concern all rows, such as a missing right. Such an error stops the walk, so that awty
/// tries the walk again.
fn may_be_of_table(sqlstate: &str) -> bool {
    is_one_of(sqlstate, &["08", "25", "42", "55", "HV"])
}

fn is_one_of(sqlstate: &str, classes: &[&str]) -> bool {
    classes.iter().any(|class| sqlstate.starts_with(class))
}

fn take(watched: &Watched, keys: &[Text], mut rows: Vec<WatchedRow>, now: Time) {
    let rule = &watched.rule;
    // Locks each check before reading its row, so that no client changes the check in between. Skips a check that a
    // client has locked, because the client computes the new time itself.
    let moves = rule.walk != Walk::New;
    let free: HashSet<Text> =
        if moves { rule_check::lock_free(rule, keys).into_iter().collect() } else { HashSet::new() };
    let pending: HashMap<Text, Pending> =
        rule_check::pending(rule, keys).into_iter().map(|check| (check.key.clone(), check)).collect();
    let mut clocks = Clocks::read(watched, keys);
    if moves || watched.source.stopped.is_some() {
        rows = watched.source.by_exact_keys(keys).into_iter().map(|(_, row)| row).collect();
    }
    let open: HashMap<Text, Alert> =
        alert::open(&rule.name, keys).into_iter().map(|open| (open.key, open.alert)).collect();
    let wants_late = rule.terms.existing.as_bytes() == b"all";
    let by = ScheduledBy { role: catalog::current_role(), at: now };
    let (mut new, mut moved) = ((Vec::new(), Vec::new()), (Vec::new(), Vec::new()));
    for row in rows {
        let check = pending.get(&row.key);
        if moves && check.is_some() && !free.contains(&row.key) {
            continue;
        }
        // Skips a row that already has an alert, because a trigger handled the row when a client wrote it after
        // `awty.watch()`.
        if rule.walk == Walk::New && open.contains_key(&row.key) {
            continue;
        }
        let appeared = check.map(|check| check.scheduled_at).or(clocks.start(&row.key)).unwrap_or(now);
        if !check.is_some_and(|check| check.is_held) {
            let is_known = check.is_some() || open.contains_key(&row.key) || clocks.has(&row.key);
            // If no trigger recorded when the row's deadline clock was stopped, assumes the time of `awty.watch()`, or
            // the current time if only the calendar was replaced.
            let seen_at = if rule.walk.adds_rows() { rule.watched_at } else { now };
            let seeing = if is_known { Seeing::Known(seen_at) } else { Seeing::Inserted };
            clocks.see(watched, &row.key, Some(&row), appeared, seeing);
        }
        let stops = clocks.stops(&row.key);
        let ended = stops.ended();
        let found = row.state.found(appeared, &ended);
        let alert = open.get(&row.key).copied().unwrap_or(Alert::NONE);
        let Some(slot) = watch::start(found, alert, &watched.levels, &watched.job.options.limits, now) else {
            continue;
        };
        let is_ahead = is_ahead(watched, found, stops, now);
        if check.is_some() {
            if moves {
                moved.0.push(row.key);
                moved.1.push(slot);
            }
        } else if rule.walk.adds_rows() && (wants_late || alert.level > 0 || is_ahead) {
            new.0.push(row.key);
            new.1.push(slot);
        }
    }
    if !new.0.is_empty() {
        rule_check::keep(rule, &new.0, &new.1, by);
    }
    if !moved.0.is_empty() {
        rule_check::move_to(rule, &moved.0, &moved.1, by);
    }
    clocks.store_of_walk(watched);
    if let Some(first) = new.1.iter().chain(&moved.1).min() {
        wakeup::count_written(new.1.len() as u64);
        wakeup::at_commit(watched.job.runner(), clock::to_timestamp(*first));
    }
}

fn is_ahead(watched: &Watched, found: RowState<'_>, stops: &Stops, now: Time) -> bool {
    let RowState::Waiting { start, .. } = found else { return false };
    let due_at = watched.due_at(start, stops);
    due_at > now || stops.since().is_some_and(|since| since < due_at)
}
