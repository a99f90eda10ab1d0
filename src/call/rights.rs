//! Invariant: the caller is the role of `GetUserId()`, so a SECURITY DEFINER function schedules checks as its owner.
//!
//! Invariant: an error names a job only to roles that may see the job.

use super::args::Args;
use super::caller::{self, Caller};
use crate::error::{self, Error, LeaseError, Result, TravelError};
use crate::pg::catalog;
use crate::pg::clock::{self, Timestamp};
use crate::pg::relations::{self, Purpose};
use crate::pg::text::Text;
use crate::restore::Hold;
use crate::settings;
use crate::shmem::{self, State, wakeup};
use crate::store::job::{self, Job};
use crate::store::right::{self, Granted, Right};
use crate::store::{extension, origin};
use awty_core::nearest;
use pgrx::pg_sys;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;

const MAX_LISTED: usize = 10_000;

/// Refuses the call if the library is not preloaded, because then no worker runs checks.
pub fn gate(function: &'static str) -> Result<()> {
    if !shmem::is_present() {
        return Err(Error::NotPreloaded);
    }
    gate_write(function)
}

/// Accepts the call even if the library is not preloaded, because an application's writes must not fail.
pub fn gate_write(function: &'static str) -> Result<()> {
    gate_for(function, Purpose::Write)
}

pub fn gate_lease(function: &'static str) -> Result<()> {
    if !shmem::is_present() {
        return Err(Error::NotPreloaded);
    }
    gate_for(function, Purpose::Lease)
}

/// Refuses a dry run within a run, because the end of the dry run would stop the run's timer.
pub fn gate_trial(function: &'static str) -> Result<()> {
    if caller::of_function().is_some() { Err(TravelError::WithinRun { function }.into()) } else { Ok(()) }
}

fn gate_for(function: &'static str, purpose: Purpose) -> Result<()> {
    // SAFETY: the calls only read variables.
    unsafe {
        if pg_sys::RecoveryInProgress() {
            return Err(Error::Standby { function });
        }
        if pg_sys::XactReadOnly {
            return Err(Error::ReadOnly { function });
        }
        // A dry run may call the function, because the dry run undoes the function's changes.
        if pg_sys::InSecurityRestrictedOperation() && caller::of_function() != Some(Caller::Confined) {
            return Err(Error::Restricted { function });
        }
    }
    relations::lock(purpose);
    Ok(())
}

pub fn job(name: &Text) -> Result<Job> {
    known(name, job::find(name))
}

fn known(name: &Text, found: Option<std::result::Result<Job, String>>) -> Result<Job> {
    match found {
        Some(Ok(job)) => Ok(job),
        Some(Err(message)) => Err(Error::BrokenJob { job: name.to_string(), message }),
        None => {
            let known: Vec<String> = readable_by(catalog::current_role()).map(|job| job.job.to_string()).collect();
            let wanted = name.to_string();
            let nearest = nearest(&wanted, known.iter().map(String::as_str)).map(str::to_owned);
            Err(Error::UnknownJob { job: wanted, nearest })
        }
    }
}

pub fn owns(job: &Job) -> bool {
    catalog::can_become(catalog::current_role(), job.role)
}

pub fn may_schedule(job: &Job) -> bool {
    has_right(job, Right::Schedule)
}

pub fn may_claim(job: &Job) -> bool {
    has_right(job, Right::Claim)
}

pub fn may_read(job: &Job) -> bool {
    has_right(job, Right::Read)
}

fn has_right(job: &Job, right: Right) -> bool {
    has_right_as(catalog::current_role(), job, right)
}

fn has_right_as(caller: pg_sys::Oid, job: &Job, right: Right) -> bool {
    let may_be = |role| caller == role || catalog::can_become(caller, role);
    may_be(job.role) || right::granted(&job.name).is_some_and(|granted| granted.has(right, may_be))
}

fn membership_of(caller: pg_sys::Oid) -> impl Fn(pg_sys::Oid) -> bool {
    let known = RefCell::<HashMap<pg_sys::Oid, bool>>::default();
    move |role| *known.borrow_mut().entry(role).or_insert_with(|| catalog::can_become(caller, role))
}

fn readable_by(caller: pg_sys::Oid) -> impl Iterator<Item = Granted> {
    let may_be = membership_of(caller);
    right::all().into_iter().filter(move |job| job.has(Right::Read, &may_be)).take(MAX_LISTED)
}

#[pg_extern(sql = false)]
fn role_has_right(fcinfo: pg_sys::FunctionCallInfo) -> std::result::Result<bool, ErrorReport> {
    let args = Args::new(fcinfo);
    let (Some(role), Some(job)) = (args.get::<pg_sys::Oid>(0), args.get::<Text>(1)) else { return Ok(false) };
    let right = args.choice(2, "right", "read, schedule or claim")?.ok_or(Error::Null { argument: "right" })?;
    relations::lock(Purpose::Read);
    let Some(Ok(job)) = job::find(&job) else { return Ok(false) };
    let is_as_shown = args.get::<pg_sys::Oid>(3) == Some(job.role);
    Ok(is_as_shown && catalog::can_become(catalog::current_role(), role) && has_right_as(role, &job, right))
}

/// Like [`role_has_right`]. If the role has the right, also keeps the job's name from other roles until the transaction
/// ends.
#[pg_extern(sql = false)]
fn role_keeps_right(fcinfo: pg_sys::FunctionCallInfo) -> std::result::Result<bool, ErrorReport> {
    gate_write("awty_internal.keep_right()")?;
    let Some(name) = Args::new(fcinfo).get::<Text>(1) else { return Ok(false) };
    if !role_has_right(fcinfo)? {
        return Ok(false);
    }
    let judge = || role_has_right(fcinfo).map_err(Some)?.then_some(()).ok_or(None);
    match job::sharing_name(&name, judge) {
        Err(Some(error)) => Err(error),
        judged => Ok(judged.is_ok()),
    }
}

/// Job names are bytes, because the database may not use UTF-8.
#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn readable() -> TableIterator<
    'static,
    (name!(job, Vec<u8>), name!(role, pg_sys::Oid), name!(may_schedule, bool), name!(may_claim, bool)),
> {
    let may_be = membership_of(catalog::current_role());
    let jobs = right::all().into_iter().filter(|job| job.has(Right::Read, &may_be));
    let rows = jobs.map(|job| {
        let (may_schedule, may_claim) = (job.has(Right::Schedule, &may_be), job.has(Right::Claim, &may_be));
        (job.job.as_bytes().to_vec(), job.role, may_schedule, may_claim)
    });
    TableIterator::new(rows.collect::<Vec<_>>())
}

/// Checks the caller's right before and after it locks the job. The first check keeps callers without the right from
/// locking the job. The second check is needed because the job's role may have changed.
pub fn own_job(name: &Text) -> Result<Job> {
    own_job_for(name, None)
}

/// Like [`own_job`]. If `role` is another role than the job's role, also takes the job's name, and waits for open claims
/// of the former role. Claims of the new role would wait for them too.
pub fn own_job_for(name: &Text, role: Option<pg_sys::Oid>) -> Result<Job> {
    let judge = |job: Job| {
        if !owns(&job) {
            return Err(Error::NotOwner { job: job.name.to_string() });
        }
        if role.is_some_and(|role| role != job.role) {
            job::take_name(name);
            if job.is_external() {
                job::take_claims(name);
            }
        }
        Ok(job)
    };
    judge(job(name)?)?;
    judge(known(name, job::lock(name))?)
}

/// Stores the job. If the job gets another role, the right of the former role from `awty.allow()` ends, as a change of
/// a table's owner ends the rights of the former owner. Other rights stay, because the caller can become both roles.
pub fn update(former: pg_sys::Oid, job: &Job) {
    if job.role != former && right::set_right(&job.name, former, None) {
        let role = catalog::role_label(former);
        error::log::notice(format!("the right of \"{role}\" to job \"{}\" has ended", job.name));
    }
    job::update(job);
}

/// Returns the same error for a missing job as for an invisible one.
pub fn visible_job(name: &Text) -> Result<Job> {
    let job = job(name)?;
    if may_read(&job) { Ok(job) } else { known(name, None) }
}

/// Also keeps the job's name from other roles until the transaction ends. Like [`own_job`], checks the right before and
/// after it locks the name.
pub fn schedulable_job(name: &Text) -> Result<Job> {
    let judge = |job: Job| {
        if may_schedule(&job) {
            return Ok(job);
        }
        Err(Error::NotAllowed { job: job.name.to_string(), role: catalog::role_label(catalog::current_role()) })
    };
    judge(job(name)?)?;
    job::sharing_name(name, || judge(job(name)?))
}

/// Returns the job if `may` accepts it. Then also keeps its name from other roles until the transaction ends.
pub fn shared_job(name: &Text, may: impl Fn(&Job) -> bool) -> Option<Job> {
    let find = || job::find(name)?.ok().filter(&may);
    find()?;
    job::sharing_name(name, || find().ok_or(())).ok()
}

pub fn claimable_job(name: &Text) -> Result<Job> {
    let job = job(name)?;
    if !may_claim(&job) {
        let role = catalog::role_label(catalog::current_role());
        return Err(LeaseError::NotClaimer { job: job.name.to_string(), role }.into());
    }
    if !job.is_external() {
        return Err(LeaseError::HasFunction { job: job.name.to_string() }.into());
    }
    Ok(job)
}

thread_local! {
    static HELD: Cell<Option<(u64, Option<Hold>)>> = const { Cell::new(None) };
    /// Start time of the last statement with a warning that no checks run. Each statement gives the warning only once.
    static WARNED: Cell<Timestamp> = const { Cell::new(0) };
}

pub fn warn_if_nothing_runs() {
    if !shmem::is_present() {
        return warn_once_of_no_library();
    }
    let here = catalog::database();
    let (adoptions, state) = shmem::read(|shared| (shared.adoptions, shared.database(here).map(|line| line.state)));
    if let Some(State::Unserved(_)) = state
        && let Some(unserved) = extension::unserved()
    {
        Error::Unserved { installed: extension::installed(), unserved }.warn();
    }
    let held = match HELD.get() {
        Some((then, held)) if then == adoptions => held,
        _ => {
            let held = origin::stored_hold();
            HELD.set(Some((adoptions, held)));
            held
        }
    };
    let Some(why) = held else { return };
    if settings::auto_adopt() {
        // Requests an inspection, because only an inspection tells the launcher that the database is a copy.
        if state != Some(State::Ready) {
            wakeup::inspect_at_commit(false);
        }
    } else if WARNED.replace(clock::statement_start()) != clock::statement_start() {
        error::log::database_held(&catalog::database_name(), why);
    }
}

fn warn_once_of_no_library() {
    thread_local! {
        static WARNED: Cell<bool> = const { Cell::new(false) };
    }
    if !WARNED.replace(true) {
        Error::NothingRuns.warn();
    }
}
