//! `awty.allow()` and `awty.disallow()`.

use crate::call::args::Args;
use crate::call::argument_limits::MAX_JOB;
use crate::call::rights;
use crate::error::{Error, Result};
use crate::store::right;
use pgrx::pg_sys;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

#[pg_extern(sql = false)]
fn allow(fcinfo: pg_sys::FunctionCallInfo) -> std::result::Result<(), ErrorReport> {
    Ok(allow_role(&Args::new(fcinfo))?)
}

#[pg_extern(sql = false)]
fn disallow(fcinfo: pg_sys::FunctionCallInfo) -> std::result::Result<(), ErrorReport> {
    Ok(disallow_role(&Args::new(fcinfo))?)
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
