//! `awty.hold()` and `awty.release()` do not lock a check during its run, because a lock would undo the run.

use crate::call::args::{Args, calls};
use crate::call::argument_limits::MAX_NOTE;
use crate::call::entity::Entity;
use crate::call::rights;
use crate::error::{Error, Result, WatchError};
use crate::pg::{catalog, clock};
use crate::repeat::continuation::{Continuation, Decision};
use crate::repeat::statements::repetition::{self, Existing};
use crate::shmem::{self, wakeup};
use crate::store::future_job::{self, Pending};
use crate::store::job::Job;
use crate::store::{check_stat, history, hold};
use crate::watch;
use awty_core::{Before, Mono, Time, policy};

calls! {
    fn hold -> () = hold_check;
    fn release -> () = release_check;
}

/// A run of the check that is in progress ends normally.
fn hold_check(args: &Args) -> Result<()> {
    rights::gate_write("awty.hold()")?;
    let entity = Entity::of(args)?;
    let job = entity.one_job(args, "awty.hold")?;
    let note = args.optional_name(3, "note", MAX_NOTE)?;
    let until = held_until(args, &job)?;
    if let Some(watched) = watch::hold::rule_of(&job, &entity.name) {
        return match watch::hold::hold(&watched, &entity.key, until, note.as_ref()) {
            true => Ok(()),
            false => Err(entity.missing(Some(&job.name))),
        };
    }
    if until.is_some() {
        return Err(WatchError::HeldUntil { entity: entity.label() }.into());
    }
    let seen = peek(&entity, &job)?;
    let runs = running_since(seen.id).is_some();
    let id = if runs {
        // The run may leave the check pending, and may end before this transaction commits. A maintainer then holds the
        // check.
        wakeup::inspect_at_commit(false);
        seen.id
    } else {
        let id = lock(&entity, &job)?.id;
        future_job::set_held(id);
        id
    };
    hold::put(id, runs, catalog::current_role(), clock::now(), note);
    Ok(())
}

fn held_until(args: &Args, job: &Job) -> Result<Option<Time>> {
    let Some(until) = args.time(4, "held_until")? else { return Ok(None) };
    if until <= clock::now() {
        return Err(WatchError::HeldUntilPast.into());
    }
    Ok(Some(job.options.limits.width.round_up(until)))
}

/// If the check fell due while it was held, the job's `on_missed` says what happens to the check.
fn release_check(args: &Args) -> Result<()> {
    rights::gate_write("awty.release()")?;
    let entity = Entity::of(args)?;
    let job = entity.one_job(args, "awty.release")?;
    if let Some(watched) = watch::hold::rule_of(&job, &entity.name) {
        if watch::hold::release(&watched, &entity.key) {
            return Ok(());
        }
        // The row's alert was not held. If the row is silenced, the call is refused. Otherwise crashes may have held
        // the check, which is released below.
        if peek(&entity, &job).is_ok_and(|check| hold::is_silenced(check.id)) {
            return Err(WatchError::Silenced { entity: entity.label() }.into());
        }
    }
    let seen = peek(&entity, &job)?;
    let was_lost = job.repeats && hold::remove_lost(&entity.name, &entity.key, &job.name);
    let mut held_at = None;
    if !seen.held {
        // A client that holds a check during its run does not mark the check as held. If this call waited for the end
        // of that run, the check is marked now.
        held_at = hold::remove(seen.id);
        if !peek(&entity, &job).is_ok_and(|check| check.held) {
            let not_held = || Error::NotHeld { entity: entity.label(), job: job.name.to_string() };
            return (held_at.is_some() || was_lost).then_some(()).ok_or_else(not_held);
        }
    }
    let check = lock(&entity, &job)?;
    future_job::release(check.id);
    check_stat::absolve(check.id);
    if let Some(held_at) = hold::remove(check.id).or(held_at)
        && held_at <= check.slot
    {
        apply_policy(&check, &job);
    }
    wakeup::at_commit(job.runner(), clock::to_timestamp(check.slot));
    Ok(())
}

fn apply_policy(check: &Pending, job: &Job) {
    let now = clock::now();
    let by_policy = policy::before(&check.check(), &job.options.limits, now, now);
    if matches!(by_policy, Before::NotYet | Before::Run) {
        return;
    }
    let mut continuation = Continuation::of(job, &[check.id]);
    match continuation.before(check.id, by_policy, now, now) {
        Decision::Policy(Before::NotYet | Before::Run) => {}
        Decision::Policy(Before::Move(slot)) => {
            future_job::put_at(check.id, slot);
            wakeup::at_commit(job.runner(), clock::to_timestamp(slot));
        }
        Decision::Policy(Before::End(outcome)) => {
            wakeup::count_ended(1);
            history::end(&[check.id], outcome, now, None);
        }
        Decision::Replace => {
            wakeup::count_ended(1);
            history::remove(&[check.id]);
        }
    }
    if let Some(slot) = continuation.begin_next(now) {
        wakeup::count_written(1);
        wakeup::at_commit(job.runner(), clock::to_timestamp(slot));
    }
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
