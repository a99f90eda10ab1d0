//! `awty.register()`, `awty.alter()` and `awty.unregister()`.

use super::args::{Args, MAX_COMMAND, MAX_FUNCTION, MAX_JOB};
use super::rights;
use crate::error::{self, Error, LeaseError, Result, WatchError};
use crate::function::Takes;
use crate::pg::text::Text;
use crate::pg::{catalog, claim_lock, clock, relations};
use crate::shmem::wakeup;
use crate::store::job::{self, Job, Options};
use crate::store::{lease, origin, repetition, target};
use crate::watch;
use crate::{function, settings};
use awty_core::lease::{Terms, lock};
use awty_core::{Limits, Width};
use chrono::TimeDelta;
use pgrx::pg_sys;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

const ON_MISSED: &str = "run, next_slot, skip";
const DELIVERY: &str = "at_least_once, at_most_once";
const KEEP_ATTEMPTS: &str = "all, problems, none";
const KEEP_HISTORY: &str = "all, ran, problems, none";
/// Maximum length of a NOTIFY channel, in bytes.
const MAX_CHANNEL: usize = 63;

#[pg_extern(sql = false)]
fn register(fcinfo: pg_sys::FunctionCallInfo) -> std::result::Result<(), ErrorReport> {
    Ok(register_job(&Args::new(fcinfo))?)
}

#[pg_extern(sql = false)]
fn alter(fcinfo: pg_sys::FunctionCallInfo) -> std::result::Result<(), ErrorReport> {
    Ok(alter_job(&Args::new(fcinfo))?)
}

#[pg_extern(sql = false)]
fn unregister(fcinfo: pg_sys::FunctionCallInfo) -> std::result::Result<i64, ErrorReport> {
    Ok(unregister_job(&Args::new(fcinfo))?)
}

fn register_job(args: &Args) -> Result<()> {
    rights::gate("awty.register()")?;
    let name = args.name(0, "job", MAX_JOB)?;
    let function = function_name(args, &name)?;
    let defaults = Options { slot: None, limits: Limits::defaults(settings::slot()), terms: Terms::DEFAULTS };
    let options = options(args, defaults, true)?;
    let role = run_as(args.optional_role(11)?, function.is_some())?;
    let replace = args.get::<bool>(16).unwrap_or(false);
    let registered_by = catalog::current_role();
    let (schema, function, set_based) = match function {
        Some(function) => {
            refuse_terms(&options.terms)?;
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
    if job.is_outside() {
        error::log::notice(format!("job \"{}\" has no function: workers outside claim its checks", job.name));
    }
    wakeup::inspect_at_commit(false);
    Ok(())
}

/// Refuses options that only external workers can follow.
fn refuse_terms(terms: &Terms) -> Result<()> {
    let Terms { heartbeat, delivery, keep_attempts } = Terms::DEFAULTS;
    for (is_default, option) in [
        (terms.heartbeat == heartbeat, "heartbeat"),
        (terms.delivery == delivery, "delivery"),
        (terms.keep_attempts == keep_attempts, "keep_attempts"),
    ] {
        if !is_default {
            return Err(LeaseError::OnlyOutside { option }.into());
        }
    }
    Ok(())
}

/// Takes the lock on a job's claims. Waits for a claim in progress; the next claim sees what this transaction commits.
fn lock_claims(job: &Text) {
    if let Some(leases) = relations::oid(relations::LEASE) {
        claim_lock::take(leases, lock::of_claims(origin::identity(), job.as_bytes()));
    }
}

/// Refuses a function while external workers hold leases of the job. Otherwise two workers could run the same check.
fn refuse_while_leased(job: &Job) -> Result<()> {
    lock_claims(&job.name);
    if lease::any_live(&job.name, clock::now()) {
        return Err(LeaseError::InUse { job: job.name.to_string() }.into());
    }
    Ok(())
}

/// Writes a job. An equal job of that name stays. A different one is replaced if `replace` is set. Returns whether
/// anything changed.
fn write(job: &Job, replace: bool) -> Result<bool> {
    if job::find(&job.name).is_none() {
        check_quota(job.role)?;
        origin::claim_if_new();
        if job::insert(job, clock::now()) {
            // Forgets the counters of an earlier job of that name.
            wakeup::forget_job_at_commit(job.name.as_bytes());
            return Ok(true);
        }
    }
    let exists = |own| Error::JobExists { job: job.name.to_string(), own };
    let old = match rights::own_job(&job.name) {
        Err(Error::NotOwner { .. }) => return Err(exists(false)),
        old => old?,
    };
    if old.says_the_same(job) {
        return Ok(false);
    }
    if watch::is_rules(&old) {
        return Err(WatchError::IsRule { job: job.name.to_string() }.into());
    }
    if !replace {
        return Err(exists(true));
    }
    if old.role != job.role {
        check_quota(job.role)?;
    }
    if old.is_outside() && !job.is_outside() {
        refuse_while_leased(&old)?;
    }
    job::update(job);
    Ok(true)
}

/// The function in the second argument. For a command, the error shows the function to write instead.
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

/// Reports the job's role, if it is not the caller.
fn say_role(job: &Job) {
    if job.role != catalog::current_role() {
        error::log::notice(format!("job \"{}\" runs as \"{}\"", job.name, catalog::role_label(job.role)));
    }
}

fn alter_job(args: &Args) -> Result<()> {
    rights::gate("awty.alter()")?;
    let mut job = rights::own_job(&args.name(0, "job", MAX_JOB)?)?;
    let function = function_name(args, &job.name)?;
    if function.is_some() && job.is_outside() {
        refuse_while_leased(&job)?;
    }
    for option in args.get::<Vec<Option<String>>>(16).unwrap_or_default().into_iter().flatten() {
        if option == "notify" {
            job.notify = None;
        } else {
            reset(&mut job.options, option)?;
        }
    }
    job.options = options(args, job.options, false)?;
    job.notify = args.optional_name(12, "notify", MAX_CHANNEL)?.or(job.notify);
    let role = args.optional_role(11)?;
    if let Some(role) = role {
        job.role = run_as(Some(role), function.is_some() || !job.is_outside())?;
        check_quota(job.role)?;
    }
    if (role.is_some() || function.is_some()) && watch::is_rules(&job) {
        return Err(WatchError::IsRule { job: job.name.to_string() }.into());
    }
    if let Some(function) = &function {
        (job.schema, job.function) = function::parse(function, &function::of_jobs())?;
    }
    if !job.is_outside() {
        refuse_terms(&job.options.terms)?;
    }
    if (role.is_some() || function.is_some()) && !job.is_outside() {
        job.set_based = is_set_based(&job.schema, &job.function, job.role, job.registered_by)?;
    }
    job::update(&job);
    if role.is_some() {
        say_role(&job);
    }
    wakeup::inspect_at_commit(false);
    Ok(())
}

/// Whether the function takes many checks at a time. The role must be able to run it.
fn is_set_based(schema: &Text, function: &Text, role: pg_sys::Oid, registered_by: pg_sys::Oid) -> Result<bool> {
    Ok(function::resolve(schema, function, role, registered_by, None)?.takes == Takes::Set)
}

fn unregister_job(args: &Args) -> Result<i64> {
    // Unregistering also removes leases and targets.
    rights::gate_lease("awty.unregister()")?;
    let name = args.name(0, "job", MAX_JOB)?;
    let own = rights::own_job(&name);
    if own.as_ref().is_ok_and(watch::is_rules) {
        return Err(WatchError::IsRule { job: name.to_string() }.into());
    }
    let repeats = match own {
        // A superuser must be able to remove a job whose row is broken.
        // SAFETY: a getter.
        Err(Error::BrokenJob { .. }) if unsafe { pg_sys::superuser() } => true,
        own => own?.repeats,
    };
    // Takes the lock before deleting rows that claims of other jobs' workers use. Such a claim skips this job and does not wait.
    lock_claims(&name);
    let mut count = watch::end_rule::checks(&name);
    if repeats {
        repetition::remove_job(&name);
        // If this call had to wait for the end of a run, that run has scheduled the next occurrence.
        count += watch::end_rule::checks(&name);
    }
    job::delete(&name);
    target::forget_job(&name);
    Ok(count)
}

/// Maximum number of jobs of a role, because each inspection and each worker of the role reads all of them.
const MAX_JOBS: i64 = 10_000;

pub fn check_quota(role: pg_sys::Oid) -> Result<()> {
    if job::count(role, MAX_JOBS) < MAX_JOBS {
        return Ok(());
    }
    Err(Error::TooManyJobs { role: catalog::role_label(role), max: MAX_JOBS })
}

/// The role that the job runs as: the caller's, or one that the caller may become. With `connects`, the role must be able to connect.
pub fn run_as(role: Option<pg_sys::Oid>, connects: bool) -> Result<pg_sys::Oid> {
    let caller = catalog::current_role();
    let role = role.unwrap_or(caller);
    let label = || catalog::role_label(role);
    if !catalog::can_become(caller, role) {
        let privileged = catalog::is_privileged(role);
        return Err(Error::NotMember { role: label(), caller: catalog::role_label(caller), privileged });
    }
    if !connects {
        return Ok(role);
    }
    catalog::can_connect(catalog::database(), role).map_err(|why| match why {
        catalog::CannotConnect::Gone => Error::UnknownRole { role: label() },
        catalog::CannotConnect::NoLogin => Error::NoLogin { role: label() },
        catalog::CannotConnect::NoConnect | catalog::CannotConnect::NoDatabase => {
            Error::NoConnect { role: label(), database: catalog::database_name() }
        }
    })?;
    Ok(role)
}

/// The options, changed by the arguments from the third on. With `all`, NULL is refused for an option with a default.
fn options(args: &Args, mut options: Options, all: bool) -> Result<Options> {
    let required = |argument| if all { Err(Error::Null { argument }) } else { Ok(()) };
    if let Some(slot) = args.duration(2, "slot")? {
        check_slot(slot)?;
        options.slot = Some(slot);
    }
    options.limits.width = job::width(options.slot).map_err(|message| Error::Option { message })?;
    let limits = &mut options.limits;
    match args.duration(3, "timeout")? {
        Some(timeout) => limits.timeout = timeout,
        None => required("timeout")?,
    }
    match args.get::<i32>(4) {
        Some(max_checks) => limits.max_checks = count(max_checks),
        None => required("max_checks")?,
    }
    match args.duration(5, "max_horizon")? {
        Some(max_horizon) => limits.max_horizon = max_horizon,
        None => required("max_horizon")?,
    }
    match args.get::<i32>(6) {
        Some(max_attempts) => limits.max_attempts = count(max_attempts),
        None => required("max_attempts")?,
    }
    match args.duration(7, "retry_after")? {
        Some(retry_after) => limits.retry_after = retry_after,
        None => required("retry_after")?,
    }
    match args.choice(8, "on_missed", ON_MISSED)? {
        Some(on_missed) => limits.on_missed = on_missed,
        None => required("on_missed")?,
    }
    if let Some(max_lateness) = args.duration(9, "max_lateness")? {
        limits.max_lateness = Some(max_lateness);
    }
    match args.choice(10, "keep_history", KEEP_HISTORY)? {
        Some(keep_history) => limits.keep_history = keep_history,
        None => required("keep_history")?,
    }
    limits.check().map_err(|error| Error::Option { message: error.to_string() })?;
    let terms = &mut options.terms;
    if let Some(heartbeat) = args.duration(13, "heartbeat")? {
        terms.heartbeat = Some(heartbeat);
    }
    match args.choice(14, "delivery", DELIVERY)? {
        Some(delivery) => terms.delivery = delivery,
        None => required("delivery")?,
    }
    match args.choice(15, "keep_attempts", KEEP_ATTEMPTS)? {
        Some(keep_attempts) => terms.keep_attempts = keep_attempts,
        None => required("keep_attempts")?,
    }
    terms.check().map_err(|error| Error::Option { message: error.to_string() })?;
    Ok(options)
}

/// A count; a negative one is out of range.
fn count(given: i32) -> u32 {
    u32::try_from(given).unwrap_or(u32::MAX)
}

/// A job's slot must be whole seconds, divide a day, and be made of whole slots of the server.
fn check_slot(slot: TimeDelta) -> Result<()> {
    let server = settings::slot();
    let refuse = |message: String| Error::Slot { message, server: server.seconds() };
    if slot.subsec_nanos() != 0 {
        return Err(refuse("option \"slot\" must be a whole number of seconds".into()));
    }
    let width = Width::new(slot.num_seconds()).map_err(|error| refuse(error.to_string()))?;
    if !width.is_multiple_of(server) {
        let (width, server) = (width.seconds(), server.seconds());
        return Err(refuse(format!("slot of {width} s is not a multiple of \"awty.slot\", which is {server} s")));
    }
    Ok(())
}

/// Sets an option back to its default.
fn reset(options: &mut Options, option: String) -> Result<()> {
    let defaults = Limits::defaults(options.limits.width);
    let limits = &mut options.limits;
    match option.as_str() {
        "slot" => options.slot = None,
        "timeout" => limits.timeout = defaults.timeout,
        "max_checks" => limits.max_checks = defaults.max_checks,
        "max_horizon" => limits.max_horizon = defaults.max_horizon,
        "max_attempts" => limits.max_attempts = defaults.max_attempts,
        "retry_after" => limits.retry_after = defaults.retry_after,
        "on_missed" => limits.on_missed = defaults.on_missed,
        "max_lateness" => limits.max_lateness = defaults.max_lateness,
        "keep_history" => limits.keep_history = defaults.keep_history,
        "heartbeat" => options.terms.heartbeat = Terms::DEFAULTS.heartbeat,
        "delivery" => options.terms.delivery = Terms::DEFAULTS.delivery,
        "keep_attempts" => options.terms.keep_attempts = Terms::DEFAULTS.keep_attempts,
        _ => return Err(Error::UnknownOption { option }),
    }
    Ok(())
}
