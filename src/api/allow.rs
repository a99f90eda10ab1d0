use crate::call::args::{Args, calls};
use crate::call::argument_limits::MAX_JOB;
use crate::call::rights;
use crate::error::{Error, Result};
use crate::pg::subtransaction::kept_if_ok;
use crate::store::right;

calls! {
    fn allow -> () = |args| kept_if_ok(|| allow_role(args));
    fn disallow -> () = |args| kept_if_ok(|| disallow_role(args));
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
