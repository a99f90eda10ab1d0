//! Chooses the checks that a worker runs next.
//!
//! Each search starts where the last search ended, because a search from the beginning would read dead rows.
//!
//! A worker skips checks that another worker of the role has prefetched (plans to run next). After a pass, it searches
//! for the skipped checks again, because the other worker may have exited.
//!
//! Invariant: a pass returns a check twice only if the check could not run and is due for another try.

use super::entry::MyWorker;
use crate::pg::clock::{self, Timestamp};
use crate::pg::{catalog, changes};
use crate::process::session_locks;
use crate::settings::{self, LogFailures};
use crate::shmem::{self, NEVER};
use crate::store::check_stat::{self, Suspicion};
use crate::store::job::{self, Job};
use crate::store::record::{Candidate, Cursor};
use crate::store::{extension, future_job, prepared};
use awty_core::pauses::Pauses;
use awty_core::{Time, pace};
use pgrx::pg_sys;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;
use std::time::Duration;

const LOOK_AGAIN: Duration = Duration::from_secs(2);
const OTHERS_PAUSE: Duration = Duration::from_millis(5);

pub struct Task {
    pub job: Rc<Job>,
    pub checks: Vec<Candidate>,
    pub suspicion: Option<Suspicion>,
}

#[derive(Clone, Copy)]
struct Position {
    new: Cursor,
    /// Position of the search for missed checks, which became due while awty could run no checks.
    missed: Cursor,
}

pub struct Fetcher {
    role: pg_sys::Oid,
    database_able_since: Time,
    from: Timestamp,
    pub epoch: u64,
    positions: HashMap<Vec<u8>, Position>,
    pauses: Pauses,
    suspects: HashMap<i64, (usize, Suspicion)>,
    read_at: Option<u64>,
    pub suspected: u64,
    /// Checks of a run that had several checks when it was terminated. Each check must now run alone.
    isolated: HashSet<i64>,
    held_back: Option<Duration>,
    next: Timestamp,
    look_again: Option<Timestamp>,
    size: usize,
    pub is_full: bool,
    /// For each job, the first check that was skipped because another worker plans to run it.
    others: HashMap<Vec<u8>, Cursor>,
}

impl Fetcher {
    pub fn new(role: pg_sys::Oid) -> Self {
        Self {
            role,
            database_able_since: Time::MIN_UTC,
            from: NEVER,
            epoch: 0,
            positions: HashMap::new(),
            pauses: Pauses::default(),
            suspects: HashMap::new(),
            read_at: None,
            suspected: 0,
            isolated: HashSet::new(),
            held_back: None,
            next: NEVER,
            look_again: None,
            size: pace::FIRST,
            is_full: false,
            others: HashMap::new(),
        }
    }

    pub fn start_from(&mut self, from: Timestamp) {
        self.from = from;
        self.positions.clear();
        self.others.clear();
        self.pauses.begin_pass();
    }

    pub fn go_back_to(&mut self, from: Timestamp) {
        self.from = self.from.min(from);
        for place in self.positions.values_mut() {
            place.new = place.new.min(Cursor::before(from));
            place.missed = place.missed.min(Cursor::before(from));
        }
    }

    pub fn able_since(&self, job: &Job) -> Time {
        job.resumed_at.map_or(self.database_able_since, |resumed| resumed.max(self.database_able_since))
    }

    pub fn next(&mut self, entry: &MyWorker) -> Option<Vec<Task>> {
        entry.end_turn();
        session_locks::let_go();
        if !session_locks::hold() {
            return None;
        }
        if extension::unserved().is_some() {
            shmem::request_inspection(catalog::database(), false);
            return None;
        }
        self.database_able_since =
            shmem::read(|shared| shared.database(catalog::database()).map(|line| line.able_since))
                .and_then(clock::from_timestamp)
                .unwrap_or(Time::MIN_UTC);
        self.suspected = entry.suspected();
        if self.read_at != Some(self.suspected) {
            let rank = |(rank, (id, suspicion))| (id, (rank, suspicion));
            self.suspects = check_stat::suspects(self.role).into_iter().enumerate().map(rank).collect();
            self.read_at = Some(self.suspected);
        }
        self.epoch = changes::of_rows();
        let jobs: Vec<Rc<Job>> = jobs_of(self.role).into_iter().filter(|job| !job.paused).map(Rc::new).collect();
        // Looks for prepared transactions before reading checks. In the opposite order, both steps would miss the
        // checks of a transaction that is committed between them.
        let is_announced = prepared::any_young();
        let now = clock::to_timestamp(clock::now());
        self.size = self.size.min(settings::batch_size());
        let share = (self.size / jobs.len().max(1)).max(1);
        (self.held_back, self.is_full) = (None, false);
        let mut tasks = Vec::new();
        loop {
            let mut found = 0;
            for job in &jobs {
                let share = if job.set_based { settings::batch_size() } else { share };
                found += self.fetch_share(job, now, share, entry, &mut tasks);
            }
            if !tasks.is_empty() || found == 0 {
                break;
            }
        }
        if tasks.is_empty() {
            self.next = jobs.iter().filter_map(|job| future_job::next_after(&job.name, now)).min().unwrap_or(NEVER);
            self.look_again = is_announced.then_some(now + LOOK_AGAIN.as_micros() as Timestamp);
        }
        // The least suspected checks run first, so that they have ended before the most suspected check can crash the
        // server.
        tasks.sort_by_key(|task| {
            task.checks.iter().filter_map(|check| self.suspicion(check.id)).map(|(rank, _)| rank).max()
        });
        Some(tasks)
    }

    /// Returns the number of due checks found, including those that will not run now.
    fn fetch_share(
        &mut self,
        job: &Rc<Job>,
        now: Timestamp,
        share: usize,
        entry: &MyWorker,
        tasks: &mut Vec<Task>,
    ) -> usize {
        let border = clock::to_timestamp(self.able_since(job)).clamp(self.from, now.max(self.from));
        let start = Position { new: Cursor::before(border), missed: Cursor::before(self.from) };
        let mut place = *self.positions.get(job.name.as_bytes()).unwrap_or(&start);
        place.new = place.new.max(Cursor::before(border));

        let new = future_job::due(&job.name, place.new, now, share);
        place.new = new.last().map_or(place.new, Cursor::after);
        let mut found = new.len();
        self.is_full |= found == share;
        let new = self.prefetch(job, new, entry);
        self.add(job, new, tasks);

        if place.missed.slot < border {
            let waiting = future_job::due(&job.name, place.missed, border - 1, share);
            self.is_full |= waiting.len() == share;
            let end = waiting.last().map_or(place.missed, Cursor::after);
            let passed = waiting.len();
            let mut missed = self.prefetch(job, waiting, entry);
            let allowed = self.allow(missed.len());
            (place.missed, found) = match missed.get(allowed) {
                Some(_) => (missed[..allowed].last().map_or(place.missed, Cursor::after), found + allowed),
                None => (end, found + passed),
            };
            missed.truncate(allowed);
            self.add(job, missed, tasks);
        }
        self.positions.insert(job.name.as_bytes().to_vec(), place);
        found
    }

    fn prefetch(&mut self, job: &Job, mut checks: Vec<Candidate>, entry: &MyWorker) -> Vec<Candidate> {
        let mono = clock::mono();
        checks.retain(|check| !self.pauses.is_resting(check.id, check.slot, mono));
        let ids: Vec<i64> = checks.iter().map(|check| check.id).collect();
        let free: HashSet<i64> = entry.prefetch(&ids).into_iter().collect();
        if let Some(first) = checks.iter().find(|check| !free.contains(&check.id)) {
            let before = Cursor { slot: first.slot, id: first.id.saturating_sub(1) };
            let since = self.others.entry(job.name.as_bytes().to_vec()).or_insert(before);
            *since = before.min(*since);
            checks.retain(|check| free.contains(&check.id));
        }
        checks
    }

    fn allow(&mut self, wanted: usize) -> usize {
        let rate = settings::catch_up_rate();
        if wanted == 0 || rate == 0 {
            return wanted;
        }
        let mono = clock::mono();
        let (allowed, wait) = shmem::write(|shared| {
            let allowed = shared.catch_up.take(rate, u32::try_from(wanted).unwrap_or(u32::MAX), mono);
            (allowed as usize, shared.catch_up.ready_in(rate, mono))
        });
        if allowed < wanted {
            self.held_back = Some(wait);
        }
        allowed
    }

    fn add(&self, job: &Rc<Job>, candidates: Vec<Candidate>, tasks: &mut Vec<Task>) {
        let mut together: Vec<Candidate> = Vec::new();
        for check in candidates {
            let suspicion = self.suspicion(check.id).map(|(_, suspicion)| suspicion);
            if suspicion.is_some() || !job.set_based {
                tasks.push(Task { job: Rc::clone(job), checks: vec![check], suspicion });
                continue;
            }
            if together.first().is_some_and(|first| first.slot != check.slot) {
                tasks.push(Task { job: Rc::clone(job), checks: std::mem::take(&mut together), suspicion });
            }
            together.push(check);
        }
        if !together.is_empty() {
            tasks.push(Task { job: Rc::clone(job), checks: together, suspicion: None });
        }
    }

    pub fn keep_pace(&mut self, ran: usize, took: Duration, flushing: Duration) {
        self.size = pace::next(self.size, ran, took, flushing, settings::batch_size());
    }

    pub fn postpone(&mut self, checks: &[Candidate]) {
        let mono = clock::mono();
        checks.iter().for_each(|check| self.pauses.locked(check.id, check.slot, mono));
    }

    pub fn pause_failed(&mut self, checks: &[Candidate]) {
        let mono = clock::mono();
        checks.iter().for_each(|check| self.pauses.failed(check.id, check.slot, mono));
    }

    pub fn wait_for_quarantine(&mut self, checks: &[Candidate]) {
        let mono = clock::mono();
        checks.iter().for_each(|check| self.pauses.quarantine_is_taken(check.id, check.slot, mono));
    }

    pub fn isolate(&mut self, ids: &[i64]) {
        self.isolated.extend(ids);
    }

    fn suspicion(&self, id: i64) -> Option<(usize, Suspicion)> {
        let counted = self.suspects.get(&id).copied();
        counted.or_else(|| self.isolated.contains(&id).then_some((usize::MAX, Suspicion::Exit)))
    }

    pub fn locate(&mut self, ids: &[i64]) -> Vec<Task> {
        self.epoch = changes::of_rows();
        let jobs: Vec<Rc<Job>> = jobs_of(self.role).into_iter().map(Rc::new).collect();
        future_job::locate(ids)
            .into_iter()
            .filter_map(|(name, check)| {
                let job = jobs.iter().find(|job| job.name == name)?;
                Some(Task { job: Rc::clone(job), checks: vec![check], suspicion: None })
            })
            .collect()
    }

    /// Returns how long the worker waits before it tries skipped checks again, or `None` if it should not wait. A wait
    /// longer than `patience` is not worthwhile, because the maintainer process finds the checks later.
    pub fn try_again_in(&mut self, patience: Duration) -> Option<Duration> {
        let mut wait = self.held_back;
        if let Some((left, back_to)) = self.pauses.next(clock::mono()) {
            wait = Some(wait.map_or(left, |wait| wait.min(left)));
            self.go_back_to(back_to.unwrap_or(NEVER));
        }
        if !self.others.is_empty() {
            wait = Some(wait.map_or(OTHERS_PAUSE, |wait| wait.min(OTHERS_PAUSE)));
            for (job, since) in self.others.drain() {
                if let Some(place) = self.positions.get_mut(&job) {
                    (place.new, place.missed) = (place.new.min(since), place.missed.min(since));
                }
            }
        }
        wait.filter(|wait| *wait <= patience)
    }

    pub fn look_again(&self) -> Option<Timestamp> {
        self.look_again
    }

    pub fn next_slot(&self) -> Timestamp {
        self.next
    }
}

/// Logs a job with an unreadable row once, and again when the row changes.
fn jobs_of(role: pg_sys::Oid) -> Vec<Job> {
    let here = catalog::database();
    let mut invalid = Vec::new();
    let jobs =
        job::of_role(role).into_iter().filter_map(|job| job.map_err(|broken| invalid.push(broken)).ok()).collect();
    let complaint = if invalid.is_empty() { 0 } else { hash(&invalid) };
    let told = shmem::read(|shared| shared.role(here, role).map_or(0, |line| line.complaint));
    if complaint == told {
        return jobs;
    }
    shmem::write(|shared| {
        if let Some(line) = shared.role_mut(here, role) {
            line.complaint = complaint;
        }
    });
    if settings::log_failures() != LogFailures::All && !invalid.is_empty() {
        pgrx::log!("awty: {} jobs of role {} have an invalid row in awty.job", invalid.len(), role.to_u32());
        return jobs;
    }
    for (name, message) in invalid {
        let [name, message] =
            [(name.to_string(), 64), (message, 200)].map(|(text, most)| text.chars().take(most).collect::<String>());
        pgrx::log!("awty: job \"{name}\" of role {} has an invalid row in awty.job: {message}", role.to_u32());
    }
    jobs
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
