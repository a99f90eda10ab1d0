//! Finds out whether jobs have due checks for an external worker.
//!
//! Each search also reads the job's live leases. All searches of one call share a limit, so that roles with thousands
//! of leases do not delay other roles' claims.

use super::statements::lease;
use super::statements::live::{self, Live};
use crate::pg::text::Text;
use crate::store::job::Job;
use awty_core::Time;
use awty_core::lease::Ahead;
use std::cell::RefCell;
use std::collections::HashMap;

const MOST: i64 = 10_000;
const FEW_AT_LEAST: i64 = 100;

thread_local! {
    static COUNTED: RefCell<HashMap<Text, i64>> = RefCell::default();
}

pub fn of_jobs(
    jobs: &[Job],
    is_shared: bool,
    now: Time,
    with_targets: bool,
) -> impl Iterator<Item = (&Job, Ahead, Live)> {
    let few = (MOST / i64::try_from(jobs.len()).unwrap_or(MOST).max(1)).max(FEW_AT_LEAST);
    let mut in_order: Vec<&Job> = jobs.iter().filter(|job| !job.paused).collect();
    COUNTED.with_borrow(|counted| in_order.sort_by_key(|job| counted.get(&job.name).copied()));
    let mut left = MOST;
    in_order.into_iter().map(move |job| {
        let most = left.max(few);
        let leases = live::read(&job.name, now, is_shared.then_some(most), with_targets);
        let live = leases.count;
        let is_cut = is_shared && live >= most;
        let ahead = Ahead { expiry: leases.first_expiry, ..lease::ahead(&job.name, now, &leases, is_cut) };
        if is_shared {
            COUNTED.with_borrow_mut(|counted| {
                let known = counted.entry(job.name.clone()).or_default();
                *known = if is_cut { live.max(*known) } else { live };
            });
            if (few..most).contains(&live) {
                left -= live;
            }
        }
        (job, ahead, leases)
    })
}
