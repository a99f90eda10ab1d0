//! The options of a job, as arguments of `awty.register()` and `awty.alter()`.
//!
//! Does not: know the ranges of the options (see `awty_core::Limits`).

use super::args::Args;
use crate::error::{Error, Result};
use crate::settings;
use crate::store::job::{self, Options};
use awty_core::lease::LeaseOptions;
use awty_core::{Limits, Width};
use chrono::TimeDelta;

const ON_MISSED: &str = "run, next_slot, skip";
const DELIVERY: &str = "at_least_once, at_most_once";
const KEEP_ATTEMPTS: &str = "all, problems, none";
const KEEP_HISTORY: &str = "all, ran, problems, none";

/// Returns the options, changed by the arguments from the third on. With `all`, NULL is refused for an option with a default.
pub fn options(args: &Args, mut options: Options, all: bool) -> Result<Options> {
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
pub fn reset(options: &mut Options, option: String) -> Result<()> {
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
        "heartbeat" => options.terms.heartbeat = LeaseOptions::DEFAULTS.heartbeat,
        "delivery" => options.terms.delivery = LeaseOptions::DEFAULTS.delivery,
        "keep_attempts" => options.terms.keep_attempts = LeaseOptions::DEFAULTS.keep_attempts,
        _ => return Err(Error::UnknownOption { option }),
    }
    Ok(())
}
