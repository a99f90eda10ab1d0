//! Invariant: a dry run leaves only changes of sequences behind, and locks no row.
//!
//! If the session's user is not the job's role, the function runs in a security-restricted operation, so that it cannot
//! use the rights of the session's user.

use super::statements::dry_run::{self, Trial};
use crate::call::args::Args;
use crate::call::argument_limits::MAX_JOB;
use crate::call::entity::Entity;
use crate::call::rights;
use crate::error::{self, Error, LeaseError, Result};
use crate::function;
use crate::pg::catch::Failure;
use crate::pg::subtransaction::undone;
use crate::pg::text::Text;
use crate::pg::{catalog, clock, sqlstate};
use crate::process::timer;
use crate::run::call::{Caller, ask};
use crate::store;
use crate::store::job::Job;
use crate::watch;
use crate::watch::statements::{alert, stop};
use awty_core::{After, Answer, Before, Check, Time, policy};
use pgrx::datum::TimestampWithTimeZone;
use pgrx::pg_sys;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

type Row = (
    Option<i64>,
    Text,
    Text,
    Text,
    Option<TimestampWithTimeZone>,
    Option<&'static str>,
    Option<TimestampWithTimeZone>,
    Option<String>,
    Option<String>,
);

#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn dry_run(
    fcinfo: pg_sys::FunctionCallInfo,
) -> std::result::Result<
    TableIterator<
        'static,
        (
            name!(id, Option<i64>),
            name!(job, Text),
            name!(entity_name, Text),
            name!(entity_key, Text),
            name!(slot, Option<TimestampWithTimeZone>),
            name!(outcome, Option<&'static str>),
            name!(next_check_at, Option<TimestampWithTimeZone>),
            name!(sqlstate, Option<String>),
            name!(message, Option<String>),
        ),
    >,
    ErrorReport,
> {
    Ok(TableIterator::once(try_check(&Args::new(fcinfo))?))
}

fn try_check(args: &Args) -> Result<Row> {
    rights::gate_trial("awty.dry_run()")?;
    rights::gate_write("awty.dry_run()")?;
    let entity = Entity::of(args)?;
    let job = rights::visible_job(&args.name(2, "job", MAX_JOB)?)?;
    if job.is_external() {
        return Err(LeaseError::NoFunction { job: job.name.to_string() }.into());
    }
    if catalog::current_role() != job.role {
        return Err(Error::OtherRole { job: job.name.to_string(), role: catalog::role_label(job.role) });
    }
    let job_args = args.jsonb(3)?;
    let now = clock::now();
    let (name, key) = (entity.name.datum(), entity.key.datum());
    let slot = job.options.limits.width.due(now, now);
    let trial = dry_run::pending(name, key, &job.name)
        .or_else(|| dry_run::imagined((name, key), &job.name, job_args, slot, catalog::current_role(), now))
        .ok_or_else(|| entity.missing(Some(&job.name)))?;
    say_quiet(&job, &entity, trial.held);
    let check = Check { slot: trial.check.slot.min(now), ..trial.check };
    let (fate, failure) = match policy::before(&check, &job.options.limits, Time::MIN_UTC, now) {
        Before::End(outcome) => (After::End(outcome), None),
        Before::Run | Before::Move(_) | Before::NotYet => run(&job, &trial, &check),
    };
    let timestamp = clock::to_timestamptz;
    let (outcome, next) = match fate {
        After::End(outcome) => (Some(outcome.as_str()), None),
        After::Again(slot) => (None, timestamp(slot)),
    };
    let cut = |text: &str| store::message(text).to_string();
    let (sqlstate, message) = failure.map(|failure| (failure.sqlstate, cut(&failure.message))).unzip();
    Ok((trial.id, job.name, entity.name, entity.key, timestamp(trial.check.slot), outcome, next, sqlstate, message))
}

fn say_quiet(job: &Job, entity: &Entity, held: bool) {
    if let Some(watched) = watch::hold::rule_of(job, &entity.name) {
        let (rule, keys) = (&watched.rule.name, std::slice::from_ref(&entity.key));
        if alert::open(rule, keys).iter().any(|open| open.alert.hold.is_some()) {
            error::log::notice(format!("the alert of {} is held, so a run does not tell it", entity.label()));
        }
        let is_stopped = |known: &stop::Known| known.clock.as_ref().is_some_and(|clock| clock.stops.since().is_some());
        if stop::read(rule, keys).iter().any(is_stopped) {
            error::log::notice(format!("the clock of {} is stopped, so a run raises no alert", entity.label()));
        }
    }
    if held {
        error::log::notice(format!("the check of job \"{}\" for {} is held", job.name, entity.label()));
    }
}

fn run(job: &Job, trial: &Trial, check: &Check) -> (After, Option<Failure>) {
    let limits = &job.options.limits;
    let answered = undone(|| {
        let function = function::of_job(job)?;
        let timeout = limits.timeout.to_std().unwrap_or_default();
        timer::arm_cancel(timeout);
        let caller = if catalog::is_alone(job.role) { Caller::Client } else { Caller::Confined };
        if caller == Caller::Confined {
            timer::arm_terminate(timeout);
        }
        let mut answers = ask(job, function, &[trial.row], caller)?;
        // If a run cancels or replaces its own check, the run counts as successful.
        Ok(if trial.is_changed() { Answer::Done } else { answers.pop().unwrap_or(Answer::Done) })
    });
    let struck = timer::disarm_cancel();
    let now = clock::now();
    match answered.and_then(|answered: std::result::Result<Answer, Failure>| answered) {
        Ok(answer) => (policy::after(check, limits, answer, now), None),
        Err(mut failure) => {
            let is_cancelled = failure.sqlstate == sqlstate::QUERY_CANCELED;
            if is_cancelled && !struck {
                error::cancelled(failure.message);
            }
            if is_cancelled {
                failure.message = crate::run::over_time(limits.timeout);
            }
            (policy::failed(check, limits, is_cancelled, now), Some(failure))
        }
    }
}
