//! Implements `awty.hold()` and `awty.release()` for the alerts of watched rows.
//!
//! While an alert is on hold, its level still rises, but the alert is not reported.
//!
//! Invariant: the row's check is locked before the row's alert. The check is also written, because a run of the check
//! that is in progress must be rolled back.

use super::statements::alert::{self, Held};
use super::statements::rule_check::{self, ScheduledBy};
use super::stops::Clocks;
use super::written::note as announce;
use super::{Watched, silence};
use crate::pg::reraise::reported;
use crate::pg::text::Text;
use crate::pg::{catalog, clock};
use crate::store::job::Job;
use awty_core::Time;
use awty_core::watch::RowState;

pub fn rule_of(job: &Job, entity_name: &Text) -> Option<Watched> {
    let watched = silence::applies(job, entity_name).then(|| Watched::find(&job.name).ok()).flatten();
    watched.filter(|watched| watched.rule.entity_name == *entity_name)
}

/// A row that is not late yet gets an alert of level 0.
pub fn hold(watched: &Watched, key: &Text, until: Option<Time>, note: Option<&Text>) -> bool {
    let (by, rule) = (catalog::current_role(), &watched.rule);
    let keys = std::slice::from_ref(key);
    let check = rule_check::lock(rule, keys).pop();
    let hold = || alert::hold(&rule.name, key, by, until, note);
    let held = match hold() {
        Some(held) => held,
        None => {
            if !add_level_0(watched, key) {
                return false;
            }
            let Some(held) = hold() else { return false };
            held
        }
    };
    move_check(watched, key, check, until, &held);
    true
}

pub fn release(watched: &Watched, key: &Text) -> bool {
    let check = rule_check::lock(&watched.rule, std::slice::from_ref(key)).pop();
    let Some(held) = alert::release(&watched.rule.name, key) else { return false };
    move_check(watched, key, check, (held.level > 0).then(clock::now), &held);
    true
}

fn add_level_0(watched: &Watched, key: &Text) -> bool {
    let keys = std::slice::from_ref(key);
    let Some(check) = rule_check::pending(&watched.rule, keys).pop() else { return false };
    let scheduled_at = check.scheduled_at;
    let Some((_, row)) = reported(|| watched.source.by_keys(keys)).pop() else { return false };
    let clocks = Clocks::read(watched, keys);
    let RowState::Waiting { start, stops, .. } = row.state.found(scheduled_at, clocks.stops(key)) else { return false };
    alert::put_level_0(&watched.rule, key, watched.since(start), watched.due_at(start, stops));
    true
}

/// Writes the check even if its due time does not change, because a run of the check that is in progress must be rolled
/// back.
///
/// If the check has already ended at the last level, a new check is inserted. The new check keeps the time from which
/// the row's lateness counts.
fn move_check(watched: &Watched, key: &Text, check: Option<i64>, slot: Option<Time>, held: &Held) {
    match (check, slot) {
        (Some(check), _) => rule_check::advance(check, slot),
        (None, Some(slot)) => {
            let by = ScheduledBy { role: catalog::current_role(), at: held.since.unwrap_or_else(clock::now) };
            rule_check::add_one(&watched.rule, key, slot, by);
        }
        (None, None) => {}
    }
    if let Some(slot) = slot {
        announce(watched, &[slot]);
    }
}
