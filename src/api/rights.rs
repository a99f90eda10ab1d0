//! Who may do what with which job.
//!
//! Invariant: the caller is the role whose rights the call runs with (`GetUserId()`), so that a SECURITY DEFINER function
//! schedules as its owner. Names of jobs are only suggested to those who may know of them.

use super::args::Args;
use crate::error::{self, Error, LeaseError, Result};
use crate::pg::catalog;
use crate::pg::clock::{self, Timestamp};
use crate::pg::relations::{self, Purpose};
use crate::pg::text::Text;
use crate::restore::Hold;
use crate::settings;
use crate::shmem::{self, State};
use crate::store::extension;
use crate::store::job::{self, Job};
use crate::store::origin;
use crate::store::right::{self, Readable, Right};
use awty_core::nearest;
use pgrx::pg_sys;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;

/// The gate for what a person says: refuses also where the library is not loaded, so that nothing would ever run.
pub fn gate(function: &'static str) -> Result<()> {
    if !shmem::is_present() {
        return Err(Error::NotPreloaded);
    }
    gate_write(function)
}

/// Refuses where nothing may be written, and keeps DROP EXTENSION out of what follows. What an application writes must not fail because
/// the library is not loaded.
pub fn gate_write(function: &'static str) -> Result<()> {
    gate_for(function, Purpose::Write)
}

/// The gate for what a worker outside says.
pub fn gate_lease(function: &'static str) -> Result<()> {
    if !shmem::is_present() {
        return Err(Error::NotPreloaded);
    }
    gate_for(function, Purpose::Lease)
}

fn gate_for(function: &'static str, purpose: Purpose) -> Result<()> {
    // SAFETY: plain getters.
    unsafe {
        if pg_sys::RecoveryInProgress() {
            return Err(Error::Standby { function });
        }
        if pg_sys::XactReadOnly {
            return Err(Error::ReadOnly { function });
        }
        if pg_sys::InSecurityRestrictedOperation() {
            return Err(Error::Restricted { function });
        }
    }
    // Without the extension, the next statement says what is missing.
    relations::lock(purpose);
    Ok(())
}

/// The job of that name.
pub fn job(name: &Text) -> Result<Job> {
    known(name, job::find(name))
}

fn known(name: &Text, found: Option<std::result::Result<Job, String>>) -> Result<Job> {
    match found {
        Some(Ok(job)) => Ok(job),
        Some(Err(message)) => Err(Error::BrokenJob { job: name.to_string(), message }),
        None => {
            let known = right::names_for(catalog::current_role());
            let wanted = name.to_string();
            // A role may have a right to this job that does not suffice here.
            let others = known.iter().map(String::as_str).filter(|name| *name != wanted);
            let nearest = nearest(&wanted, others).map(str::to_owned);
            Err(Error::UnknownJob { job: wanted, nearest })
        }
    }
}

/// Is the caller a member of the job's role?
pub fn owns(job: &Job) -> bool {
    catalog::can_become(catalog::current_role(), job.role)
}

/// May the caller schedule checks of this job?
pub fn may_schedule(job: &Job) -> bool {
    has_right(job, Right::Schedule)
}

/// May the caller claim checks of this job, and answer its leases?
pub fn may_claim(job: &Job) -> bool {
    has_right(job, Right::Claim)
}

/// May the caller know of this job?
pub fn may_read(job: &Job) -> bool {
    has_right(job, Right::Read)
}

fn has_right(job: &Job, right: Right) -> bool {
    has_right_as(catalog::current_role(), job, right)
}

fn has_right_as(caller: pg_sys::Oid, job: &Job, right: Right) -> bool {
    caller == job.role
        || catalog::can_become(caller, job.role)
        || right::granted(&job.name, right).into_iter().any(|role| catalog::can_become(caller, role))
}

/// `awty_internal.has_right`: has that role that right to the job now, whatever the snapshot of the transaction shows? The current user
/// may ask about roles that it can become.
#[pg_extern(sql = false)]
fn role_has_right(fcinfo: pg_sys::FunctionCallInfo) -> std::result::Result<bool, ErrorReport> {
    let args = Args::new(fcinfo);
    let (Some(role), Some(job)) = (args.get::<pg_sys::Oid>(0), args.get::<Text>(1)) else { return Ok(false) };
    let right = args.choice(2, "right", "read, schedule or claim")?.ok_or(Error::Null { argument: "right" })?;
    relations::lock(Purpose::Read);
    let Some(Ok(job)) = job::find(&job) else { return Ok(false) };
    Ok(catalog::can_become(catalog::current_role(), role) && has_right_as(role, &job, right))
}

/// `awty_internal.readable`: the jobs that the caller may read, each with its role and with the caller's other rights. A policy calls it once
/// for each table of a statement. A name is returned as bytes, because a text of pgrx is always UTF-8; bytes are stored in the same way.
#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn readable() -> TableIterator<
    'static,
    (name!(job, Vec<u8>), name!(role, pg_sys::Oid), name!(may_schedule, bool), name!(may_claim, bool)),
> {
    let caller = catalog::current_role();
    // Many jobs have few roles.
    let known = RefCell::<HashMap<pg_sys::Oid, bool>>::default();
    let may_be = |role| *known.borrow_mut().entry(role).or_insert_with(|| catalog::can_become(caller, role));
    let jobs = right::readable(may_be);
    TableIterator::new(jobs.into_iter().map(|found| {
        let Readable { job, role, may_schedule, may_claim } = found;
        (job.as_bytes().to_vec(), role, may_schedule, may_claim)
    }))
}

/// The job of that name, if the caller is a member of its role; locked first, and judged as it is then.
pub fn own_job(name: &Text) -> Result<Job> {
    let job = known(name, job::lock(name))?;
    if owns(&job) { Ok(job) } else { Err(Error::NotOwner { job: job.name.to_string() }) }
}

/// The job of that name, if the caller may know of it; otherwise it does not exist.
pub fn visible_job(name: &Text) -> Result<Job> {
    let job = job(name)?;
    if may_read(&job) { Ok(job) } else { known(name, None) }
}

/// The job of that name, if the caller may schedule checks of it.
pub fn schedulable_job(name: &Text) -> Result<Job> {
    let job = job(name)?;
    if may_schedule(&job) {
        return Ok(job);
    }
    Err(Error::NotAllowed { job: job.name.to_string(), role: catalog::role_label(catalog::current_role()) })
}

/// The job of that name, if the caller may claim checks of it, and if they can be claimed.
pub fn claimable_job(name: &Text) -> Result<Job> {
    let job = job(name)?;
    if !may_claim(&job) {
        let role = catalog::role_label(catalog::current_role());
        return Err(LeaseError::NotClaimer { job: job.name.to_string(), role }.into());
    }
    if !job.is_outside() {
        return Err(LeaseError::HasFunction { job: job.name.to_string() }.into());
    }
    Ok(job)
}

thread_local! {
    /// What this session last found: at which count of adoptions, and whether the database was held.
    static HELD: Cell<Option<(u64, Option<Hold>)>> = const { Cell::new(None) };
    /// The client's statement that was last warned: one is enough for a statement that schedules many checks.
    static WARNED: Cell<Timestamp> = const { Cell::new(0) };
}

/// Warns in a restored or cloned database that nothing will run before it is adopted, and where the library does not work with the SQL.
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
    if let Some(why) = held
        && !settings::auto_adopt()
        && WARNED.replace(clock::statement_start()) != clock::statement_start()
    {
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
