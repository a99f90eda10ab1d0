//! Updates the checks and alerts of rows that were just written.
//!
//! Invariant: for an inserted row, awty uses the inserted values. It reads any other row again by its key, so that the
//! order of triggers does not matter.

use super::statements::alert;
use super::statements::rule_check::{self, ScheduledBy};
use super::stops::{self, Clocks, Seeing};
use super::{cleared, end_rule};
use crate::call::argument_limits::MAX_ENTITY_KEY;
use crate::pg::primary_key::key_text;
use crate::pg::subtransaction::{has_one_snapshot, kept_if_ok, unless_duplicate};
use crate::pg::text::Text;
use crate::pg::trigger::{Firing, Version};
use crate::pg::{catalog, clock};
use crate::rule::Watched;
use crate::rule::statements::rule::Rule;
use crate::rule::statements::watched::WatchedRow;
use crate::shmem::wakeup;
use crate::store::{history, hold};
use awty_core::watch::{self, Alert, RowState, Stops, Verdict};
use awty_core::{Outcome, Time};
use std::collections::{HashMap, HashSet};

const PIECE: i64 = 10_000;

pub enum Refusal {
    KeyTooLong(usize),
    /// Another transaction has changed the check or alert, but this transaction's snapshot cannot see the change.
    Changed,
}

pub fn inserted(watched: &Watched, firing: Firing) -> Result<(), Refusal> {
    let by = ScheduledBy { role: catalog::current_role(), at: clock::now() };
    let mut refused = Ok(());
    watched.source.inserted(firing, PIECE, |rows| {
        if refused.is_ok() {
            refused = begin(watched, rows, by);
        }
    });
    refused
}

fn begin(watched: &Watched, rows: Vec<WatchedRow>, by: ScheduledBy) -> Result<(), Refusal> {
    let (mut keys, mut slots) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
    let stopped: Vec<WatchedRow> = rows.iter().filter(|row| row.is_stopped).cloned().collect();
    for row in rows {
        let found = row.state.found(by.at, Stops::never());
        if let Some(slot) = watch::start(found, Alert::NONE, &watched.levels, &watched.job.options.limits, by.at) {
            if row.key.len() > MAX_ENTITY_KEY {
                return Err(Refusal::KeyTooLong(MAX_ENTITY_KEY));
            }
            keys.push(row.key);
            slots.push(slot);
        }
    }
    if keys.is_empty() {
        return Ok(());
    }
    let is_new = match (keys.as_slice(), slots.as_slice()) {
        ([key], [slot]) => rule_check::add_one(&watched.rule, key, *slot, by),
        _ => unless_duplicate(|| rule_check::add(&watched.rule, &keys, &slots, by)).is_some(),
    };
    let known: HashSet<Text> = if is_new || stopped.is_empty() {
        HashSet::new()
    } else {
        rule_check::pending(&watched.rule, &keys).into_iter().map(|check| check.key).collect()
    };
    if !is_new {
        hold::unsilence(&rule_check::lock(&watched.rule, &keys));
        rule_check::put(&watched.rule, &keys, &slots, by);
    }
    stop(watched, &stopped, &known, by);
    note(watched, &slots);
    Ok(())
}

fn stop(watched: &Watched, rows: &[WatchedRow], known: &HashSet<Text>, by: ScheduledBy) {
    let keys: Vec<Text> = rows.iter().map(|row| row.key.clone()).collect();
    let mut clocks = Clocks::read(watched, &keys);
    for row in rows {
        let is_known = known.contains(&row.key) || clocks.has(&row.key);
        let seeing = if is_known { Seeing::Known(stops::transaction_start()) } else { Seeing::Inserted };
        clocks.see(watched, &row.key, Some(row), by.at, seeing);
    }
    clocks.store(watched);
}

/// Handles an UPDATE that changes only whether the row is stopped.
pub fn stopped(watched: &Watched, firing: Firing) -> Result<(), Refusal> {
    let rule = &watched.rule;
    let by = ScheduledBy { role: catalog::current_role(), at: clock::now() };
    let keys: Vec<Text> = written_keys(watched, firing).1.into_iter().collect();
    let [key] = keys.as_slice() else { return Ok(()) };
    let check = rule_check::lock_row(rule, key);
    if check.as_ref().is_some_and(|check| hold::is_silenced(check.id)) {
        return Ok(());
    }
    let row = watched.source.by_exact_keys(&keys).pop().map(|(_, row)| row);
    let open = match &row {
        Some(row) if !row.is_stopped => alert::lock_open(&rule.name, &keys).pop().map(|(open, _)| open.alert),
        _ => None,
    };
    let mut clocks = Clocks::read(watched, &keys);
    let scheduled_at = check.as_ref().map(|check| check.scheduled_at);
    let appeared = clocks.start(key).or(scheduled_at).unwrap_or(by.at);
    let is_known = check.is_some() || open.is_some() || clocks.has(key) || !rule.walk.adds_rows();
    let seeing = if is_known { Seeing::Known } else { Seeing::Unvisited };
    clocks.see(watched, key, row.as_ref(), appeared, seeing(stops::transaction_start()));
    clocks.store(watched);
    let stops = clocks.stops(key);
    let Some(row) = row.filter(|_| stops.since().is_none()) else { return Ok(()) };
    let found = match watched.rule.terms.start() {
        Some(_) => row.state.found(scheduled_at.unwrap_or(by.at), stops),
        None => row.state.found(appeared, stops),
    };
    let alert = open.unwrap_or(Alert::NONE);
    if alert.level > 0
        && matches!(watch::judge(found, alert, &watched.levels, &watched.job.options.limits, by.at), Verdict::Ahead(_))
    {
        // The calendar was replaced while the row was stopped. With the new calendar, the row is not late.
        return follow(watched, &keys, Seeing::Known(stops::transaction_start()));
    }
    if let (RowState::Waiting { start, .. }, Some(_)) = (found, open) {
        alert::set_since(&rule.name, key, watched.since(start), watched.due_at(start, stops));
    }
    let slot = watch::start(found, alert, &watched.levels, &watched.job.options.limits, by.at);
    if let (Some(check), Some(slot)) = (check, slot) {
        rule_check::move_one(check.id, slot);
        note(watched, &[slot]);
    }
    Ok(())
}

pub fn changed(watched: &Watched, firing: Firing) -> Result<(), Refusal> {
    let (old, new) = written_keys(watched, firing);
    let seeing = match (&old, &new) {
        _ if firing.is_insert() => Seeing::Inserted,
        (Some(old), Some(new)) if old != new => Seeing::Renamed,
        _ => Seeing::Known(stops::transaction_start()),
    };
    let mut keys: Vec<Text> = [old, new].into_iter().flatten().collect();
    keys.dedup();
    follow(watched, &keys, seeing)
}

fn written_keys(watched: &Watched, firing: Firing) -> (Option<Text>, Option<Text>) {
    let key = &watched.source.key;
    let numbers: Vec<i16> = key.iter().map(|part| part.column.number).collect();
    let text = |version| firing.values(version, &numbers).map(|values| key_text(key, &values));
    (text(Version::Old), text(Version::New))
}

pub fn emptied(watched: &Watched) -> Result<(), Refusal> {
    let by = ScheduledBy { role: catalog::current_role(), at: clock::now() };
    end_rule::checks_of(&watched.rule.name, Some(&watched.rule.entity_name));
    cleared::clear_all(watched, by);
    if watched.source.stopped.is_some() {
        stops::forget_all(watched);
    }
    end_rule::seen_all(&watched.rule.name).map_err(|_| Refusal::Changed)
}

/// Locks the checks, so that a concurrent run that has read them is rolled back, and then the open alerts of rows without
/// a check.
///
/// `awty.hold()` inserts a check for such an alert. If it has done so while this transaction waited for the alert, the
/// alert is unlocked again, because other sessions that lock first the check and then the alert would deadlock.
fn lock_in_order(rule: &Rule, keys: &[Text]) -> Vec<i64> {
    loop {
        let checks = rule_check::lock(rule, keys);
        if checks.len() == keys.len() || alert::open(&rule.name, keys).is_empty() {
            return checks;
        }
        let locked = kept_if_ok(|| {
            alert::lock(&rule.name, keys);
            if rule_check::pending(rule, keys).len() == checks.len() { Ok(()) } else { Err(()) }
        });
        if locked.is_ok() {
            return checks;
        }
    }
}

fn follow(watched: &Watched, keys: &[Text], seeing: Seeing) -> Result<(), Refusal> {
    let rule = &watched.rule;
    let by = ScheduledBy { role: catalog::current_role(), at: clock::now() };
    let checks = lock_in_order(rule, keys);
    hold::unsilence(&checks);
    let seen = watched.source.by_keys(keys);
    let rows = current(watched, keys, seen);
    let open: HashMap<Text, Alert> =
        alert::lock_open(&rule.name, keys).into_iter().map(|(open, _)| (open.key, open.alert)).collect();
    let mut clocks = Clocks::read(watched, keys);
    let (mut met, mut over, mut clear) = (Vec::new(), Vec::new(), Vec::new());
    let (mut waiting, mut slots) = (Vec::new(), Vec::new());
    for key in keys {
        let (row, alert) = (rows.get(key), open.get(key).copied().unwrap_or(Alert::NONE));
        let is_known = !checks.is_empty() || open.contains_key(key) || clocks.has(key);
        let seeing = match seeing {
            Seeing::Inserted if is_known => Seeing::Known(stops::transaction_start()),
            seeing => seeing,
        };
        clocks.see(watched, key, row, by.at, seeing);
        // Ignores a stop that still lasts, because only ended stops determine the time of the row's check.
        let stops = clocks.stops(key).ended();
        let found = row.map_or(RowState::Gone, |row| row.state.found(by.at, &stops));
        let limits = &watched.job.options.limits;
        let is_cleared = match watch::judge(found, alert, &watched.levels, limits, by.at) {
            Verdict::Settled => true,
            // The row is not late. An alert of level 0 stays open, because it is a reminder or a client's hold.
            Verdict::Ahead(_) | Verdict::Remind(_) => !open.contains_key(key) || alert.level > 0,
            Verdict::Stay(_) | Verdict::Tell(_) | Verdict::Raise(..) => false,
        };
        if is_cleared {
            clear.push(key.clone());
        } else if let RowState::Waiting { start, .. } = found {
            alert::set_since(&rule.name, key, watched.since(start), watched.due_at(start, &stops));
        }
        match watch::start(found, alert, &watched.levels, limits, by.at) {
            Some(_) if key.len() > MAX_ENTITY_KEY => return Err(Refusal::KeyTooLong(MAX_ENTITY_KEY)),
            Some(slot) => {
                waiting.push(key.clone());
                slots.push(slot);
            }
            None if found == RowState::Met && alert.level == 0 => met.push(key.clone()),
            None => over.push(key.clone()),
        }
    }
    clocks.store(watched);
    if !waiting.is_empty() {
        rule_check::put(rule, &waiting, &slots, by);
        note(watched, &slots);
    }
    for (keys, outcome) in [(&met, Outcome::Met), (&over, Outcome::Cancelled)] {
        let ended = rule_check::lock(rule, keys);
        let count = ended.len() as u64;
        wakeup::count_ended(count);
        wakeup::count_rows(rule.name.as_bytes(), if outcome == Outcome::Met { count } else { 0 }, 0);
        history::end(&ended, outcome, by.at, None);
    }
    over.append(&mut met);
    cleared::clear(watched, &clear, by);
    // This transaction's only snapshot may hide an open alert, and the code above has then not updated the alert.
    // Refuses the write in such a case.
    clear.extend(keys.iter().filter(|key| !open.contains_key(*key)).cloned());
    if has_one_snapshot() && alert::any_left(rule, &over, &clear) {
        return Err(Refusal::Changed);
    }
    Ok(())
}

/// An UPDATE may change the spelling of a key, for example from `1.0` to `1.00`. The row's open alert then gets the
/// new spelling.
fn current(watched: &Watched, keys: &[Text], seen: Vec<(usize, WatchedRow)>) -> HashMap<Text, WatchedRow> {
    let mut rows = HashMap::new();
    for (place, row) in seen {
        if keys[place] != row.key {
            alert::rename(&watched.rule.name, &keys[place], &row.key);
        } else {
            rows.insert(row.key.clone(), row);
        }
    }
    rows
}

pub(super) fn note(watched: &Watched, slots: &[Time]) {
    wakeup::count_written(slots.len() as u64);
    if let Some(first) = slots.iter().min() {
        wakeup::at_commit(watched.job.runner(), clock::to_timestamp(*first));
    }
}
