//! `awty.travel()` moves a transaction's clock ahead for a test, and runs the checks that become due.
//!
//! Invariant: a transaction with `awty.travel()` cannot commit. Only jobs of the session's role run, so awty never
//! switches roles.

use super::statements::travel::{self, DueCheck, End};
use crate::call::args::Args;
use crate::call::own_checks::{BACKFILL, SWEEP};
use crate::call::rights;
use crate::error::{self, Error, Result, TravelError};
use crate::figures::account::Account;
use crate::pg::catch::Failure;
use crate::pg::subtransaction::kept;
use crate::pg::text::Text;
use crate::pg::{catalog, clock, snapshot, sqlstate};
use crate::process::timer;
use crate::quiet;
use crate::repeat::own_run;
use crate::run::book::{self, Timing};
use crate::run::call::{Caller, ask};
use crate::store::check_row::{Row, Table};
use crate::store::job::{self, Job};
use crate::{function, settings};
use awty_core::{After, Answer, KeepHistory, Mono, Time};
use chrono::TimeDelta;
use pgrx::datum::TimestampWithTimeZone;
use pgrx::pg_sys;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use pgrx::{PgSubXactCallbackEvent, PgXactCallbackEvent, register_subxact_callback, register_xact_callback};
use std::cell::{Cell, RefCell};

const MAX_RUNS: u32 = 100_000;

thread_local! {
    static RUNS: Cell<Option<u32>> = const { Cell::new(None) };
    static JOURNEYS: RefCell<Vec<(pg_sys::SubTransactionId, (i64, clock::Timestamp))>> = const { RefCell::new(Vec::new()) };
}

#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn travel(
    fcinfo: pg_sys::FunctionCallInfo,
) -> std::result::Result<
    TableIterator<
        'static,
        (
            name!(id, i64),
            name!(job, Text),
            name!(entity_name, Text),
            name!(entity_key, Text),
            name!(slot, Option<TimestampWithTimeZone>),
            name!(outcome, Option<Text>),
            name!(next_check_at, Option<TimestampWithTimeZone>),
            name!(sqlstate, Option<String>),
            name!(message, Option<String>),
        ),
    >,
    ErrorReport,
> {
    // Leaves out awty's own maintenance checks, because these checks belong to no entity.
    let is_entity =
        |ran: &TravelledRun| ![BACKFILL, SWEEP].map(str::as_bytes).contains(&ran.due.entity_name.as_bytes());
    let rows = go(&Args::new(fcinfo))?;
    Ok(TableIterator::new(rows.into_iter().filter(is_entity).map(|ran| {
        let TravelledRun { due, end, failure } = ran;
        let timestamp = clock::to_timestamptz;
        let (sqlstate, message) = failure.map(|failure| (failure.sqlstate, failure.message)).unzip();
        let (slot, next) = (timestamp(due.slot), end.next_check_at.and_then(timestamp));
        (due.id, due.job, due.entity_name, due.entity_key, slot, end.outcome, next, sqlstate, message)
    })))
}

#[pg_extern(sql = false)]
fn now(fcinfo: pg_sys::FunctionCallInfo) -> Option<TimestampWithTimeZone> {
    let _ = Args::new(fcinfo);
    TimestampWithTimeZone::try_from(clock::transaction_start()).ok()
}

struct TravelledRun {
    due: DueCheck,
    end: End,
    failure: Option<Failure>,
}

fn go(args: &Args) -> Result<Vec<TravelledRun>> {
    const FUNCTION: &str = "awty.travel()";
    rights::gate_trial(FUNCTION)?;
    rights::gate(FUNCTION)?;
    if !settings::time_travel() {
        return Err(TravelError::Off.into());
    }
    let ahead = args.duration(0, "ahead")?.ok_or(Error::Null { argument: "ahead" })?;
    let max = args.get::<i32>(1).ok_or(Error::Null { argument: "max" })?;
    if ahead < TimeDelta::zero() {
        return Err(Error::Negative { argument: "ahead" });
    }
    let max = usize::try_from(max).ok().filter(|max| *max > 0).ok_or(TravelError::NotPositive { argument: "max" })?;
    let goal = clock::now().checked_add_signed(ahead).ok_or(Error::DurationOutOfRange { argument: "ahead" })?;
    begin();
    let (mut ran, mut left) = (Vec::new(), Vec::new());
    let role = catalog::current_role();
    // Each search starts at the last due time, so that it does not read the dead rows of ended checks again.
    let mut from = Time::UNIX_EPOCH;
    let mut ended = Time::UNIX_EPOCH;
    let first = |from, left: &[i64]| travel::first(role, from, goal, left);
    while catalog::is_alone(role) {
        let next = first(from, &left).or_else(|| first(Time::UNIX_EPOCH, &left));
        let until = next.as_ref().map_or(goal, |(_, slot)| *slot);
        if let Some(end) = quiet::first_end(role, ended).filter(|end| *end <= until) {
            clock::travel_to(end.max(clock::now()));
            quiet::end_passed(role, clock::now());
            (ended, from) = (end, Time::UNIX_EPOCH);
            continue;
        }
        let Some((name, slot)) = next else { break };
        from = slot;
        if ran.len() >= max {
            return Ok(ran);
        }
        clock::travel_to(slot.max(clock::now()));
        let Some(Ok(job)) = job::find(&name) else { break };
        let most = if job.set_based { settings::batch_size().min(max - ran.len()) } else { 1 };
        let checks = travel::of_slot(&name, slot, most, &left);
        left.extend(run(&job, checks, &mut ran)?);
    }
    clock::travel_to(goal.max(clock::now()));
    Ok(ran)
}

/// Stores how far the clock is ahead, so that ROLLBACK TO SAVEPOINT can restore it.
fn begin() {
    // SAFETY: the function only reads this process's transaction state.
    let here = unsafe { pg_sys::GetCurrentSubTransactionId() };
    JOURNEYS.with_borrow_mut(|journeys| journeys.push((here, clock::ahead())));
    if RUNS.get().is_some() {
        return;
    }
    RUNS.set(Some(0));
    for event in [PgXactCallbackEvent::PreCommit, PgXactCallbackEvent::PrePrepare] {
        register_xact_callback(event, || Error::from(TravelError::Travelled).raise());
    }
    register_xact_callback(PgXactCallbackEvent::Abort, || {
        RUNS.set(None);
        JOURNEYS.take();
        clock::set_ahead((0, 0));
    });
    register_subxact_callback(PgSubXactCallbackEvent::AbortSub, |undone, _| come_back(undone));
}

/// Sets the simulated clock back to its time before the undone subtransaction. Nested subtransactions have higher ids,
/// so their changes of the clock are undone too.
fn come_back(undone: pg_sys::SubTransactionId) {
    JOURNEYS.with_borrow_mut(|journeys| {
        let kept = journeys.partition_point(|(of, _)| *of < undone);
        if let Some((_, clock)) = journeys.get(kept) {
            clock::set_ahead(*clock);
        }
        journeys.truncate(kept);
    });
}

fn run(job: &Job, checks: Vec<DueCheck>, ran: &mut Vec<TravelledRun>) -> Result<Vec<i64>> {
    let count = RUNS.get().unwrap_or(0) + 1;
    if count > MAX_RUNS {
        return Err(TravelError::TooMany { max: MAX_RUNS }.into());
    }
    RUNS.set(Some(count));
    let (began, started_at) = (clock::mono(), clock::now());
    let mut kept_job = job.clone();
    kept_job.options.limits.keep_history = KeepHistory::All;
    let ids: Vec<i64> = checks.iter().map(|due| due.id).collect();
    let attempted = kept(|| attempt(&kept_job, &ids, began, started_at));
    let struck = timer::disarm_cancel();
    match attempted {
        Ok(Some(fates)) => {
            ran.extend(checks.into_iter().map(|due| TravelledRun { end: end_of(due.id, &fates), due, failure: None }));
            Ok(Vec::new())
        }
        _ if checks.len() > 1 => {
            let mut first = checks;
            let second = first.split_off(first.len() / 2);
            let mut left = run(job, first, ran)?;
            left.extend(run(job, second, ran)?);
            Ok(left)
        }
        Ok(None) => Ok(ids),
        Err(mut failure) => {
            let timed_out = failure.sqlstate == sqlstate::QUERY_CANCELED;
            if timed_out && !struck {
                error::cancelled(failure.message);
            }
            if timed_out {
                failure.message = crate::run::over_time(job.options.limits.timeout);
            }
            let booked = kept(|| book_failure(&kept_job, ids[0], &failure, timed_out, began, started_at));
            let Ok(Some(fates)) = booked else { return Ok(ids) };
            ran.extend(checks.into_iter().map(|due| TravelledRun {
                end: end_of(due.id, &fates),
                due,
                failure: Some(failure.clone()),
            }));
            Ok(Vec::new())
        }
    }
}

/// If `fates` has no entry, reads the check's end from the tables. The check has then ended without a run, or its
/// function replaced or cancelled the check.
fn end_of(id: i64, fates: &Fates) -> End {
    match fates.iter().find(|(check, _)| *check == id) {
        Some((_, After::Again(slot))) => End { outcome: None, next_check_at: Some(*slot) },
        Some((_, After::End(outcome))) => End { outcome: Some(outcome.as_str().into()), next_check_at: None },
        None => travel::end(id).unwrap_or_default(),
    }
}

type Fates = Vec<(i64, After)>;

fn attempt(job: &Job, ids: &[i64], began: Mono, started_at: Time) -> std::result::Result<Option<Fates>, Failure> {
    snapshot::with_new(|| {
        let Some(table) = Table::open_to_travel() else { return Ok(None) };
        let rows: Vec<Row> = ids.iter().filter_map(|id| table.read(*id)).collect();
        let mut account = Account::by_check();
        let Ok(rows) = book::apply_guards(&table, job, rows, Time::MIN_UTC, started_at, &mut account) else {
            return Ok(None);
        };
        if rows.is_empty() {
            return Ok(Some(account.fates()));
        }
        let datums: Vec<pg_sys::Datum> = rows.iter().map(|row| row.datum).collect();
        let own = rows.iter().map(|row| row.id).collect();
        let function = function::of_job(job)?;
        timer::arm_cancel(job.options.limits.timeout.to_std().unwrap_or_default());
        let answers: Vec<Answer> = own_run::during(own, || ask(job, function, &datums, Caller::Client))?;
        let timing = timing(began, started_at);
        let booked = book::answers(&table, job, rows.into_iter().zip(answers), &timing, true, &mut account);
        Ok(booked.is_ok().then(|| account.fates()))
    })
}

fn book_failure(
    job: &Job,
    id: i64,
    failure: &Failure,
    timed_out: bool,
    began: Mono,
    started_at: Time,
) -> std::result::Result<Option<Fates>, Failure> {
    snapshot::with_new(|| {
        let Some(table) = Table::open_to_travel() else { return Ok(None) };
        let Some(row) = table.read(id) else { return Ok(None) };
        let (mut account, timing) = (Account::by_check(), timing(began, started_at));
        let booked = book::failure(&table, job, &row, failure, timed_out.into(), &timing, &mut account);
        Ok(booked.is_ok().then(|| account.fates()))
    })
}

fn timing(began: Mono, started_at: Time) -> Timing {
    let run_time = clock::delta_of(clock::mono().since(began));
    Timing { started_at, finished_at: clock::now(), run_time }
}
