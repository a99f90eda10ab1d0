//! Holds and releases alerts. A held alert still rises to the next level, but is not reported.
//!
//! Invariant: a session that holds or releases an alert also writes the row's check, so that a concurrent run of the
//! check is rolled back.
//!
//! Invariant: a hold evaluates the rule's expressions for the table's owner only, because the owner's code could read
//! what another role's session has open, such as cursors.

use super::silence;
use super::statements::alert::{self, Held, NewHold};
use super::statements::rule_check::{self, ScheduledBy};
use super::stops::Clocks;
use super::written::note as announce;
use crate::call::entity::Entity;
use crate::error::{QuietError, Result};
use crate::pg::reraise::reported;
use crate::pg::text::Text;
use crate::pg::{catalog, clock};
use crate::rule::Watched;
use crate::store::job::Job;
use awty_core::Time;
use awty_core::watch::RowState;

pub fn rule_of(job: &Job, entity_name: &Text) -> Option<Watched> {
    let watched = silence::applies(job, entity_name).then(|| Watched::find(&job.name).ok()).flatten();
    watched.filter(|watched| watched.rule.entity_name == *entity_name)
}

/// If the row has no alert yet, adds an alert of level 0 that records the hold. Only the table's owner can do so.
pub fn hold(watched: &Watched, entity: &Entity, until: Option<Time>, note: Option<&Text>) -> Result<bool> {
    let (by, rule, key) = (catalog::current_role(), &watched.rule, &entity.key);
    let keys = std::slice::from_ref(key);
    let check = rule_check::lock(rule, keys).pop();
    let held = alert::hold(&rule.name, key, by, until, note);
    // Only a session that has locked the row's check adds an alert, so that a row never gets two.
    let held = match (held, check) {
        (None, Some(_)) if watched.source.table.owner != by => {
            let table = watched.source.table.qualified();
            return Err(QuietError::NotRaised { entity: entity.label(), table }.into());
        }
        (None, Some(_)) => add_held(watched, key, &NewHold { by, until, note }),
        (held, _) => held,
    };
    let Some(held) = held else { return Ok(false) };
    move_check(watched, key, check, until, &held);
    Ok(true)
}

pub fn release(watched: &Watched, key: &Text) -> bool {
    let check = rule_check::lock(&watched.rule, std::slice::from_ref(key)).pop();
    let Some(held) = alert::release(&watched.rule.name, key) else { return false };
    move_check(watched, key, check, (held.level > 0).then(clock::now), &held);
    true
}

fn add_held(watched: &Watched, key: &Text, hold: &NewHold) -> Option<Held> {
    let keys = std::slice::from_ref(key);
    let scheduled_at = rule_check::pending(&watched.rule, keys).pop()?.scheduled_at;
    let (_, row) = reported(|| watched.source.by_exact_keys(keys)).pop()?;
    let clocks = Clocks::read(watched, keys);
    let RowState::Waiting { start, stops, .. } = row.state.found(scheduled_at, clocks.stops(key)) else { return None };
    let since = watched.since(start);
    alert::put_held(&watched.rule, key, since, watched.due_at(start, stops), hold);
    Some(Held { level: 0, since })
}

/// Makes the row's check due no later than `slot`. If the check has ended because the alert reached its last level,
/// inserts a new check.
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
