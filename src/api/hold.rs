//! `awty.hold()` and `awty.release()` do not lock a running check, because the lock would roll back the run.

use crate::call::args::{Args, calls};
use crate::call::argument_limits::MAX_NOTE;
use crate::call::entity::Entity;
use crate::call::{own_checks, rights};
use crate::error::{Error, QuietError, Result, WatchError};
use crate::pg::{catalog, clock};
use crate::quiet;
use crate::repeat::statements::repetition::{self, Existing};
use crate::settings;
use crate::shmem::{self, wakeup};
use crate::store::future_job::{self, Pending};
use crate::store::hold;
use crate::store::job::Job;
use crate::watch;
use awty_core::{Mono, Time};

calls! {
    fn hold -> () = hold_check;
    fn release -> () = release_check;
}

fn hold_check(args: &Args) -> Result<()> {
    rights::gate_write("awty.hold()")?;
    let entity = Entity::of(args)?;
    let job = entity.one_job(args, "awty.hold")?;
    own_checks::keep(&job, &entity.name)?;
    let note = args.optional_name(3, "note", MAX_NOTE)?;
    let until = planned_end(args, 4, "held_until", &job)?;
    if let Some(watched) = watch::hold::rule_of(&job, &entity.name) {
        return match watch::hold::hold(&watched, &entity, until, note.as_ref())? {
            true => Ok(()),
            false => Err(entity.missing(Some(&job.name))),
        };
    }
    let seen = peek(&entity, &job)?;
    let runs = running_since(seen.id).is_some();
    if until.is_some() && hold::is_after_crashes(seen.id, settings::max_crashes()) {
        return Err(QuietError::HeldAfterCrashes { entity: entity.label(), job: job.name.to_string() }.into());
    }
    let id = if runs {
        // A run that ends before this transaction commits does not see the hold. Therefore a background process marks
        // the pending check as held after the commit.
        wakeup::inspect_at_commit(false);
        seen.id
    } else {
        let id = lock(&entity, &job)?.id;
        future_job::set_held(id);
        id
    };
    hold::put(id, runs, catalog::current_role(), clock::now(), note.as_ref(), until, &job.name);
    if let Some(until) = until {
        wakeup::end_at_commit(until);
    }
    Ok(())
}

pub fn planned_end(args: &Args, index: usize, argument: &'static str, job: &Job) -> Result<Option<Time>> {
    let Some(until) = args.time(index, argument)? else { return Ok(None) };
    if until <= clock::now() {
        return Err(QuietError::EndPassed { argument }.into());
    }
    Ok(Some(job.options.limits.width.round_up(until)))
}

fn release_check(args: &Args) -> Result<()> {
    rights::gate_write("awty.release()")?;
    let entity = Entity::of(args)?;
    let job = entity.one_job(args, "awty.release")?;
    if let Some(watched) = watch::hold::rule_of(&job, &entity.name) {
        if watch::hold::release(&watched, &entity.key) {
            return Ok(());
        }
        // No alert of the row is held. The code below releases the row's check, which awty holds if its runs crashed.
        if peek(&entity, &job).is_ok_and(|check| hold::is_silenced(check.id)) {
            return Err(WatchError::Silenced { entity: entity.label() }.into());
        }
    }
    let seen = peek(&entity, &job)?;
    let was_lost = job.repeats && hold::remove_lost(&entity.name, &entity.key, &job.name);
    let mut ended = None;
    if !seen.held {
        // Reads `held` again, because a run may have marked the check as held while this call waited.
        ended = hold::remove(seen.id);
        if !peek(&entity, &job).is_ok_and(|check| check.held) {
            let not_held = || Error::NotHeld { entity: entity.label(), job: job.name.to_string() };
            return (ended.is_some() || was_lost).then_some(()).ok_or_else(not_held);
        }
    }
    let check = lock(&entity, &job)?;
    let ended = hold::remove(check.id).or(ended);
    quiet::release(&check, &job, ended, clock::now());
    Ok(())
}

pub fn peek(entity: &Entity, job: &Job) -> Result<Pending> {
    future_job::peek(entity.name.datum(), entity.key.datum(), &job.name).ok_or_else(|| entity.missing(Some(&job.name)))
}

pub fn lock(entity: &Entity, job: &Job) -> Result<Pending> {
    let lock = || future_job::lock_check(entity.name.datum(), entity.key.datum(), &job.name);
    let mut check = lock();
    while check.is_none() && job.repeats && repetition::find(&entity.name, &entity.key, &job.name) == Existing::Pending
    {
        check = lock();
    }
    check.ok_or_else(|| entity.missing(Some(&job.name)))
}

pub fn running_since(id: i64) -> Option<Mono> {
    let (here, now) = (catalog::database(), clock::mono());
    shmem::is_present().then(|| shmem::read(|shared| shared.running_since(here, id, now))).flatten()
}
