use crate::error;
use crate::pg::catalog;
use crate::repeat::statements::repetition;
use crate::store::job::{self, Job};
use crate::store::right;
use pgrx::pg_sys;

/// Gives a rule's job to another role, which may not trust the former role. Ends rights and repetitions that the former
/// role has given, and tells its channel of no problems any more. A repetition would show its role when rows are late.
/// A check of a repetition stays, because it may be the check of a row.
pub fn job(job: Job, role: pg_sys::Oid) {
    let had_rights = right::remove_all(&job.name);
    let had_repetitions = job.repeats && job::waiting_for(&job.name, || repetition::remove_job(&job.name));
    if had_rights || had_repetitions {
        let role = catalog::role_label(role);
        error::log::notice(format!(
            "job \"{}\" now runs as \"{role}\", so rights from awty.allow() and repetitions have ended",
            job.name
        ));
    }
    job::update(&Job { role, registered_by: catalog::current_role(), notify: None, ..job });
}
