//! Calls between a claim and its answers: `awty.heartbeat()`, `awty.requeue()` and `awty.next_claim_in()`; and the time
//! of a job's last claim.
//!
//! Does not: count anything against a check.

use super::{arrays, target};
use crate::call::args::Args;
use crate::call::rights;
use crate::error::Result;
use crate::pg::text::Text;
use crate::pg::{catalog, claim_lock, clock, relations};
use crate::settings;
use crate::shmem::{self, State};
use crate::store::job::{self, Job};
use crate::store::lease::{self, Given};
use crate::store::{self, origin, to_interval};
use awty_core::Time;
use awty_core::lease::{Ahead, lock, wait};
use chrono::TimeDelta;
use pgrx::datum::{Interval, TimestampWithTimeZone};
use pgrx::pg_sys;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use std::collections::{HashMap, HashSet};

/// Number of oldest checks that are searched for one that can be handed out, before all targets are.
const LOOK: usize = 100;
/// Wait before asking again if there are more targets than were visited.
const LOOK_ON: TimeDelta = TimeDelta::seconds(1);
/// Wait before asking again if another transaction is claiming checks of the job.
const BUSY: TimeDelta = TimeDelta::milliseconds(100);

#[pg_extern(sql = false)]
fn heartbeat(fcinfo: pg_sys::FunctionCallInfo) -> std::result::Result<Vec<Option<i64>>, ErrorReport> {
    Ok(beat(&Args::new(fcinfo))?)
}

#[pg_extern(sql = false)]
fn requeue(fcinfo: pg_sys::FunctionCallInfo) -> std::result::Result<i64, ErrorReport> {
    Ok(give_back(&Args::new(fcinfo))?)
}

#[pg_extern(sql = false)]
fn next_claim_in(fcinfo: pg_sys::FunctionCallInfo) -> std::result::Result<Option<Interval>, ErrorReport> {
    Ok(next_claim(&Args::new(fcinfo))?)
}

#[pg_extern(sql = false)]
fn last_claim(fcinfo: pg_sys::FunctionCallInfo) -> Option<TimestampWithTimeZone> {
    let job = Args::new(fcinfo).get::<Text>(0).filter(|_| shmem::is_present())?;
    let here = catalog::database();
    let at = shmem::read(|shared| shared.claims_of(here, job.as_bytes()).0)?;
    clock::to_timestamptz(at)
}

/// Returns the leases for which an answer of the caller would count, with their jobs.
pub fn live(numbers: &[i64], now: Time) -> Vec<(Given, Job)> {
    let given = lease::given(numbers);
    let mut jobs: HashMap<Text, Option<Job>> = HashMap::new();
    let find = |name: &Text| job::find(name)?.ok().filter(|job| job.is_outside() && rights::may_claim(job));
    let counts = given.into_iter().filter(|given| given.lease.counts(now));
    counts
        .filter_map(|given| {
            let job = jobs.entry(given.job.clone()).or_insert_with_key(find).clone()?;
            Some((given, job))
        })
        .collect()
}

fn beat(args: &Args) -> Result<Vec<Option<i64>>> {
    rights::gate_lease("awty.heartbeat()")?;
    let asked = arrays::leases(args)?;
    let numbers: Vec<i64> = asked.iter().copied().flatten().collect();
    let now = clock::now();
    let mut live = live(&numbers, now);
    let checks: Vec<i64> = live.iter().map(|(given, _)| given.id).collect();
    let pending: HashSet<i64> = lease::pending(&checks).into_iter().collect();
    live.retain(|(given, _)| pending.contains(&given.id));
    let mut alive: HashSet<i64> = HashSet::new();
    let mut until = Vec::new();
    for (given, job) in live {
        match given.lease.beat(now, job.options.terms.heartbeat) {
            Some(longer) if longer.expires_at > given.lease.expires_at => until.push((given.number, longer.expires_at)),
            Some(_) => drop(alive.insert(given.number)),
            None => {}
        }
    }
    if !until.is_empty() {
        until.sort_unstable();
        alive.extend(lease::extend(&until));
        // The remaining leases are gone, or another session is answering them.
        let others =
            until.iter().map(|(number, _)| *number).filter(|number| !alive.contains(number)).collect::<Vec<_>>();
        alive.extend(lease::given(&others).iter().map(|given| given.number));
    }
    Ok(asked.into_iter().filter(|number| number.is_none_or(|number| !alive.contains(&number))).collect())
}

fn give_back(args: &Args) -> Result<i64> {
    rights::gate_lease("awty.requeue()")?;
    let numbers: Vec<i64> = arrays::leases(args)?.into_iter().flatten().collect();
    let mut live: Vec<i64> = live(&numbers, clock::now()).into_iter().map(|(given, _)| given.number).collect();
    live.sort_unstable();
    Ok(if live.is_empty() { 0 } else { lease::requeue(&live).len() as i64 })
}

fn is_claimed_of(job: &Job) -> bool {
    let number = lock::of_claims(origin::identity(), job.name.as_bytes());
    relations::oid(relations::LEASE).is_some_and(|leases| !claim_lock::is_free(leases, number))
}

fn next_claim(args: &Args) -> Result<Option<Interval>> {
    rights::gate_lease("awty.next_claim_in()")?;
    let jobs = arrays::jobs(args)?;
    let here = catalog::database();
    let is_open = settings::enabled()
        && shmem::read(|shared| shared.database(here).is_some_and(|line| line.state == State::Ready));
    let now = clock::now();
    let mut first = Ahead::default();
    // A paused job or a held database has nothing to wait for.
    for job in jobs.iter().filter(|job| is_open && !job.paused) {
        let mut ahead = lease::ahead(&job.name, now);
        if ahead.is_due && store::target::any(&job.name) {
            // The due checks may all belong to targets that cannot be called now.
            let oldest = lease::due(&job.name, now, LOOK);
            let is_all = oldest.len() < LOOK;
            let chosen = target::choose(here, &job.name, oldest, is_all, LOOK, now);
            ahead.is_due = !chosen.due.is_empty();
            ahead.expiry = ahead.expiry.into_iter().chain(chosen.until).min();
            if let (false, Some(name)) = (ahead.is_due, &chosen.walked_to) {
                // A worker that claims only after this call must also reach the other targets.
                shmem::write(|shared| shared.note_target(here, job.name.as_bytes(), name.as_bytes(), now));
                let soon = chosen.is_cut.then(|| now.checked_add_signed(LOOK_ON)).flatten();
                ahead.expiry = ahead.expiry.into_iter().chain(soon).min();
            }
        }
        if ahead.is_due && jobs.len() > 1 && is_claimed_of(job) {
            // A claim of several jobs skips this job.
            ahead.is_due = false;
            ahead.expiry = ahead.expiry.into_iter().chain(now.checked_add_signed(BUSY)).min();
        }
        let earlier = |one: Option<Time>, other: Option<Time>| one.into_iter().chain(other).min();
        first.is_due |= ahead.is_due;
        first.slot = earlier(first.slot, ahead.slot);
        first.expiry = earlier(first.expiry, ahead.expiry);
    }
    Ok(to_interval(wait(&first, settings::slot(), now)))
}
