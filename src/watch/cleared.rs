//! Invariant: clearing an alert only schedules the call of the rule's `call_cleared`, so that an error of
//! `call_cleared` never undoes the clearing.

use super::statements::alert::{self, Open};
use super::statements::cleared_alert;
use super::statements::rule_check::ScheduledBy;
use super::{CLEARED, call};
use crate::error::Result;
use crate::pg::clock;
use crate::pg::text::Text;
use crate::rule::Watched;
use crate::shmem::wakeup;

const ALERTS: i64 = 5_000;

pub fn clear(watched: &Watched, keys: &[Text], by: ScheduledBy) {
    let name = &watched.rule.name;
    if keys.is_empty() {
        return;
    }
    if watched.rule.terms.call_cleared.is_none() {
        cleared_alert::clear(name, keys, by.at);
        return;
    }
    let checks = cleared_alert::clear_and_schedule(name, keys, by.at, &Text::from(CLEARED), by.role);
    if checks > 0 {
        wakeup::count_written(checks);
        wakeup::at_commit(watched.job.runner(), clock::to_timestamp(by.at));
    }
}

/// Skips alerts that another transaction has locked. Returns the skipped keys.
pub fn clear_free(watched: &Watched, keys: &[Text], by: ScheduledBy) -> Vec<Text> {
    if keys.is_empty() {
        return Vec::new();
    }
    let locked = alert::lock_open(&watched.rule.name, keys);
    let (free, others): (Vec<_>, Vec<_>) = locked.into_iter().partition(|(_, is_free)| *is_free);
    let keys_of = |found: Vec<(Open, bool)>| -> Vec<Text> { found.into_iter().map(|(open, _)| open.key).collect() };
    clear(watched, &keys_of(free), by);
    keys_of(others)
}

pub fn clear_all(watched: &Watched, by: ScheduledBy) {
    let name = &watched.rule.name;
    if watched.rule.terms.call_cleared.is_none() {
        cleared_alert::clear_all(name, by.at);
        return;
    }
    let mut after = Text::from("");
    loop {
        let open = alert::open_after(name, &after, ALERTS);
        let Some(last) = open.last() else { break };
        after = last.key.clone();
        let keys: Vec<Text> = open.into_iter().map(|alert| alert.key).collect();
        clear(watched, &keys, by);
    }
}

pub fn tell(watched: &Watched, ids: &[i64]) -> Result<()> {
    let function = watched.rule.terms.call_cleared.as_ref().filter(|_| !ids.is_empty());
    let Some(function) = function else { return Ok(()) };
    let alerts = cleared_alert::rows(&watched.rule.name, ids, watched.job.role);
    if alerts.is_empty() {
        return Ok(());
    }
    call::with_alerts(watched, function, alerts.into_iter())
}
