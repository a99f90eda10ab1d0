use super::hold::planned_end;
use crate::call::args::{Args, calls};
use crate::call::argument_limits::{MAX_JOB, MAX_NOTE};
use crate::call::rights;
use crate::error::Result;
use crate::pg::subtransaction::kept_if_ok;
use crate::pg::{catalog, clock};
use crate::shmem::wakeup;
use crate::store::job::{self, Job, Pause};

calls! {
    fn pause -> () = |args| kept_if_ok(|| pause_job(args));
    fn resume -> () = |args| kept_if_ok(|| resume_job(args));
}

fn pause_job(args: &Args) -> Result<()> {
    let job = own_job(args, "awty.pause()")?;
    let note = args.optional_name(1, "note", MAX_NOTE)?;
    let until = planned_end(args, 2, "paused_until", &job)?;
    set(&job, Some(&Pause { by: catalog::current_role(), note, until }));
    if let Some(until) = until {
        wakeup::end_at_commit(until);
    }
    Ok(())
}

fn resume_job(args: &Args) -> Result<()> {
    let job = own_job(args, "awty.resume()")?;
    set(&job, None);
    Ok(())
}

fn own_job(args: &Args, function: &'static str) -> Result<Job> {
    rights::gate_write(function)?;
    rights::own_job(&args.name(0, "job", MAX_JOB)?)
}

fn set(job: &Job, pause: Option<&Pause>) {
    if job::set_paused(&job.name, pause, clock::now()) {
        wakeup::inspect_at_commit(false);
    }
}
