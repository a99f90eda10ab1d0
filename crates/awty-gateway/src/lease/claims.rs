//! While no check is due, a round of the claim loop runs only one SQL statement.

use super::aside::is_of_a_job;
use super::fair_share::{Supply, fair_share_of};
use super::room::ReservedRoom;
use super::take::is_gone;
use super::{Activity, InFlight, Worker, room};
use crate::db::Trouble;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{AcquireError, OwnedSemaphorePermit};
use tokio::time::{Instant, sleep, timeout_at};

/// awty's maximum number of checks in one claim.
const LARGEST: usize = 1_000;
/// Maximum number of checks in a claim of several jobs. Their calls begin together, and more would delay other tenants'
/// calls.
const LARGEST_OF_SEVERAL: usize = 100;
pub(super) const PIECE: usize = 1_000;
const REFRESH: Duration = Duration::from_secs(30);
/// Pause between the end of a call and the next claim. The pause is short, because the end of a call frees its target
/// for a waiting call.
const FOLLOW: Duration = Duration::from_millis(100);
/// Number of stored answers after which the claim loop claims again, although the pause [`FOLLOW`] is not over.
const ENOUGH: usize = 100;
/// Pause of the claim loop if there is no job to claim from, or if every job already has its share of running calls.
const IDLE: Duration = Duration::from_secs(5);
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(10));

#[derive(Default)]
struct Turn {
    wait: Duration,
    left_out: usize,
    /// True if the claim loop claims again without asking the database first whether checks are due.
    claimed: bool,
}

impl Turn {
    fn pause(wait: Duration) -> Self {
        Turn { wait, ..Turn::default() }
    }
}

pub async fn claim(worker: Arc<Worker>) {
    let mut stopping = worker.stopping.clone();
    let mut pause = PAUSES.0;
    let mut refreshed: Option<Instant> = None;
    let mut last = Turn::default();
    let mut has_gone = false;
    while !worker.is_stopping() {
        if refreshed.is_none_or(|at| at.elapsed() >= REFRESH) {
            refreshed = worker.refresh().await.then(Instant::now);
            last.claimed = true; // a claim shows in awty.job_status that a worker is alive
        }
        let turn = if refreshed.is_some() { worker.turn(last.claimed, has_gone).await } else { Ok(Turn::pause(pause)) };
        last = match turn {
            Ok(turn) => {
                has_gone = false;
                pause = if refreshed.is_some() { PAUSES.0 } else { (pause * 2).min(PAUSES.1) };
                turn
            }
            Err(trouble) => {
                refreshed = None;
                // If a claim fails because a job is gone, the gateway reads its list of jobs again. If the next claim
                // also fails, it claims the jobs one by one, because a tenant may change its job again and again.
                if !has_gone && is_gone(&trouble) {
                    has_gone = true;
                    Turn::default()
                } else {
                    pause = (pause * 2).min(PAUSES.1);
                    worker.in_trouble(Activity::Claims, &trouble);
                    Turn::pause(pause)
                }
            }
        };
        tokio::select! {
            () = sleep(last.wait) => {}
            () = worker.room(last.left_out) => {}
            _ = stopping.wait_for(|stopping| *stopping) => {}
        }
    }
}

impl Worker {
    async fn room(&self, left_out: usize) {
        let free = self.places.available_permits();
        let left_out_now = || {
            let jobs = self.names();
            jobs.len() - self.fair_share(&jobs, 0).0.len()
        };
        let enough = || self.places.available_permits() >= free + ENOUGH || (left_out > 0 && left_out_now() < left_out);
        self.freed.notified().await;
        let moment = Instant::now() + FOLLOW;
        while !enough() && timeout_at(moment, self.freed.notified()).await.is_ok() {}
    }

    fn names(&self) -> Vec<String> {
        let (now, jobs) = (Instant::now(), self.view().jobs);
        let aside = self.locked_aside();
        jobs.into_iter().map(|job| job.name).filter(|job| !aside.has(job, now)).collect()
    }

    /// One of several jobs is named twice, so that its claim has the limits of a claim of several jobs. Otherwise it
    /// could take long, or wait for another transaction, and keep the calls of the other jobs waiting.
    pub(super) fn named(&self, jobs: &[String]) -> Vec<String> {
        let is_one_of_several = jobs.len() == 1 && self.has_several();
        [jobs, if is_one_of_several { jobs } else { &[] }].concat()
    }

    pub(super) fn has_several(&self) -> bool {
        self.locked_view().jobs.len() > 1
    }

    /// `held` is the number of requests for which the caller has places and memory.
    fn fair_share(&self, jobs: &[String], held: usize) -> (Vec<String>, usize) {
        let places =
            Supply { used: self.by_job(|_| 1), free: self.places.available_permits() + held, most: self.max_in_flight };
        let mut used = self.by_job(|in_flight| in_flight.used.kib());
        used.values_mut().for_each(|kib| *kib = room::requests(*kib));
        let room = Supply { used, free: self.room.free() + held, most: room::REQUESTS };
        fair_share_of([places, room], jobs)
    }

    fn by_job(&self, amount: impl Fn(&InFlight) -> usize) -> HashMap<String, usize> {
        let mut sums = HashMap::new();
        for in_flight in self.locked_leases().values() {
            match sums.get_mut(&in_flight.job) {
                Some(sum) => *sum += amount(in_flight),
                None => drop(sums.insert(in_flight.job.clone(), amount(in_flight))),
            }
        }
        sums
    }

    async fn one(&self) -> Result<(OwnedSemaphorePermit, ReservedRoom), AcquireError> {
        Ok((self.places.clone().acquire_owned().await?, self.room.one().await?))
    }

    async fn turn(self: &Arc<Self>, claim: bool, one_by_one: bool) -> Result<Turn, Trouble> {
        let all = self.names();
        if all.is_empty() {
            self.came_through();
            return Ok(Turn::pause(IDLE));
        }
        let mut stopping = self.stopping.clone();
        let first = tokio::select! {
            biased;
            _ = stopping.wait_for(|stopping| *stopping) => return Ok(Turn::pause(PAUSES.1)),
            first = self.one() => first,
        };
        let Ok((first, mut room)) = first else { return Ok(Turn::pause(PAUSES.1)) };
        let count = all.len();
        let (jobs, asked) = self.fair_share(&all, 1);
        let left_out = count - jobs.len();
        if jobs.is_empty() {
            self.came_through();
            return Ok(Turn { left_out, ..Turn::pause(IDLE) });
        }
        let mut pieces: Vec<&[String]> = jobs.chunks(PIECE).collect();
        if !claim {
            let (mut wait, mut due) = (IDLE, Vec::new());
            for delivery in pieces {
                match self.db.next_claim_in(&self.named(delivery)).await {
                    Ok(ahead) if !ahead.is_zero() => wait = wait.min(ahead),
                    Err(trouble) if !self.has_several() || !is_of_a_job(&trouble) => return Err(trouble),
                    Ok(_) | Err(_) => due.push(delivery),
                }
            }
            if due.is_empty() {
                self.metrics.nothing();
                self.came_through();
                return Ok(Turn { left_out, ..Turn::pause(wait) });
            }
            pieces = due;
        }
        let mut permits = vec![first];
        let most = if count > 1 { LARGEST_OF_SEVERAL } else { LARGEST };
        while permits.len() < asked.min(most) {
            let Ok(permit) = self.places.clone().try_acquire_owned() else { break };
            if !self.room.add_one(&mut room) {
                break;
            }
            permits.push(permit);
        }
        // Each claim begins with a different part of the list, so that no job is always claimed last.
        let turn = self.delivery.fetch_add(1, Ordering::Relaxed) % pieces.len();
        pieces.rotate_left(turn);
        let mut count = 0;
        for delivery in pieces {
            if !permits.is_empty() {
                count += self.take_each(delivery, one_by_one, &mut permits, &mut room).await?;
            }
        }
        self.came_through();
        let full = permits.is_empty();
        drop((permits, room));
        let mut wait = if full { Duration::ZERO } else { self.ahead(&jobs).await? };
        if count == 0 && wait.is_zero() {
            wait = FOLLOW; // a check is due, but its job is skipped, because another transaction is claiming it
        }
        Ok(Turn { wait, left_out, claimed: count > 0 })
    }

    async fn ahead(&self, jobs: &[String]) -> Result<Duration, Trouble> {
        let mut wait = IDLE;
        for delivery in jobs.chunks(PIECE) {
            wait = wait.min(match self.db.next_claim_in(&self.named(delivery)).await {
                Err(trouble) if self.has_several() && is_of_a_job(&trouble) => FOLLOW, // the next claim meets the job
                ahead => ahead?,
            });
        }
        Ok(wait)
    }

    fn came_through(&self) {
        self.answers_again(Activity::Claims);
        self.locked_view().last_turn = Some(Instant::now());
    }
}
