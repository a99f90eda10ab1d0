use super::statements::{alert, rule_check};
use super::{BACKFILL, SWEEP, end_rule};
use crate::error::{self, Result, WatchError};
use crate::pg::catalog;
use crate::pg::subtransaction::{has_one_snapshot, undone_or_raised};
use crate::pg::text::Text;
use crate::repeat::statements::repetition;
use crate::store::job::{self, Job};
use crate::store::right;
use awty_core::Time;
use pgrx::pg_sys;

/// Waits for each lock of a rule that is replaced. Leaves out the rows that [`lock`] locks for another role, of which
/// there may be millions. Also waits for transactions that have just scheduled a background check.
pub fn wait(rule: &Text, role: pg_sys::Oid, now: Time) {
    if job::find(rule).is_some_and(|job| job.is_ok_and(|job| job.role != role)) {
        undone_or_raised(|| job::take_name(rule));
    }
    undone_or_raised(|| drop(job::lock(rule)));
    for name in [BACKFILL, SWEEP] {
        undone_or_raised(|| rule_check::restart_special(rule, name, now, role));
    }
}

/// Locks the job of a rule that is replaced. If the rule gets another role, also takes the job's name, and locks the rows
/// that [`job`] changes.
pub fn lock(rule: &Text, role: pg_sys::Oid) {
    if let Some(Ok(job)) = job::find(rule)
        && job.role != role
    {
        job::take_name(rule);
    }
    match job::lock(rule) {
        Some(Ok(job)) if job.role != role => end_rule::lock_open(rule),
        _ => rule_check::lock_special(rule, [BACKFILL, SWEEP]),
    }
}

/// Gives a rule's job to another role, which may not trust the former role. Ends rights and repetitions that the former
/// role has given, and tells its channel of no problems any more. A repetition would show its role when rows are late.
/// A check of a repetition stays, because it may be the check of a row.
///
/// Also gives the open alerts and the pending checks to the new role, because each role may read its own. The caller
/// must have locked these rows.
pub fn job(job: Job, role: pg_sys::Oid) -> Result<()> {
    let had_rights = right::remove_all(&job.name);
    let had_repetitions = job.repeats && job::waiting_for(&job.name, || repetition::remove_job(&job.name));
    if had_rights || had_repetitions {
        let role = catalog::role_label(role);
        error::log::notice(format!(
            "job \"{}\" now runs as \"{role}\", so rights from awty.allow() and repetitions have ended",
            job.name
        ));
    }
    rule_check::set_scheduled_by(&job.name, role);
    alert::set_role(&job.name, role);
    let is_any_left = || rule_check::is_any_of_others(&job.name, role) || repetition::is_any_of_job(&job.name);
    if has_one_snapshot() && is_any_left() {
        return Err(WatchError::Changed { rule: job.name.to_string() }.into());
    }
    job::update(&Job { role, registered_by: catalog::current_role(), notify: None, ..job });
    Ok(())
}
