use super::statements::{lease, target as targets};
use super::target::Search;
use super::{ahead, arrays};
use crate::call::args::{Args, calls};
use crate::call::rights;
use crate::error::Result;
use crate::pg::text::Text;
use crate::pg::{catalog, claim_lock, clock, relations};
use crate::settings;
use crate::shmem::{self, State};
use crate::store::job::Job;
use crate::store::{origin, to_interval};
use awty_core::Time;
use awty_core::lease::{Ahead, lock, wait};
use chrono::TimeDelta;
use pgrx::datum::{Interval, TimestampWithTimeZone};
use pgrx::pg_sys;
use pgrx::prelude::*;

/// Number of the oldest due checks that `awty.next_claim_in()` reads. If more checks may be due, the function also
/// visits further targets.
const LOOK: usize = 10;
const LOOK_ON: TimeDelta = TimeDelta::seconds(1);
const BUSY: TimeDelta = TimeDelta::milliseconds(100);

calls! {
    fn next_claim_in -> Option<Interval> = next_claim;
}

#[pg_extern(sql = false)]
fn last_claim(fcinfo: pg_sys::FunctionCallInfo) -> Option<TimestampWithTimeZone> {
    let job = Args::new(fcinfo).get::<Text>(0).filter(|_| shmem::is_present())?;
    let here = catalog::database();
    let at = shmem::read(|shared| shared.claims_of(here, job.as_bytes()).0)?;
    clock::to_timestamptz(at)
}

fn is_claimed_of(job: &Job) -> bool {
    let number = lock::of_claims(origin::identity(), job.name.as_bytes());
    relations::oid(relations::LEASE).is_some_and(|leases| !claim_lock::is_free(leases, number))
}

fn next_claim(args: &Args) -> Result<Option<Interval>> {
    rights::gate_lease("awty.next_claim_in()")?;
    let (jobs, is_shared) = arrays::jobs(args)?;
    let here = catalog::database();
    let is_open = settings::enabled()
        && shmem::read(|shared| shared.database(here).is_some_and(|line| line.state == State::Ready));
    let now = clock::now();
    let mut first = Ahead::default();
    for (job, mut ahead, live) in ahead::of_jobs(if is_open { &jobs } else { &[] }, is_shared, now, true) {
        if ahead.is_due && targets::any(&job.name) {
            let oldest = lease::due(&job.name, now, LOOK, &live);
            let is_all = oldest.len() < LOOK;
            let search = Search { here, job: &job.name, jobs: jobs.len(), is_known: true, live: &live, max: LOOK, now };
            let chosen = search.choose(oldest, is_all);
            ahead.is_due = !chosen.due.is_empty();
            ahead.expiry = ahead.expiry.into_iter().chain(chosen.until).min();
            if let (false, Some(name)) = (ahead.is_due, &chosen.walked_to) {
                // Stores the last target that this search has visited. The next search continues after this target, so
                // that repeated searches reach all targets.
                shmem::write(|shared| shared.note_target(here, job.name.as_bytes(), name.as_bytes(), now));
                let soon = chosen.is_cut.then(|| now.checked_add_signed(LOOK_ON)).flatten();
                ahead.expiry = ahead.expiry.into_iter().chain(soon).min();
            }
        }
        if ahead.is_due && is_shared && is_claimed_of(job) {
            ahead.is_due = false;
            ahead.expiry = ahead.expiry.into_iter().chain(now.checked_add_signed(BUSY)).min();
        }
        if ahead.is_due {
            return Ok(to_interval(TimeDelta::zero()));
        }
        let earlier = |one: Option<Time>, other: Option<Time>| one.into_iter().chain(other).min();
        first.slot = earlier(first.slot, ahead.slot);
        first.expiry = earlier(first.expiry, ahead.expiry);
    }
    Ok(to_interval(wait(&first, settings::slot(), now)))
}
