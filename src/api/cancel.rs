use crate::call::args::{Args, calls};
use crate::call::argument_limits::MAX_JOB;
use crate::call::entity::Entity;
use crate::call::{own_checks, rights};
use crate::error::Result;
use crate::pg::clock;
use crate::repeat::statements::repetition::{self, Existing};
use crate::shmem::wakeup;
use crate::store::job::Job;
use crate::store::{future_job, history};
use crate::watch;
use awty_core::Outcome;

calls! {
    fn cancel -> i64 = cancel_checks;
}

fn cancel_checks(args: &Args) -> Result<i64> {
    rights::gate_write("awty.cancel()")?;
    let entity = Entity::of(args)?;
    let jobs = match args.optional_name(2, "job", MAX_JOB)? {
        Some(name) => vec![rights::schedulable_job(&name)?],
        // Leaves out checks of rules, because their cancellation would stop the rules from watching the rows.
        None => entity.jobs(|job| rights::may_schedule(job) && !own_checks::is_rules(job)),
    };
    if let [job] = jobs.as_slice()
        && watch::silence::applies(job, &entity.name)
    {
        return Ok(watch::silence::rows(job, &entity.name, &[entity.key]));
    }
    // Locks only checks that the caller may cancel, so that other roles' sessions do not wait.
    let ids: Vec<i64> = jobs.iter().filter_map(|job| lock(&entity, job)).collect();
    wakeup::count_ended(ids.len() as u64);
    history::end(&ids, Outcome::Cancelled, clock::now(), None);
    Ok(ids.len() as i64)
}

pub fn lock(entity: &Entity, job: &Job) -> Option<i64> {
    let lock = || future_job::lock_of(entity.name.datum(), entity.key.datum(), &job.name);
    let mut id = lock();
    if !job.repeats {
        return id;
    }
    // While this session waited, a run may have ended the check and scheduled the repetition's next check. The loop
    // then locks the next check.
    while id.is_none() && repetition::find(&entity.name, &entity.key, &job.name) == Existing::Pending {
        id = lock();
    }
    if repetition::remove_of(&entity.name, &entity.key, &job.name) && id.is_none() {
        id = lock();
    }
    id
}
