use super::arrays;
use super::statements::lease::{self, StoredLease};
use crate::call::args::{Args, calls};
use crate::call::rights;
use crate::error::Result;
use crate::pg::clock;
use crate::pg::text::Text;
use crate::store::job::{self, Job};
use awty_core::Time;
use std::collections::{HashMap, HashSet};

calls! {
    fn heartbeat -> Vec<Option<i64>> = beat;
}

pub fn live(numbers: &[i64], now: Time) -> Vec<(StoredLease, Job)> {
    let given = lease::given(numbers);
    let mut jobs: HashMap<Text, Option<Job>> = HashMap::new();
    let find = |name: &Text| job::find(name)?.ok().filter(|job| job.is_external() && rights::may_claim(job));
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
        // A lease that `extend` has skipped is alive until its expiry. Another session has locked the lease to store
        // the worker's report.
        let others =
            until.iter().map(|(number, _)| *number).filter(|number| !alive.contains(number)).collect::<Vec<_>>();
        let now = clock::now();
        let others = lease::given(&others).into_iter().filter(|given| now < given.lease.expires_at);
        alive.extend(others.map(|given| given.number));
    }
    Ok(asked.into_iter().filter(|number| number.is_none_or(|number| !alive.contains(&number))).collect())
}
