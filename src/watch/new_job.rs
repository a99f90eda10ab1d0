use super::end_rule;
use super::statements::{alert, cleared_alert, stop};
use crate::error::{Error, Result};
use crate::pg::clock;
use crate::pg::subtransaction::{has_one_snapshot, undone_or_raised};
use crate::pg::text::Text;
use crate::repeat::statements::repetition;
use crate::shmem::wakeup;
use crate::store::job::{self, Job};
use crate::store::left;

/// Waits until the name is free, and ends what a former job has left. A caller that locks a table calls this function
/// first, because there may be much of it, and because other sessions may have locked it.
pub fn wait(name: &Text) -> Result<()> {
    undone_or_raised(|| job::take_name(name));
    if is_any_left(name) {
        job::take_name(name);
        if job::find(name).is_none() {
            end_left(name)?;
        }
    }
    Ok(())
}

/// Returns whether a former job has left anything. Sees the latest commits.
pub fn is_any_left(name: &Text) -> bool {
    repetition::is_any_of_job(name) || left::is_any(name) || stop::is_any(name) || alert::is_any_open(name)
}

/// Ends what other transactions have committed since a former job of this name was removed, because the former job may
/// have had another role. An open alert would also keep the next rule of this name from telling of the row.
pub fn end_left(name: &Text) -> Result<()> {
    if repetition::is_any_of_job(name) {
        job::waiting_for(name, || end_rule::checks_and_repetitions(name, true));
        // The snapshot of this transaction may be too old for these rows.
        if repetition::is_any_of_job(name) {
            return Err(Error::JobBusy { job: name.to_string() });
        }
    }
    job::waiting_for(name, || {
        left::remove_targets(name);
        left::remove_leases(name);
        stop::remove_all(name);
        cleared_alert::clear_all(name, clock::now());
    });
    Ok(())
}

/// Inserts a job. Returns `false` if a job of this name exists. Calls `clear` before the insert, because a former job of
/// this name may have left rows.
pub fn insert(job: &Job, clear: impl FnOnce(&Text) -> Result<()>) -> Result<bool> {
    // Looks before it takes the name, because calls with the name of another role's job would wait for the lock.
    if job::find(&job.name).is_some() {
        return Ok(false);
    }
    job::take_name(&job.name);
    if job::find(&job.name).is_some() {
        return Ok(false);
    }
    clear(&job.name)?;
    // If the former job ended after the snapshot was taken, this transaction could read what belonged to it.
    let is_old = |name| left::is_any(name) || stop::is_any(name) || alert::is_any_open(name) || left::is_shown(name);
    if has_one_snapshot() && is_old(&job.name) {
        return Err(Error::JobBusy { job: job.name.to_string() });
    }
    let is_new = job::insert(job, clock::now());
    if is_new {
        // Clears counters of an earlier job with this name from shared memory.
        wakeup::forget_job_at_commit(job.name.as_bytes());
    }
    Ok(is_new)
}
