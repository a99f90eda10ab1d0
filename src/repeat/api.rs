//! Invariant: a row of `awty_internal.repetition` and its check are written in one transaction.

use super::replaced;
use super::statements::repetition::{self, Definition, Existing, Pending, Subject};
use super::terms::{self, Arguments};
use crate::calendar;
use crate::call::args::Args;
use crate::call::argument_limits::{MAX_CALENDAR, MAX_ENTITY_KEY, MAX_ENTITY_NAME, MAX_JOB};
use crate::call::entity::Entity;
use crate::call::{own_checks, rights};
use crate::error::{self, Error, Result, quote};
use crate::pg::text::Text;
use crate::pg::zone::Local;
use crate::pg::{catalog, clock};
use crate::repeat;
use crate::shmem::wakeup;
use crate::store::job::{self, Job};
use crate::store::{future_job, hold};
use crate::{function, settings};
use awty_core::Time;
use awty_core::argument_limits::MAX_OCCURRENCES;
use awty_core::repeat::{Change, Plan, RepeatError, Repetition};
use pgrx::datum::TimestampWithTimeZone;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use std::rc::Rc;

const ROUNDS: u32 = 100;

#[pg_extern(sql = false)]
fn repeat(fcinfo: pg_sys::FunctionCallInfo) -> std::result::Result<Option<TimestampWithTimeZone>, ErrorReport> {
    Ok(repeat_job(&Args::new(fcinfo))?.and_then(clock::to_timestamptz))
}

#[pg_extern(sql = false)]
fn occurrences(
    fcinfo: pg_sys::FunctionCallInfo,
) -> std::result::Result<SetOfIterator<'static, TimestampWithTimeZone>, ErrorReport> {
    Ok(SetOfIterator::new(moments(&Args::new(fcinfo))?.into_iter().filter_map(clock::to_timestamptz)))
}

#[pg_extern(sql = false)]
fn coming(fcinfo: pg_sys::FunctionCallInfo) -> SetOfIterator<'static, TimestampWithTimeZone> {
    let moments = stored_moments(&Args::new(fcinfo)).unwrap_or_default();
    SetOfIterator::new(moments.into_iter().filter_map(clock::to_timestamptz))
}

fn stored_moments(args: &Args) -> Option<Vec<Time>> {
    let (rhythm, zone) = terms::stored(args)?;
    let calendar = args.optional_name(6, "calendar", MAX_CALENDAR).ok()?.and_then(|name| super::stored_calendar(&name));
    let plan = Plan::new(rhythm, zone, args.time(5, "starts").ok()?, None).within(calendar);
    let max = usize::try_from(args.get::<i32>(4)?).ok()?.min(usize::from(MAX_OCCURRENCES));
    let until = args.time(7, "until").ok()?.unwrap_or(Time::MAX_UTC);
    Some(listed(&plan, args.time(3, "after").ok()??, until, max))
}

/// Checks for interrupts between planned times, because the search for one time in a calendar may take milliseconds.
fn listed(plan: &Plan<Local>, after: Time, until: Time, max: usize) -> Vec<Time> {
    let interruptible = |_: &Time| {
        pgrx::check_for_interrupts!();
    };
    plan.moments_until(after, until).inspect(interruptible).take(max).collect()
}

#[pg_extern(sql = false)]
fn knows_zone(fcinfo: pg_sys::FunctionCallInfo) -> Option<bool> {
    terms::stored_zone(&Args::new(fcinfo), 0).map(|zone| zone.is_some())
}

fn moments(args: &Args) -> Result<Vec<Time>> {
    let calendar = args.optional_name(6, "calendar", MAX_CALENDAR)?;
    let calendar = calendar.map(|name| calendar::usable(&name)).transpose()?;
    let Arguments { rhythm, local, .. } = terms::read(args, 0, "", calendar.as_deref())?;
    let after = args.time(3, "after")?.ok_or(Error::Null { argument: "after" })?;
    let max = args.get::<i32>(4).ok_or(Error::Null { argument: "max" })?;
    let max = awty_core::repeat::check_max(i64::from(max)).map_err(|error| terms::refused(error, ""))?;
    let calendar = calendar.map(|known| Rc::clone(&known.calendar));
    let plan = Plan::new(rhythm, local, args.time(5, "starts")?, None).within(calendar);
    if plan.next(after).is_none() {
        let rhythm = plan.rhythm().to_string();
        let is_shut = plan.is_shut(after);
        let never = if is_shut { RepeatError::NeverOpen(rhythm) } else { RepeatError::NeverComes(rhythm) };
        return Err(terms::refused(never, ""));
    }
    Ok(listed(&plan, after, Time::MAX_UTC, max))
}

struct Call {
    job: Job,
    entity: Entity,
    subject: Subject,
    terms: Definition,
    plan: Repetition<Local>,
    now: Time,
    /// True if the job gets its first repetition. Then even a due check is replaced, because a worker that still knows
    /// the job without repetitions would not schedule the next check.
    is_first: bool,
}

fn repeat_job(args: &Args) -> Result<Option<Time>> {
    rights::gate("awty.repeat()")?;
    let name = args.name(0, "job", MAX_JOB)?;
    let label = name.to_string();
    let calendar = args.optional_name(11, "calendar", MAX_CALENDAR)?;
    let known = calendar.as_ref().map(calendar::usable).transpose()?;
    let Arguments { rhythm, local, mut terms } = terms::read(args, 1, &label, known.as_deref())?;
    let entity = Entity {
        name: args.name(4, "entity_name", MAX_ENTITY_NAME)?,
        key: args.optional_name(5, "entity_key", MAX_ENTITY_KEY)?.unwrap_or_else(|| name.clone()),
    };
    (terms.starts, terms.ends) = (args.time(6, "starts")?, args.time(7, "ends")?);
    terms.jitter = terms::length(args, 8, "jitter", &label)?;
    terms.catch_up = terms::length(args, 9, "catch_up", &label)?;
    let job_args = args.jsonb(10)?;

    let job = rights::schedulable_job(&name)?;
    own_checks::keep(&job, &entity.name)?;
    function::check(&job)?;
    terms.calendar.clone_from(&calendar);
    // Lock order: first the calendar, then the check, as in `awty.create_calendar()`.
    let known = calendar.map(|calendar| calendar::for_use(&calendar, job.role)).transpose()?;
    let calendar = known.map(|known| Rc::clone(&known.calendar));
    let now = clock::now();
    let (entity_name, entity_key) = (entity.name.to_string(), entity.key.to_string());
    let plan = repeat::repetition(
        &terms,
        rhythm,
        local,
        calendar,
        [&label, &entity_name, &entity_key],
        job.options.limits.width,
    );
    plan.plan.check(settings::slot(), now).map_err(|error| terms::refused(error, &label))?;
    let subject = Subject {
        job: job.name.clone(),
        entity_name: entity.name.clone(),
        entity_key: entity.key.clone(),
        args: job_args,
        repeated_by: catalog::current_role(),
        repeated_at: now,
    };
    let is_first = job::set_repeats(&job.name);
    let call = Call { job, entity, subject, terms, plan, now, is_first };
    let next = call.write()?;
    if let Some(next) = next {
        wakeup::at_commit(call.job.runner(), clock::to_timestamp(next));
        call.tell(next);
    }
    rights::warn_if_nothing_runs();
    Ok(next)
}

impl Call {
    fn write(&self) -> Result<Option<Time>> {
        for _ in 0..ROUNDS {
            if let Some(id) = repetition::insert(&self.subject, &self.terms) {
                return self.begin(id);
            }
            match self.pending() {
                Some(pending) => return Ok(self.change(&pending)),
                None => match self.find() {
                    Existing::Alone(id) if repetition::update(&self.subject, &self.terms) => return self.begin(id),
                    Existing::Alone(_) | Existing::Pending | Existing::Nothing => {}
                },
            }
        }
        Err(self.contended())
    }

    fn contended(&self) -> Error {
        Error::Contended { job: self.job.name.to_string(), entity: self.entity.label() }
    }

    fn find(&self) -> Existing {
        repetition::find(&self.entity.name, &self.entity.key, &self.job.name)
    }

    fn lock_check(&self) -> Option<i64> {
        future_job::lock_of(self.entity.name.datum(), self.entity.key.datum(), &self.job.name)
    }

    fn pending(&self) -> Option<Pending> {
        repetition::of_checks(&[self.lock_check()?]).pop()
    }

    fn begin(&self, id: i64) -> Result<Option<Time>> {
        let Some(slot) = self.plan.begin(self.now) else {
            repetition::remove(&[id]);
            return Ok(None);
        };
        let mut held = None;
        for _ in 0..ROUNDS {
            if repetition::schedule(&[(id, slot)], held.is_some(), self.now) > 0 {
                if let Some(check) = held {
                    hold::carry(&[(id, check)]);
                }
                wakeup::count_written(1);
                return Ok(Some(slot));
            }
            let Some(pending) = self.pending() else { continue };
            let check = &pending.occurrence.check;
            let is_due = pending.occurrence.first <= self.now || check.check_count > 0 || check.attempt > 0;
            if is_due && !self.is_first {
                return Ok(Some(check.slot));
            }
            held = pending.held.then_some(pending.check);
            replaced::end(&pending, self.now);
        }
        Err(self.contended())
    }

    fn change(&self, pending: &Pending) -> Option<Time> {
        let (stored, occurrence) = (&pending.repetition, &pending.occurrence);
        if stored.terms == self.terms && repetition::has_args(stored.id, self.subject.args) {
            return Some(occurrence.check.slot);
        }
        repetition::update(&self.subject, &self.terms);
        let change = match repeat::of(stored, self.job.options.limits.width) {
            Some(old) => old.replaced_by(&self.plan, occurrence, self.now),
            None if occurrence.first <= self.now => Change::Stays { passed: None },
            None => Change::Moves(self.plan.begin(self.now)),
        };
        let next = replaced::apply(pending, change, self.now);
        if next.is_none() {
            repetition::remove(&[stored.id]);
        }
        next
    }

    fn tell(&self, next: Time) {
        let when = terms::local_time(&self.terms.zone, next);
        let quoted = |text: &Text| quote(&text.to_string());
        let mut words = vec![quoted(&self.entity.name), quoted(&self.entity.key)];
        if self.entity.name.as_bytes() != b"job" {
            words.push(quoted(&self.job.name));
        }
        error::log::notice(format!("next at {when}; awty.cancel({}) ends it", words.join(", ")));
    }
}
