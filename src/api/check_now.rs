//! Makes a pending check due now. Refuses a running check, because a change of its row would roll back the run.

use super::hold::{lock, peek, running_since};
use crate::call::args::{Args, calls};
use crate::call::entity::Entity;
use crate::call::rights;
use crate::error::{self, Error, LeaseError, Result};
use crate::lease::statements::lease;
use crate::pg::clock;
use crate::repeat::statements::{repetition, upkeep};
use crate::shmem::wakeup;
use crate::store::future_job::{self, Pending};
use crate::store::job::{self, Job};
use awty_core::{Mono, Time};

calls! {
    fn check_now -> i64 = ask_now;
}

fn ask_now(args: &Args) -> Result<i64> {
    rights::gate_write("awty.check_now()")?;
    let entity = Entity::of(args)?;
    let job = entity.one_job(args, "awty.check_now")?;
    let seen = peek(&entity, &job)?;
    if let Some(began) = running_since(seen.id) {
        return Err(Error::Running { id: seen.id, since: since(began) });
    }
    if job.is_external()
        && let Some(until) = lease::until(seen.id, clock::now())
    {
        return Err(LeaseError::Leased { id: seen.id, until }.into());
    }
    let check = lock(&entity, &job)?;
    if check.held {
        return Err(Error::Held { entity: entity.label(), job: job.name.to_string() });
    }
    let now = clock::now();
    put_now(&check, &job, now);
    wakeup::at_commit(job.runner(), clock::to_timestamp(now));
    rights::warn_if_nothing_runs();
    if job.paused {
        error::log::paused(&job.name.to_string(), job::paused_until(&job.name));
    }
    Ok(check.id)
}

/// Makes the pending check run now. If a repetition planned the check for a later time, another check still runs at
/// that time.
fn put_now(check: &Pending, job: &Job, now: Time) {
    let pending = if job.repeats { repetition::of_checks(&[check.id]).pop() } else { None };
    match pending.map(|pending| pending.occurrence).filter(|occurrence| occurrence.first > now) {
        Some(occurrence) => {
            upkeep::move_to(check.id, now);
            repetition::set_passed(check.id, occurrence.now(now).passed);
        }
        None => future_job::put_at(check.id, now),
    }
}

fn since(began: Mono) -> Time {
    clock::now() - clock::delta_of(clock::mono().since(began))
}
