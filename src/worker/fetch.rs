//! The fetcher: which checks a worker takes on next.
//!
//! Each turn takes a share from every job of the role, of its new slots first and of its missed ones after, each from where
//! the turn before left off. Reading on from a key, and not from the start, matters: rows that were finished stay in the
//! index for as long as anybody on the server holds an old snapshot.
//!
//! Workers of one role divide what is due: what one has taken on the others leave to it, and look for at the end of their pass,
//! in case it had to leave.
//!
//! Invariant: no check is handed out twice in one pass, except those that could not be run and are due to be tried again.
//! Does not: claim anything; another worker may hand out the same check, and one of them will find it claimed or gone.

use crate::pg::changes;
use crate::pg::clock::{self, Timestamp};
use crate::pg::{catalog, session_locks};
use crate::settings::{self, LogFailures};
use crate::shmem::{self, NEVER};
use crate::store::check_stat::{self, Blame};
use crate::store::extension;
use crate::store::future_job;
use crate::store::job::{self, Job};
use crate::store::prepared;
use crate::store::record::{Candidate, Cursor};
use crate::worker::entry::MyWorker;
use awty_core::pauses::Pauses;
use awty_core::{Time, pace};
use pgrx::pg_sys;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;
use std::time::Duration;

/// How soon to look again for what a prepared transaction has scheduled. Nobody waits for it meanwhile.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// How soon to look again for what another worker has taken on.
const OTHERS_PAUSE: Duration = Duration::from_millis(5);

/// Checks to be run in one call: one, or many of one slot, in the order of their ids, if the job is set-based.
pub struct Task {
    pub job: Rc<Job>,
    pub checks: Vec<Candidate>,
    /// The server or a process went down with it: it runs alone.
    pub blame: Option<Blame>,
}

/// Where the pass stands with one job.
#[derive(Clone, Copy)]
struct Place {
    /// In the slots since checks could run.
    new: Cursor,
    /// In the slots before, which were missed.
    missed: Cursor,
}

pub struct Fetcher {
    role: pg_sys::Oid,
    /// Since when this database's checks can run.
    database_able_since: Time,
    from: Timestamp,
    /// The count of changes of `awty.job` when the jobs were read.
    pub epoch: u64,
    places: HashMap<Vec<u8>, Place>,
    pauses: Pauses,
    /// Those that run alone because of a crash or an exit, by how much they are suspected.
    suspects: HashMap<i64, (usize, Blame)>,
    /// How often checks had been blamed when those were read; `None` before.
    read_at: Option<u64>,
    /// How often checks have been blamed, as far as the turn knows.
    pub blamed: u64,
    /// Those that run alone because a set that they were in had to be terminated.
    isolated: HashSet<i64>,
    /// When the rate of catching up allows the next missed check; `None` while it does not hold any back.
    held_back: Option<Duration>,
    /// The first slot that is pending after all that was due, as far as it is known.
    next: Timestamp,
    /// When to look again for what a prepared transaction has announced.
    look_again: Option<Timestamp>,
    /// How many checks the next turn takes on, those of set-based jobs not counted.
    size: usize,
    /// Is there more than the turn takes on?
    pub is_full: bool,
    /// Where what was left to other workers begins, job by job.
    others: HashMap<Vec<u8>, Cursor>,
}

impl Fetcher {
    pub fn new(role: pg_sys::Oid) -> Self {
        Self {
            role,
            database_able_since: Time::MIN_UTC,
            from: NEVER,
            epoch: 0,
            places: HashMap::new(),
            pauses: Pauses::default(),
            suspects: HashMap::new(),
            read_at: None,
            blamed: 0,
            isolated: HashSet::new(),
            held_back: None,
            next: NEVER,
            look_again: None,
            size: pace::FIRST,
            is_full: false,
            others: HashMap::new(),
        }
    }

    /// Begins a pass at that slot.
    pub fn start_from(&mut self, from: Timestamp) {
        self.from = from;
        self.places.clear();
        self.others.clear();
        self.pauses.begin_pass();
    }

    /// Goes back to that slot in the pass that is going on: something has been committed there meanwhile.
    pub fn go_back_to(&mut self, from: Timestamp) {
        self.from = self.from.min(from);
        for place in self.places.values_mut() {
            place.new = place.new.min(Cursor::before(from));
            place.missed = place.missed.min(Cursor::before(from));
        }
    }

    /// Since when checks of a job can run.
    pub fn able_since(&self, job: &Job) -> Time {
        job.resumed_at.map_or(self.database_able_since, |resumed| resumed.max(self.database_able_since))
    }

    /// The next tasks of the pass; none when it is through; `None` when the extension is gone.
    pub fn next(&mut self, entry: &MyWorker) -> Option<Vec<Task>> {
        entry.end_turn();
        // What was kept from the turn before may be of another extension by now.
        session_locks::let_go();
        if !session_locks::hold() {
            return None;
        }
        // ALTER EXTENSION … UPDATE may have come since the last turn.
        if extension::unserved().is_some() {
            shmem::request_inspection(catalog::database(), false);
            return None;
        }
        self.database_able_since =
            shmem::read(|shared| shared.database(catalog::database()).map(|line| line.able_since))
                .and_then(clock::from_timestamp)
                .unwrap_or(Time::MIN_UTC);
        self.blamed = entry.blamed();
        if self.read_at != Some(self.blamed) {
            let rank = |(rank, (id, blame))| (id, (rank, blame));
            self.suspects = check_stat::suspects(self.role).into_iter().enumerate().map(rank).collect();
            self.read_at = Some(self.blamed);
        }
        self.epoch = changes::of_jobs();
        let jobs: Vec<Rc<Job>> = jobs_of(self.role).into_iter().filter(|job| !job.paused).map(Rc::new).collect();
        // Asked before what is due is read: one that is committed in between comes with the next look.
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
            // Where all of it rests or is left to others, there may be more after it.
            if !tasks.is_empty() || found == 0 {
                break;
            }
        }
        if tasks.is_empty() {
            self.next = jobs.iter().filter_map(|job| future_job::next_after(&job.name, now)).min().unwrap_or(NEVER);
            self.look_again = is_announced.then_some(now + LOOK_AGAIN.as_micros() as Timestamp);
        }
        // Those least suspected first: they are cleared before the worst of them gets its chance.
        tasks.sort_by_key(|task| {
            task.checks.iter().filter_map(|check| self.suspicion(check.id)).map(|(rank, _)| rank).max()
        });
        Some(tasks)
    }

    /// Takes a job's share: new slots first, then, at their rate, missed ones. Returns how many checks were passed, to be run or
    /// not.
    fn fetch_share(
        &mut self,
        job: &Rc<Job>,
        now: Timestamp,
        share: usize,
        entry: &MyWorker,
        tasks: &mut Vec<Task>,
    ) -> usize {
        let border = clock::to_timestamp(self.able_since(job)).clamp(self.from, now.max(self.from));
        let start = Place { new: Cursor::before(border), missed: Cursor::before(self.from) };
        let mut place = *self.places.get(job.name.as_bytes()).unwrap_or(&start);
        place.new = place.new.max(Cursor::before(border));

        let new = future_job::due(&job.name, place.new, now, share);
        place.new = new.last().map_or(place.new, Cursor::after);
        let mut found = new.len();
        self.is_full |= found == share;
        let new = self.prefetch(job, new, entry);
        self.add(job, new, tasks);

        if place.missed.slot < border {
            // The border itself belongs to the new slots.
            let waiting = future_job::due(&job.name, place.missed, border - 1, share);
            self.is_full |= waiting.len() == share;
            let end = waiting.last().map_or(place.missed, Cursor::after);
            let passed = waiting.len();
            let mut missed = self.prefetch(job, waiting, entry);
            let allowed = self.allow(missed.len());
            // The rest comes when its time has come.
            (place.missed, found) = match missed.get(allowed) {
                Some(_) => (missed[..allowed].last().map_or(place.missed, Cursor::after), found + allowed),
                None => (end, found + passed),
            };
            missed.truncate(allowed);
            self.add(job, missed, tasks);
        }
        self.places.insert(job.name.as_bytes().to_vec(), place);
        found
    }

    /// Drops checks that are paused or that another worker has prefetched, and remembers the first of the latter for the second pass.
    fn prefetch(&mut self, job: &Job, mut checks: Vec<Candidate>, entry: &MyWorker) -> Vec<Candidate> {
        let mono = clock::mono();
        checks.retain(|check| !self.pauses.is_resting(check.id, mono));
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

    /// How many missed checks may run now, at `awty.catch_up_rate`.
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
            let blame = self.suspicion(check.id).map(|(_, blame)| blame);
            if blame.is_some() || !job.set_based {
                tasks.push(Task { job: Rc::clone(job), checks: vec![check], blame });
                continue;
            }
            if together.first().is_some_and(|first| first.slot != check.slot) {
                tasks.push(Task { job: Rc::clone(job), checks: std::mem::take(&mut together), blame });
            }
            together.push(check);
        }
        if !together.is_empty() {
            tasks.push(Task { job: Rc::clone(job), checks: together, blame: None });
        }
    }

    /// A turn of so many checks took so long, and its flush so long: the next one takes about as long as it should.
    pub fn keep_pace(&mut self, ran: usize, took: Duration, flushing: Duration) {
        self.size = pace::next(self.size, ran, took, flushing, settings::batch_size());
    }

    /// Leaves checks alone for a while that a client has locked.
    pub fn postpone(&mut self, checks: &[Candidate]) {
        let mono = clock::mono();
        checks.iter().for_each(|check| self.pauses.locked(check.id, check.slot, mono));
    }

    /// Leaves checks alone until the audit finds them.
    pub fn leave_to_audit(&mut self, checks: &[Candidate]) {
        let mono = clock::mono();
        checks.iter().for_each(|check| self.pauses.left_to_audit(check.id, check.slot, mono));
    }

    /// Looks again soon for checks that wait until another worker has run its suspect.
    pub fn wait_for_quarantine(&mut self, checks: &[Candidate]) {
        let mono = clock::mono();
        checks.iter().for_each(|check| self.pauses.quarantine_is_taken(check.id, check.slot, mono));
    }

    /// Runs these alone from now on.
    pub fn isolate(&mut self, ids: &[i64]) {
        self.isolated.extend(ids);
    }

    /// Does a check run alone, after how many others, and why?
    fn suspicion(&self, id: i64) -> Option<(usize, Blame)> {
        let counted = self.suspects.get(&id).copied();
        counted.or_else(|| self.isolated.contains(&id).then_some((usize::MAX, Blame::Exit)))
    }

    /// Finds pending checks by their ids.
    pub fn locate(&mut self, ids: &[i64]) -> Vec<Task> {
        self.epoch = changes::of_jobs();
        let jobs: Vec<Rc<Job>> = jobs_of(self.role).into_iter().map(Rc::new).collect();
        future_job::locate(ids)
            .into_iter()
            .filter_map(|(name, check)| {
                let job = jobs.iter().find(|job| job.name == name)?;
                Some(Task { job: Rc::clone(job), checks: vec![check], blame: None })
            })
            .collect()
    }

    /// The pass is through, but for checks that had to be left or held back. How long until some of them can be tried, with
    /// zero for now; `None` if there are none, or none that is worth waiting for: those are left to the audit.
    pub fn try_again_in(&mut self, patience: Duration) -> Option<Duration> {
        let mut wait = self.held_back;
        if let Some((left, back_to)) = self.pauses.next(clock::mono()) {
            wait = Some(wait.map_or(left, |wait| wait.min(left)));
            self.go_back_to(back_to.unwrap_or(NEVER));
        }
        if !self.others.is_empty() {
            wait = Some(wait.map_or(OTHERS_PAUSE, |wait| wait.min(OTHERS_PAUSE)));
            for (job, since) in self.others.drain() {
                if let Some(place) = self.places.get_mut(&job) {
                    (place.new, place.missed) = (place.new.min(since), place.missed.min(since));
                }
            }
        }
        wait.filter(|wait| *wait <= patience)
    }

    /// When to look once more for what was due in this pass.
    pub fn look_again(&self) -> Option<Timestamp> {
        self.look_again
    }

    /// The next slot at which something is pending, as it was when the pass came to its end.
    pub fn next_slot(&self) -> Timestamp {
        self.next
    }
}

/// The jobs of a role, with those left out whose rows cannot be read: they stop no other. The log is told of them when they
/// are found and when they change, not by each worker again.
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
