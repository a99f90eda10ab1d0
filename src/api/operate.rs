//! An operator's functions for jobs and restored databases: `awty.pause()`, `awty.resume()`, `awty.allow()`,
//! `awty.disallow()` and `awty.adopt()`.

use crate::call::args::Args;
use crate::call::argument_limits::{MAX_JOB, MAX_NOTE};
use crate::call::rights;
use crate::error::{self, Error, Result};
use crate::pg::{catalog, clock};
use crate::shmem::wakeup;
use crate::store::{job, origin, right};
use crate::watch::statements::{rule, rule_function};
use pgrx::pg_sys;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

#[pg_extern(sql = false)]
fn pause(fcinfo: pg_sys::FunctionCallInfo) -> std::result::Result<(), ErrorReport> {
    Ok(set_paused(&Args::new(fcinfo), "awty.pause()", true)?)
}

#[pg_extern(sql = false)]
fn resume(fcinfo: pg_sys::FunctionCallInfo) -> std::result::Result<(), ErrorReport> {
    Ok(set_paused(&Args::new(fcinfo), "awty.resume()", false)?)
}

#[pg_extern(sql = false)]
fn allow(fcinfo: pg_sys::FunctionCallInfo) -> std::result::Result<(), ErrorReport> {
    Ok(allow_role(&Args::new(fcinfo))?)
}

#[pg_extern(sql = false)]
fn disallow(fcinfo: pg_sys::FunctionCallInfo) -> std::result::Result<(), ErrorReport> {
    Ok(disallow_role(&Args::new(fcinfo))?)
}

#[pg_extern(sql = false)]
fn adopt(fcinfo: pg_sys::FunctionCallInfo) -> std::result::Result<(), ErrorReport> {
    let _ = Args::new(fcinfo);
    Ok(adopt_database()?)
}

fn set_paused(args: &Args, function: &'static str, paused: bool) -> Result<()> {
    rights::gate_write(function)?;
    let job = rights::own_job(&args.name(0, "job", MAX_JOB)?)?;
    let note = if paused { args.optional_name(1, "note", MAX_NOTE)? } else { None };
    if job::set_paused(&job.name, paused, note.as_ref(), catalog::current_role(), clock::now()) {
        wakeup::inspect_at_commit(false);
    }
    Ok(())
}

fn allow_role(args: &Args) -> Result<()> {
    rights::gate("awty.allow()")?;
    let job = rights::own_job(&args.name(0, "job", MAX_JOB)?)?;
    let role = args.role(1, "role")?;
    let right = args.choice(2, "right", "read, schedule, claim")?.ok_or(Error::Null { argument: "right" })?;
    right::set_right(&job.name, role, Some(right));
    Ok(())
}

fn disallow_role(args: &Args) -> Result<()> {
    rights::gate("awty.disallow()")?;
    let job = rights::own_job(&args.name(0, "job", MAX_JOB)?)?;
    right::set_right(&job.name, args.role(1, "role")?, None);
    Ok(())
}

/// Declares that this restored or cloned database runs its checks itself.
fn adopt_database() -> Result<()> {
    rights::gate("awty.adopt()")?;
    if !catalog::owns_database(catalog::current_role()) {
        return Err(Error::NotDatabaseOwner { database: catalog::database_name() });
    }
    if !origin::adopt() {
        error::log::notice(format!("database \"{}\" runs its own checks already", catalog::database_name()));
    }
    rule::sweep_all();
    rule_function::forget_oids();
    wakeup::inspect_at_commit(true);
    Ok(())
}
