//! Ends a rule, or all checks of a job. Keeps the cleared alerts and the history.

use super::statements::{alert, cleared_alert, rule_check, stop};
use crate::pg::subtransaction::has_one_snapshot;
use crate::pg::text::Text;
use crate::pg::{clock, table};
use crate::repeat::statements::repetition;
use crate::rule::statements::rule::{self, Rule};
use crate::rule::statements::rule_function;
use crate::shmem::wakeup;
use crate::store::{future_job, history, job};
use awty_core::Outcome;

/// The rule cannot end. It has an open alert that is too new for the snapshot of this transaction, or the name has become
/// that of another rule or job.
pub struct Unseen;

/// Ends a rule that [`lock`] has locked. The caller must have dropped the rule's triggers. Returns the number of checks.
pub fn locked(name: &Text, repeats: bool) -> Result<i64, Unseen> {
    let count = job::waiting_for(name, || checks_and_repetitions(name, repeats));
    cleared_alert::clear_all(name, clock::now());
    seen_all(name)?;
    job::delete(name);
    rule_function::remove(name);
    stop::remove_all(name);
    rule::remove(name);
    Ok(count)
}

/// Locks the rule's job, checks and alerts. The caller must have locked the table if it exists. Returns `false` only if
/// the job has no repetitions. The result is `true` if the row of the job is invalid.
///
/// First takes the name of the job, because calls that have shared it may have written alerts, checks or the row of the
/// rule that this transaction does not see yet.
///
/// The caller drops the rule's triggers only afterwards, because dropping them locks the table, and readers of the
/// table would also wait for the other transactions.
pub fn lock(rule: &Rule) -> Result<bool, Unseen> {
    job::take_name(&rule.name);
    let repeats = !job::lock(&rule.name).is_some_and(|job| job.is_ok_and(|job| !job.repeats));
    lock_open(&rule.name);
    // The job is the only lock of a rule whose table was dropped.
    if !rule::find(&rule.name).is_some_and(|now| (now.relation, now.watched_at) == (rule.relation, rule.watched_at)) {
        return Err(Unseen);
    }
    Ok(repeats)
}

/// Locks the rule's checks and open alerts. The caller must have locked the job.
pub fn lock_open(name: &Text) {
    rule_check::waiting_for(name, || {
        future_job::lock_job(name, None);
        alert::lock_all(name);
    });
}

/// Locks the job first, because a concurrent `awty.watch()` may move the rule to another table.
pub fn without_table(name: &Text) -> Result<(), Unseen> {
    drop(job::lock(name));
    match rule::find(name) {
        Some(found) if table::describe(found.relation).is_none() => {
            lock(&found).and_then(|repeats| locked(name, repeats)).map(drop)
        }
        _ => Ok(()),
    }
}

pub fn seen_all(rule: &Text) -> Result<(), Unseen> {
    if has_one_snapshot() && alert::is_any_open(rule) { Err(Unseen) } else { Ok(()) }
}

/// Ends everything that would run a job of the same name later.
pub fn checks_and_repetitions(job: &Text, repeats: bool) -> i64 {
    let mut count = checks(job);
    if repeats {
        repetition::remove_job(job);
        // Searches for checks again, because a run may have inserted a repetition's next check after the first search
        // began.
        count += checks(job);
    }
    count
}

fn checks(job: &Text) -> i64 {
    checks_of(job, None)
}

pub fn checks_of(job: &Text, entity_name: Option<&Text>) -> i64 {
    let ids = future_job::lock_job(job, entity_name);
    wakeup::count_ended(ids.len() as u64);
    history::end(&ids, Outcome::Cancelled, clock::now(), None);
    ids.len() as i64
}
