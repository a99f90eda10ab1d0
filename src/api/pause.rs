//! Implements `awty.pause()` and `awty.resume()`, which stop and restart the checks of a job.

use crate::call::args::{Args, calls};
use crate::call::argument_limits::{MAX_JOB, MAX_NOTE};
use crate::call::rights;
use crate::error::Result;
use crate::pg::{catalog, clock};
use crate::shmem::wakeup;
use crate::store::job;

calls! {
    fn pause -> () = |args| set_paused(args, "awty.pause()", true);
    fn resume -> () = |args| set_paused(args, "awty.resume()", false);
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
