use crate::call::args::{Args, calls};
use crate::call::argument_limits::MAX_JOB;
use crate::call::entity::Entity;
use crate::call::{own_checks, rights};
use crate::error::{self, Error, Result};
use crate::function;
use crate::lease::statements::target;
use crate::pg::text::Text;
use crate::pg::{catalog, clock};
use crate::repeat::own_run;
use crate::repeat::statements::repetition;
use crate::shmem::wakeup;
use crate::store::future_job::{self, NewCheck};
use crate::store::job::{self, Job};
use crate::store::{history, hold};
use awty_core::lease::target::Standing;
use awty_core::limits::Shown;
use awty_core::policy::{self, TooFar};
use awty_core::{Conflict, OnConflict, Outcome, Time};
use chrono::TimeDelta;
use pgrx::datum::TimestampWithTimeZone;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use std::cell::RefCell;
use std::collections::HashSet;

const ROUNDS: u32 = 100;

/// A session reads the state of at most this many targets, so that `awty.schedule()` stays quick.
const MAX_ASKED: usize = 100;

/// A thousand years, because a longer interval could overflow.
const MAX_DAYS: i64 = 365_250;

calls! {
    fn schedule -> i64 = schedule_check;
}

#[pg_extern(sql = false)]
fn next_slot(fcinfo: pg_sys::FunctionCallInfo) -> std::result::Result<Option<TimestampWithTimeZone>, ErrorReport> {
    let args = Args::new(fcinfo);
    let Some(time) = args.time(0, "t")? else { return Ok(None) };
    let width = match args.optional_name(1, "job", MAX_JOB)? {
        Some(name) => rights::visible_job(&name)?.options.limits.width,
        None => crate::settings::slot(),
    };
    Ok(clock::to_timestamptz(width.due(time, clock::now())))
}

fn schedule_check(args: &Args) -> Result<i64> {
    rights::gate_write("awty.schedule()")?;
    let entity = Entity::of(args)?;
    let name = args.name(2, "job", MAX_JOB)?;
    let (time, after) = due_time(args)?;
    let job_args = args.jsonb(5)?;
    let on_conflict: OnConflict = args
        .choice(6, "on_conflict", "replace, keep, earliest, latest, error")?
        .ok_or(Error::Null { argument: "on_conflict" })?;

    let job = rights::schedulable_job(&name)?;
    own_checks::keep(&job, &entity.name)?;
    function::check(&job)?;
    let now = clock::now();
    let slot = slot_of(&job, time, now)?;
    let check = NewCheck {
        job: name.datum(),
        entity_name: entity.name.datum(),
        entity_key: entity.key.datum(),
        args: job_args,
        scheduled_by: catalog::current_role(),
        scheduled_at: now,
    };
    let id = write(&check, &job, slot, now, on_conflict, &entity)?;
    wakeup::at_commit(job.runner(), clock::to_timestamp(slot));
    rights::warn_if_nothing_runs();
    if job.paused {
        say_paused(&job);
    }
    say_blocked(&job, &entity.name, now);
    if after.is_some_and(|after| policy::is_surprising(after, slot, now)) {
        say_slot(&job, slot);
    }
    Ok(id)
}

pub fn say_paused(job: &Job) {
    thread_local! {
        static SAID: RefCell<HashSet<Text>> = RefCell::default();
    }
    if SAID.with_borrow_mut(|said| said.insert(job.name.clone())) {
        error::log::paused(&job.name.to_string(), job::paused_until(&job.name));
    }
}

pub fn say_blocked(job: &Job, target: &Text, now: Time) {
    thread_local! {
        static ASKED: RefCell<HashSet<(Text, Text)>> = RefCell::default();
    }
    let is_new = |asked: &mut HashSet<_>| asked.len() < MAX_ASKED && asked.insert((job.name.clone(), target.clone()));
    if job.is_external() && ASKED.with_borrow_mut(is_new) {
        for (_, found) in target::limits(&job.name, std::slice::from_ref(target)) {
            let state = match found.standing(now) {
                Standing::Blocked(_) => "is blocked",
                Standing::Open(_) => "keeps failing",
                _ => continue,
            };
            let (job, target) = (&job.name, target.to_string());
            error::log::notice(format!(
                "target \"{target}\" of job \"{job}\" {state}, so its checks wait; awty.target says until when"
            ));
        }
    }
}

/// Sends a notice only once per session and job, because a trigger may schedule thousands of checks.
pub fn say_slot(job: &Job, slot: Time) {
    thread_local! {
        static SAID: RefCell<HashSet<Text>> = RefCell::default();
    }
    if SAID.with_borrow_mut(|said| said.insert(job.name.clone())) {
        let (slot, width) = (slot.format("%Y-%m-%d %H:%M:%S%:z"), Shown(job.options.limits.width.delta()));
        error::log::notice(format!("job \"{}\" runs at {slot}, because its slot is {width}", job.name));
    }
}

pub fn slot_of(job: &Job, time: Time, now: Time) -> Result<Time> {
    policy::schedule(time, &job.options.limits, now).map_err(|TooFar(horizon)| Error::TooFar {
        job: job.name.to_string(),
        time,
        horizon,
    })
}

fn due_time(args: &Args) -> Result<(Time, Option<TimeDelta>)> {
    let at = args.time(3, "at")?;
    let after = args.datum(4);
    match (at, after) {
        (Some(at), None) => Ok((at, None)),
        (None, Some(after)) => due_after(args, after).map(|(time, after)| (time, Some(after))),
        (both, _) => Err(Error::AtOrAfter { both: both.is_some() }),
    }
}

pub fn due_after(args: &Args, after: pg_sys::Datum) -> Result<(Time, TimeDelta)> {
    let duration = args.duration(4, "after").ok().flatten();
    if duration.is_none_or(|duration| duration.num_days().abs() > MAX_DAYS) {
        return Err(Error::OutOfRange { argument: "after" });
    }
    // SAFETY: the arguments are a timestamptz and an interval, as the function declares.
    let (start, then): (i64, TimestampWithTimeZone) = unsafe {
        let start = clock::transaction_start();
        let then = pgrx::direct_function_call(
            pg_sys::timestamptz_pl_interval,
            &[Some(pg_sys::Datum::from(start)), Some(after)],
        );
        (start, then.ok_or(Error::OutOfRange { argument: "after" })?)
    };
    let then: i64 = then.into();
    if then < start {
        return Err(Error::Negative { argument: "after" });
    }
    let time = clock::from_timestamp(then).ok_or(Error::OutOfRange { argument: "after" })?;
    Ok((time, TimeDelta::microseconds(then - start)))
}

fn write(check: &NewCheck, job: &Job, slot: Time, now: Time, on_conflict: OnConflict, entity: &Entity) -> Result<i64> {
    let mut inherited = None;
    for _ in 0..ROUNDS {
        if let Some(id) = future_job::insert(check, slot) {
            wakeup::count_written(1);
            if let Some(occurrence) = &inherited {
                inherit_occurrence(id, occurrence, slot);
            }
            return Ok(id);
        }
        let Some(pending) = future_job::lock(check) else { continue };
        match on_conflict.decide(pending.slot, slot) {
            Conflict::Keep => return Ok(pending.id),
            Conflict::Replace => {
                if job.repeats {
                    inherited = repetition::of_checks(&[pending.id]).pop();
                }
                wakeup::count_ended(1);
                history::end(&[pending.id], Outcome::Replaced, now, None);
            }
            Conflict::Refuse => {
                return Err(Error::AlreadyPending {
                    job: job.name.to_string(),
                    entity: entity.label(),
                    id: pending.id,
                });
            }
        }
    }
    Err(Error::Contended { job: job.name.to_string(), entity: entity.label() })
}

pub fn inherit_occurrence(id: i64, pending: &repetition::Pending, slot: Time) {
    let occurrence = pending.occurrence;
    let is_own = own_run::is_own(pending.check);
    let now = if is_own { occurrence.followed_at(slot) } else { occurrence.replaced_at(slot) };
    repetition::set_passed(id, now.passed);
    if pending.held {
        repetition::hold(id);
        hold::carry(&[(pending.repetition.id, pending.check)]);
    }
}
