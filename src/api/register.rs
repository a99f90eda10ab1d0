use crate::call::args::{Args, calls};
use crate::call::argument_limits::{MAX_CHANNEL, MAX_COMMAND, MAX_FUNCTION, MAX_JOB};
use crate::call::options::{options, refuse_external, reset};
use crate::call::run_as::{check_quota, run_as};
use crate::call::{own_checks, rights};
use crate::error::{self, Error, LeaseError, Result, WatchError};
use crate::function::{self, Signature};
use crate::lease::statements::lease;
use crate::pg::subtransaction::kept_if_ok;
use crate::pg::text::Text;
use crate::pg::{catalog, clock};
use crate::rule::statements::rule;
use crate::shmem::wakeup;
use crate::store::job::{self, Job};
use crate::store::job_option::Options;
use crate::store::left;
use crate::store::origin;
use crate::{settings, watch};
use pgrx::pg_sys;

calls! {
    fn register -> () = |args| kept_if_ok(|| register_job(args));
    fn alter -> () = |args| kept_if_ok(|| alter_job(args));
    fn unregister -> i64 = |args| kept_if_ok(|| unregister_job(args));
}

fn register_job(args: &Args) -> Result<()> {
    rights::gate("awty.register()")?;
    let name = args.name(0, "job", MAX_JOB)?;
    let function = function_name(args, &name)?;
    let options = options(args, Options::defaults(settings::slot()), true)?;
    let role = run_as(args.optional_role(11)?, function.is_some())?;
    let replace = args.get::<bool>(16).unwrap_or(false);
    let registered_by = catalog::current_role();
    let (schema, function, set_based) = match function {
        Some(function) => {
            refuse_external(&options)?;
            let (schema, function) = function::parse(&function, &function::of_jobs())?;
            let set_based = is_set_based(&schema, &function, role, registered_by)?;
            (schema, function, set_based)
        }
        None => (Text::from(""), Text::from(""), false),
    };
    let notify = args.optional_name(12, "notify", MAX_CHANNEL)?;
    let repeats = false;
    let job = Job {
        name,
        schema,
        function,
        role,
        set_based,
        options,
        paused: false,
        resumed_at: None,
        registered_by,
        notify,
        repeats,
    };
    if !write(&job, replace)? {
        return Ok(());
    }
    say_role(&job);
    if job.is_external() {
        error::log::notice(format!("job \"{}\" has no function: external workers claim its checks", job.name));
    }
    wakeup::inspect_at_commit(false);
    Ok(())
}

/// Refuses to give a job a function while external workers lease its checks, because background workers could then run
/// the same checks.
fn refuse_while_leased(job: &Job) -> Result<()> {
    job::take_claims(&job.name);
    if lease::any_live(&job.name, clock::now()) {
        return Err(LeaseError::InUse { job: job.name.to_string() }.into());
    }
    Ok(())
}

fn write(job: &Job, replace: bool) -> Result<bool> {
    if job::find(&job.name).is_none() {
        check_quota(job.role)?;
        origin::claim_if_new();
        if watch::new_job::insert(job, watch::new_job::end_left)? {
            return Ok(true);
        }
    }
    let exists = |own| Error::JobExists { job: job.name.to_string(), own };
    let old = match rights::own_job_for(&job.name, replace.then_some(job.role)) {
        Err(Error::NotOwner { .. }) => return Err(exists(false)),
        old => old?,
    };
    if old.says_the_same(job) {
        return Ok(false);
    }
    if own_checks::is_rules(&old) {
        return Err(WatchError::IsRule { job: job.name.to_string() }.into());
    }
    if !replace {
        return Err(exists(true));
    }
    if old.role != job.role {
        check_quota(job.role)?;
    }
    if old.is_external() && !job.is_external() {
        refuse_while_leased(&old)?;
    }
    rights::update(old.role, job);
    Ok(true)
}

fn function_name(args: &Args, job: &Text) -> Result<Option<Text>> {
    if let Ok(Some(text)) = args.optional_name(1, "function", MAX_COMMAND) {
        let (text, function) = (text.to_string(), function::quoted(job));
        if let Some(create) = awty_core::command::function_for(&function, &text) {
            let command = text.trim().chars().take(40).collect();
            return Err(Error::Command { job: job.to_string(), command, create, function });
        }
    }
    args.optional_name(1, "function", MAX_FUNCTION)
}

fn say_role(job: &Job) {
    if job.role != catalog::current_role() {
        error::log::notice(format!("job \"{}\" runs as \"{}\"", job.name, catalog::role_label(job.role)));
    }
}

fn alter_job(args: &Args) -> Result<()> {
    rights::gate("awty.alter()")?;
    let name = args.name(0, "job", MAX_JOB)?;
    let role = args.optional_role(11)?;
    let mut job = rights::own_job_for(&name, role)?;
    let former = job.role;
    let function = function_name(args, &job.name)?;
    if function.is_some() && job.is_external() {
        refuse_while_leased(&job)?;
    }
    for option in args.get::<Vec<Option<Text>>>(16).unwrap_or_default().into_iter().flatten() {
        let option = option.to_string();
        if option == "notify" {
            job.notify = None;
        } else {
            reset(&mut job.options, option)?;
        }
    }
    job.options = options(args, job.options, false)?;
    job.notify = args.optional_name(12, "notify", MAX_CHANNEL)?.or(job.notify);
    if let Some(role) = role {
        let before = job.role;
        job.role = run_as(Some(role), function.is_some() || !job.is_external())?;
        if job.role != before {
            check_quota(job.role)?;
        }
    }
    if (role.is_some() || function.is_some()) && own_checks::is_rules(&job) {
        return Err(WatchError::IsRule { job: job.name.to_string() }.into());
    }
    if let Some(function) = &function {
        (job.schema, job.function) = function::parse(function, &function::of_jobs())?;
    }
    if !job.is_external() {
        refuse_external(&job.options)?;
    }
    if (role.is_some() || function.is_some()) && !job.is_external() {
        job.set_based = is_set_based(&job.schema, &job.function, job.role, job.registered_by)?;
    }
    rights::update(former, &job);
    if role.is_some() {
        say_role(&job);
    }
    wakeup::inspect_at_commit(false);
    Ok(())
}

fn is_set_based(schema: &Text, function: &Text, role: pg_sys::Oid, registered_by: pg_sys::Oid) -> Result<bool> {
    Ok(function::resolve(schema, function, role, registered_by, None)?.takes == Signature::Set)
}

fn unregister_job(args: &Args) -> Result<i64> {
    // Locks the tables of leases too, because unregistering removes the job's leases and targets.
    rights::gate_lease("awty.unregister()")?;
    let name = args.name(0, "job", MAX_JOB)?;
    let own = rights::own_job(&name);
    // A restore may have failed to load the rule. Nothing else can then remove the job.
    if own.as_ref().is_ok_and(own_checks::is_rules) && rule::find(&name).is_some() {
        return Err(WatchError::IsRule { job: name.to_string() }.into());
    }
    let repeats = match own {
        // Lets a superuser remove a job whose row is invalid.
        // SAFETY: a transaction is open.
        Err(Error::BrokenJob { .. }) if unsafe { pg_sys::superuser() } => true,
        own => own?.repeats,
    };
    // Lock order: like a claim, takes the job's claim lock before it locks rows, so that the two cannot deadlock.
    job::take_claims(&name);
    Ok(job::waiting_for(&name, || {
        let count = watch::end_rule::checks_and_repetitions(&name, repeats);
        job::delete(&name);
        left::remove_targets(&name);
        count
    }))
}
