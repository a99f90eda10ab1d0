//! Clears open alerts whose rows are no longer late. Such alerts can exist after a client has written to the table
//! without firing the triggers.

use super::statements::alert::{self, Found, Start};
use super::statements::rule_check::{self, ScheduledBy};
use super::stops::Clocks;
use super::written::note;
use super::{SWEEP, cleared, is_rules, pieces, upkeep};
use crate::pg::clock;
use crate::pg::subtransaction::unless_locked;
use crate::pg::text::Text;
use crate::rule::Watched;
use crate::rule::statements::rule;
use crate::shmem::wakeup;
use crate::store::job;
use awty_core::Time;
use awty_core::watch::{Alert, RowState, Verdict, judge};
use chrono::TimeDelta;
use pgrx::pg_sys;
use std::collections::HashMap;

const EVERY: TimeDelta = TimeDelta::days(1);

pub fn schedule_due(now: Time) {
    let Some(then) = now.checked_sub_signed(EVERY) else { return };
    let jobs = rule::to_sweep(then).into_iter().filter_map(|name| job::find(&name)?.ok());
    upkeep::for_each(jobs.map(|job| (job.role, job)), |job| {
        // Meanwhile, the name may have become that of another role's job.
        job::find(&job.name)?.ok().filter(|now| is_rules(now) && now.role == job.role)?;
        unless_locked(|| rule_check::put_special(&job.name, SWEEP, now, job.role))?;
        wakeup::at_commit(job.runner(), clock::to_timestamp(now));
        Some(())
    });
}

/// Compares the next open alerts of the rule with their rows, and clears alerts whose rows are no longer late. Returns
/// when to continue, or `None` if all open alerts were compared.
pub fn piece(watched: &Watched, now: Time) -> Option<Time> {
    let rule = &watched.rule;
    let mut swept_at = if rule.swept_to.is_none() { Some(now) } else { rule.swept_at };
    let reached = pieces::piece(watched, true, rule.swept_to.as_ref(), |after, limit| {
        let after = after.cloned().unwrap_or_else(|| Text::from(""));
        let open = alert::open_after(&rule.name, &after, limit);
        let keys: Vec<Text> = open.iter().map(|alert| alert.key.clone()).collect();
        if !compare(watched, open, &keys, now) {
            swept_at = None;
        }
        keys
    });
    rule::set_swept(&rule.name, swept_at, reached.as_ref());
    (reached.is_some() || swept_at.is_none()).then_some(now)
}

/// Returns `false` if an alert stays open because another session has locked or updated the alert.
fn compare(watched: &Watched, open: Vec<Found>, keys: &[Text], now: Time) -> bool {
    let name = &watched.rule.name;
    let clocks = Clocks::read(watched, keys);
    let rows: HashMap<usize, _> = watched.source.by_exact_keys(keys).into_iter().collect();
    let (mut settled, mut ahead, mut stays) = (Vec::new(), Vec::new(), Vec::new());
    for (place, Found { key, level, since, version }) in open.into_iter().enumerate() {
        let found = rows
            .get(&place)
            .map_or(RowState::Gone, |row| row.state.found(since.unwrap_or(Time::MIN_UTC), clocks.stops(&key)));
        let alert = Alert { level: level.unsigned_abs(), ..Alert::NONE };
        match judge(found, alert, &watched.levels, &watched.job.options.limits, now) {
            Verdict::Settled => settled.push((key, version)),
            Verdict::Ahead(slot) if level > 0 => {
                settled.push((key.clone(), version));
                ahead.push((key, slot, since.filter(|_| watched.rule.terms.start().is_none()).unwrap_or(now)));
            }
            _ => {
                if let RowState::Waiting { start, stops, .. } = found {
                    let (since, due_at) = (watched.since(start), watched.due_at(start, stops));
                    stays.push(Start { key, version, since, due_at });
                }
            }
        }
    }
    let by = ScheduledBy { role: watched.job.role, at: now };
    let (keys, versions): (Vec<Text>, Vec<Text>) = settled.into_iter().unzip();
    // Skips alerts that have changed since they were read, because a client that changes a watched row also updates the
    // row's alert.
    let free = alert::lock_unchanged(name, &keys, &versions);
    cleared::clear(watched, &free, by);
    alert::set_starts(name, &stays);
    keep(watched, ahead, by.role);
    free.len() == keys.len()
}

fn keep(watched: &Watched, rows: Vec<(Text, Time, Time)>, role: pg_sys::Oid) {
    let mut by_time: HashMap<Time, (Vec<Text>, Vec<Time>)> = HashMap::new();
    for (key, slot, at) in rows {
        let (keys, slots) = by_time.entry(at).or_default();
        keys.push(key);
        slots.push(slot);
    }
    for (at, (keys, slots)) in by_time {
        rule_check::keep(&watched.rule, &keys, &slots, ScheduledBy { role, at });
        note(watched, &slots);
    }
}
