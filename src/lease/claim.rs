//! Invariant: a claim gives leases only for due checks without a live lease. A claim never waits for a client, and
//! writes nothing if no check is due.

use super::statements::lease::{self, DueCheck, NewLeases};
use super::statements::{live, target as targets};
use super::target::{self, Chosen, Search};
use super::{ahead, arrays, expire};
use crate::call::args::Args;
use crate::call::argument_limits::{MAX_CLAIM, MAX_WORKER};
use crate::call::rights;
use crate::error::{Error, LeaseError, Result};
use crate::failpoint::failpoint;
use crate::figures::account::Account;
use crate::pg::rows::Sink;
use crate::pg::text::Text;
use crate::pg::{catalog, claim_lock, clock, random, relations};
use crate::run::book;
use crate::settings;
use crate::shmem::{self, State, wakeup};
use crate::store::check_row::Table;
use crate::store::job::{self, Job};
use crate::store::origin;
use awty_core::lease::Delivery;
use awty_core::lease::key::{Home, key};
use awty_core::lease::lock;
use awty_core::lease::order::{Waiting, shares};
use awty_core::{Before, Lease, Mono, Time, policy};
use pgrx::pg_sys;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use std::collections::HashSet;
use std::time::Duration;

/// A claim searches at most this many times, because each search may find only checks that cannot run.
const ROUNDS: usize = 10;
const AT_LEAST: usize = 500;
/// Limits how many expired leases a claim of several jobs handles, and how many checks that cannot run. Without a
/// limit, other roles' claims would wait.
const SHARED: usize = 1_000;
const FEWEST: usize = 20;
/// Limits the time that a claim of several jobs spends on ends of checks, because the end of a large check, or the next
/// time of a repetition, may take milliseconds.
const SHARED_TIME: Duration = Duration::from_millis(100);

#[pg_extern(sql = false)]
fn claim(fcinfo: pg_sys::FunctionCallInfo) -> std::result::Result<(), ErrorReport> {
    Ok(claim_checks(&Args::new(fcinfo), fcinfo)?)
}

fn claim_checks(args: &Args, fcinfo: pg_sys::FunctionCallInfo) -> Result<()> {
    rights::gate_lease("awty.claim()")?;
    let (jobs, is_shared) = arrays::jobs(args)?;
    let worker = args.name(1, "worker", MAX_WORKER)?;
    let max = args.get::<i32>(2).ok_or(Error::Null { argument: "max" })?;
    if !(1..=MAX_CLAIM).contains(&max) {
        return Err(LeaseError::Max { most: MAX_CLAIM }.into());
    }
    let sink = Sink::begin(fcinfo);
    let here = catalog::database();
    let mut served = HashSet::new();
    if let Some(able_since) = able_since(here) {
        let now = clock::now();
        let ahead = ahead::of_jobs(&jobs, is_shared, now, false);
        let due = ahead.filter(|(_, ahead, _)| ahead.is_due).map(|(job, ..)| job).collect();
        let max = max.unsigned_abs() as usize;
        let claim = Claim { here, able_since, worker: &worker, jobs: jobs.len(), is_shared, max };
        let turns: Vec<Turn> = lock_claims(due, is_shared).into_iter().filter_map(|job| claim.choose(job)).collect();
        for (turn, due) in claim.pick(turns) {
            served.insert(turn.job.name.clone());
            claim.give(&turn, due, &sink);
        }
    }
    let now = clock::now();
    shmem::write_each(&jobs, |shared, job| {
        shared.note_claim(here, job.name.as_bytes(), served.contains(&job.name), now);
    });
    Ok(())
}

fn able_since(here: pg_sys::Oid) -> Option<Time> {
    let ready = shmem::read(|shared| {
        shared.database(here).filter(|line| line.state == State::Ready).map(|line| line.able_since)
    });
    ready.filter(|_| settings::enabled()).map(clock::clamped)
}

/// A claim of several jobs skips a job that another transaction is claiming, because the other transaction may take
/// long.
fn lock_claims(jobs: Vec<&Job>, is_shared: bool) -> Vec<Job> {
    let Some(leases) = relations::oid(relations::LEASE) else { return Vec::new() };
    let identity = origin::identity();
    let number = |job: &Job| lock::of_claims(identity, job.name.as_bytes());
    let mut locked: Vec<&Job> = jobs.iter().copied().filter(|job| claim_lock::try_take(leases, number(job))).collect();
    if let (false, true, Some(first)) = (is_shared, locked.is_empty(), jobs.first()) {
        claim_lock::take(leases, number(first));
        locked.push(first);
    }
    failpoint!("claim.locked");
    // During the wait, the right may have ended, or the name may have become that of another role's job.
    let may = |job: &Job| job.is_external() && !job.paused && rights::may_claim(job);
    let judge = |job: &Job| {
        let now = job::find(&job.name).and_then(std::result::Result::ok).filter(may);
        if now.is_none() {
            claim_lock::give_back(leases, number(job));
        }
        now
    };
    locked.into_iter().filter_map(judge).collect()
}

struct Claim<'a> {
    here: pg_sys::Oid,
    able_since: Time,
    worker: &'a Text,
    jobs: usize,
    is_shared: bool,
    max: usize,
}

struct Turn {
    job: Job,
    chosen: Chosen,
}

/// Sort key of claimed checks: the check's position within its target, the target's position, the time of the job's
/// last claim, the due time and the id.
type Rank = ((usize, usize), Option<Time>, Time, i64);

type InTurn = (DueCheck, (usize, usize));

impl Claim<'_> {
    fn choose(&self, job: Job) -> Option<Turn> {
        let now = clock::now();
        let until = self.until();
        let mut left = if self.is_shared { (SHARED / self.jobs.max(1)).max(FEWEST) } else { ROUNDS * AT_LEAST };
        let over = lease::overdue_of(&job.name, now, expire::PIECE.min(left as i64));
        if !over.is_empty() {
            expire::book(&job, &over, now, until);
        }
        let is_known = targets::any(&job.name);
        let live = live::read(&job.name, now, None, is_known);
        let able_since = job.resumed_at.map_or(self.able_since, |resumed| resumed.max(self.able_since));
        let running = self.running();
        let (mut due, mut limit, mut stuck, mut is_all) = (Vec::new(), self.max, 0, false);
        for _ in 0..ROUNDS {
            let now = clock::now();
            let found = lease::due(&job.name, now, limit + stuck, &live);
            is_all = found.len() < limit + stuck;
            let mut others: Vec<i64>;
            (due, others) = split(found, |due| runs(&job, due, able_since, now));
            due.retain(|due| !running.contains(&due.id));
            others.truncate(left);
            if others.is_empty() {
                break;
            }
            left -= others.len();
            stuck = apply_guards(&job, &others, able_since, now, until);
            if is_all && stuck == others.len() || clock::is_past(until) {
                break;
            }
            limit = limit.max(AT_LEAST);
        }
        let now = clock::now();
        let search =
            Search { here: self.here, job: &job.name, jobs: self.jobs, is_known, live: &live, max: self.max, now };
        let mut chosen = search.choose(due, is_all);
        let (due, others): (Vec<InTurn>, Vec<InTurn>) =
            chosen.due.into_iter().partition(|(due, _)| runs(&job, due, able_since, now));
        chosen.due = due.into_iter().filter(|(due, _)| !running.contains(&due.id)).collect();
        if !others.is_empty() {
            let others: Vec<i64> = others.iter().take(left).map(|(due, _)| due.id).collect();
            apply_guards(&job, &others, able_since, now, until);
        }
        if chosen.due.is_empty() {
            if let Some(name) = &chosen.walked_to {
                shmem::write(|shared| shared.note_target(self.here, job.name.as_bytes(), name.as_bytes(), now));
            }
            return None;
        }
        Some(Turn { job, chosen })
    }

    /// Returns the time at which the claim stops to end a job's checks, or `None` if there is no limit. All jobs of a
    /// claim share `SHARED_TIME` equally.
    fn until(&self) -> Option<Mono> {
        let jobs = u32::try_from(self.jobs).unwrap_or(u32::MAX);
        self.is_shared.then(|| clock::mono().plus(SHARED_TIME / jobs))
    }

    /// Returns the checks that background workers are running. Such a run may have started before the job was given to
    /// external workers.
    fn running(&self) -> HashSet<i64> {
        shmem::read(|shared| {
            let here = shared.workers.iter().filter(|entry| entry.database == self.here);
            here.flat_map(|entry| entry.claims().iter().copied()).collect()
        })
    }

    fn pick(&self, turns: Vec<Turn>) -> Vec<(Turn, Vec<InTurn>)> {
        let mut roles: Vec<pg_sys::Oid> = turns.iter().map(|turn| turn.job.role).collect();
        roles.sort_unstable_by_key(|role| role.to_u32());
        roles.dedup();
        let mut waiting = Vec::new();
        let mut in_order: Vec<Vec<Rank>> = Vec::new();
        for role in &roles {
            let of_role = || turns.iter().filter(|turn| turn.job.role == *role);
            let served_at: Vec<Option<Time>> = shmem::read(|shared| {
                of_role().map(|turn| shared.claims_of(self.here, turn.job.name.as_bytes()).1).collect()
            });
            let mut due: Vec<Rank> = Vec::new();
            for (turn, served_at) in of_role().zip(&served_at) {
                due.extend(turn.chosen.due.iter().map(|(due, turn)| (*turn, *served_at, due.check.slot, due.id)));
            }
            due.sort_unstable();
            waiting.push(Waiting { served_at: served_at.into_iter().flatten().max(), due: due.len() });
            in_order.push(due);
        }
        let shares = shares(&waiting, self.max);
        let chosen: HashSet<i64> = shares
            .into_iter()
            .zip(in_order)
            .flat_map(|(share, due)| due.into_iter().take(share))
            .map(|(.., id)| id)
            .collect();
        let turns = turns.into_iter().map(|mut turn| {
            let all = std::mem::take(&mut turn.chosen.due).into_iter();
            let due = all.filter(|(due, _)| chosen.contains(&due.id)).collect();
            (turn, due)
        });
        turns.filter(|(_, due): &(Turn, Vec<InTurn>)| !due.is_empty()).collect()
    }

    fn give(&self, Turn { job, chosen }: &Turn, mut due: Vec<InTurn>, sink: &Sink) {
        let expired: Vec<i64> = due.iter().filter_map(|(due, _)| due.expired).collect();
        if !expired.is_empty() {
            let over = lease::lock(&expired);
            let ended: HashSet<i64> = expire::book(job, &over, clock::now(), self.until()).into_iter().collect();
            due.retain(|(due, _)| due.expired.is_none_or(|number| ended.contains(&number)));
        }
        let turns: Vec<(Text, (usize, usize))> = due.iter().map(|(due, turn)| (due.target.clone(), *turn)).collect();
        target::given(self.here, job, &chosen.targets, &turns, clock::now());
        let due: Vec<DueCheck> = due.into_iter().map(|(due, _)| due).collect();
        let home = Home { identity: origin::identity(), database: self.here.to_u32() };
        let key_of = |due: &DueCheck| key(home, due.id, due.scheduled_at, due.check.check_count);
        let terms = &job.options.terms;
        if terms.delivery == Delivery::AtMostOnce {
            claim_lock::flush_at_commit();
        }
        let new = NewLeases {
            job: &job.name,
            worker: self.worker,
            role: job.role,
            lease: Lease::begin(clock::now(), job.options.limits.timeout, terms.heartbeat),
            numbers: due.iter().map(|_| random::number()).collect(),
            ids: due.iter().map(|due| due.id).collect(),
            keys: due.iter().map(key_of).collect(),
        };
        lease::give(new, |row| sink.put(&row));
        failpoint!("claim.given");
    }
}

fn runs(job: &Job, due: &DueCheck, able_since: Time, now: Time) -> bool {
    policy::before(&due.check, &job.options.limits, able_since, now) == Before::Run
}

fn split(found: Vec<DueCheck>, runs: impl Fn(&DueCheck) -> bool) -> (Vec<DueCheck>, Vec<i64>) {
    let (due, others): (Vec<DueCheck>, Vec<DueCheck>) = found.into_iter().partition(runs);
    (due, others.into_iter().map(|due| due.id).collect())
}

fn apply_guards(job: &Job, checks: &[i64], able_since: Time, now: Time, until: Option<Mono>) -> usize {
    let Some(table) = Table::open_latest() else { return checks.len() };
    let mut account = Account::default();
    let mut stuck = 0;
    for check in checks {
        let Some(row) = table.read(*check) else { continue };
        if book::apply_guards(&table, job, vec![row], able_since, now, &mut account).is_err() {
            stuck += 1;
        } else {
            wakeup::count_ended(1);
        }
        if clock::is_past(until) {
            break;
        }
    }
    account.at_commit(&job.name);
    stuck
}
