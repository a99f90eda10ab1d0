use super::statements::target::{self, TargetChanges};
use crate::call::args::{Args, calls};
use crate::call::argument_limits::{MAX_ENTITY_NAME, MAX_JOB, MAX_NOTE};
use crate::call::rights;
use crate::error::{Error, LeaseError, Result};
use crate::pg::subtransaction::{self, kept_if_ok};
use crate::pg::text::Text;
use crate::pg::{catalog, claim_lock, clock, relations};
use crate::store::{job, origin};
use awty_core::lease::breaker::Breaker;
use awty_core::lease::lock;
use awty_core::lease::target::{COUNTS, RATES, Target};
use awty_core::lease::tokens::{Pace, Tokens};
use chrono::TimeDelta;
use pgrx::datum::TimestampWithTimeZone;
use pgrx::pg_sys;
use pgrx::prelude::*;

const LIMITS: [&str; 5] = ["concurrency", "rate", "burst", "blocked_until", "note"];

const MAX_TARGETS: i64 = 10_000;

const ASKED: TimeDelta = TimeDelta::hours(1);

calls! {
    fn alter_target -> () = |args| kept_if_ok(|| alter(args));
}

#[pg_extern(sql = false)]
fn target_standing(
    fcinfo: pg_sys::FunctionCallInfo,
) -> TableIterator<'static, (name!(state, &'static str), name!(until, Option<TimestampWithTimeZone>))> {
    let args = Args::new(fcinfo);
    let count = |index| args.get::<i32>(index).map(i32::unsigned_abs);
    let at = |index| args.get::<TimestampWithTimeZone>(index).map(crate::store::from_timestamptz);
    let breaker = || Some(Breaker { failures: count(7)?, since: at(8)?, opened_at: at(9), opens: count(10)? });
    let target = Target {
        concurrency: count(0),
        in_flight: args.get::<i64>(1).map_or(0, |count| u32::try_from(count).unwrap_or(u32::MAX)),
        pace: args.get::<f64>(2).map(|rate| Pace::new(rate, count(3))),
        blocked_until: at(4),
        tokens: args.get::<f64>(5).zip(at(6)).map(|(left, at)| Tokens { left, at }),
        breaker: breaker(),
    };
    let standing = target.standing(clock::now());
    // Returns the stored timestamp itself, because it can be infinite, and a `Time` cannot.
    let until = standing.until().and_then(|until| match args.get::<TimestampWithTimeZone>(4) {
        Some(blocked) if crate::store::from_timestamptz(blocked) == until => Some(blocked),
        _ => clock::to_timestamptz(until),
    });
    TableIterator::once((standing.word(), until))
}

calls! {
    /// Blocks a target for a limited time ([`ASKED`]), because even roles that may only claim checks can call this
    /// function.
    fn block_for_now -> bool = block;
}

fn block(args: &Args) -> Result<bool> {
    rights::gate_lease("awty_internal.block_for_now()")?;
    let job = rights::claimable_job(&args.name(0, "job", MAX_JOB)?)?;
    let of = args.name(1, "target", MAX_ENTITY_NAME)?;
    let until = args.get::<TimestampWithTimeZone>(2).ok_or(Error::Null { argument: "until" })?;
    let note = args.text(3, "note", MAX_NOTE)?;
    let now = clock::now();
    let until = crate::store::from_timestamptz(until).min(now + ASKED);
    if until <= now || subtransaction::has_one_snapshot() {
        return Ok(false);
    }
    let lock =
        |class| claim_lock::try_take(class, lock::of_target(origin::identity(), job.name.as_bytes(), of.as_bytes()));
    // The next job of this name waits for the end of this transaction, and then removes the block.
    let is_kept = job::try_share_name(&job.name) && rights::claimable_job(&job.name).is_ok();
    Ok(is_kept
        && relations::oid(relations::BREAKER).is_some_and(lock)
        && target::count(&job.name, MAX_TARGETS) < MAX_TARGETS
        && target::block(&job.name, &of, until, note.as_ref(), catalog::current_role(), now))
}

fn alter(args: &Args) -> Result<()> {
    rights::gate_lease("awty.alter_target()")?;
    let job = rights::own_job(&args.name(0, "job", MAX_JOB)?)?;
    if !job.is_external() {
        return Err(LeaseError::HasFunction { job: job.name.to_string() }.into());
    }
    let of = args.optional_name(1, "target", MAX_ENTITY_NAME)?;
    let concurrency = count(args, 2, "concurrency")?;
    let rate = args.get::<f64>(3);
    if rate.is_some_and(|rate| !RATES.contains(&rate)) {
        return Err(out_of_range("rate", RATES.start(), RATES.end()));
    }
    let burst = count(args, 4, "burst")?;
    let until = args.get::<TimestampWithTimeZone>(5).map(clock::Timestamp::from);
    let note = args.text(6, "note", MAX_NOTE)?;
    let mut reset = Vec::new();
    for limit in args.get::<Vec<Option<Text>>>(7).unwrap_or_default().into_iter().flatten() {
        if !LIMITS.iter().any(|known| known.as_bytes() == limit.as_bytes()) {
            return Err(LeaseError::UnknownLimit { limit: limit.to_string(), limits: &LIMITS }.into());
        }
        reset.push(limit);
    }
    let unblock = until == Some(clock::Timestamp::MIN) || reset.contains(&Text::from("blocked_until"));
    let blocked_until = until.filter(|until| *until != clock::Timestamp::MIN);
    let wanted = TargetChanges { concurrency, rate: args.datum(3), burst, blocked_until, note, reset, unblock };
    let of = of.unwrap_or_else(|| Text::from(""));
    let by = catalog::current_role(); // within `waiting_for`, the role is the extension's owner
    // The lock on the target and the locks on breakers delay no external worker, because a worker's report skips a
    // target or a breaker that is locked.
    job::waiting_for(&job.name, || {
        if let Some(class) = relations::oid(relations::BREAKER) {
            claim_lock::take(class, lock::of_target(origin::identity(), job.name.as_bytes(), of.as_bytes()));
        }
        target::alter(&job.name, &of, &wanted, by, clock::now());
    });
    if target::count(&job.name, MAX_TARGETS + 1) > MAX_TARGETS {
        return Err(LeaseError::TooManyTargets { job: job.name.to_string(), max: MAX_TARGETS }.into());
    }
    Ok(())
}

fn count(args: &Args, index: usize, option: &'static str) -> Result<Option<i32>> {
    let count = args.get::<i32>(index);
    match count {
        Some(count) if !COUNTS.contains(&count) => Err(out_of_range(option, COUNTS.start(), COUNTS.end())),
        count => Ok(count),
    }
}

fn out_of_range(option: &'static str, least: &impl ToString, most: &impl ToString) -> Error {
    LeaseError::Limit { option, least: least.to_string(), most: most.to_string() }.into()
}
