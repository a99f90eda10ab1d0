//! The loop that claims.
//!
//! Invariant: an idle turn is two statements, and comes when awty says that there may be something.

use super::deliver::deliver;
use super::room::Part;
use super::{InFlight, Worker, share};
use crate::db::{Job, Lease, Trouble};
use crate::sqlstate::{self, Kind};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{AcquireError, OwnedSemaphorePermit};
use tokio::time::{Instant, sleep, timeout_at};

/// The largest claim that awty takes.
const LARGEST: usize = 1_000;
/// The jobs are looked at again so often.
const REFRESH: Duration = Duration::from_secs(30);
/// So soon after an answer was booked a claim follows, and not in the next slot only: its target has room again, and the next occurrence
/// may be due already.
const FOLLOW: Duration = Duration::from_millis(100);
/// After so many answers it follows at once.
const ENOUGH: usize = 100;
/// A turn comes so often where there is no job to claim, or each has its share of the places.
const IDLE: Duration = Duration::from_secs(5);
/// Pauses after trouble double between these.
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(10));

/// Claims until it is told to stop.
pub async fn claim(worker: Arc<Worker>) {
    let mut stopping = worker.stopping.clone();
    let mut pause = PAUSES.0;
    let mut refreshed: Option<Instant> = None;
    while !worker.is_stopping() {
        if refreshed.is_none_or(|at| at.elapsed() >= REFRESH) {
            refreshed = worker.refresh().await.then(Instant::now);
        }
        let (wait, left_out) = match if refreshed.is_some() { worker.turn().await } else { Ok((pause, 0)) } {
            Ok(turned) => {
                pause = if refreshed.is_some() { PAUSES.0 } else { (pause * 2).min(PAUSES.1) };
                turned
            }
            Err(trouble) => {
                worker.in_trouble(&trouble);
                refreshed = None;
                pause = (pause * 2).min(PAUSES.1);
                (pause, 0)
            }
        };
        tokio::select! {
            () = sleep(wait) => {}
            () = worker.room(left_out) => {}
            _ = stopping.wait_for(|stopping| *stopping) => {}
        }
    }
}

impl Worker {
    /// Ends a moment after an answer was booked; at once when many were, or when fewer jobs are left out.
    async fn room(&self, left_out: usize) {
        let free = self.places.available_permits();
        let left_out_now = || {
            let jobs = self.names();
            jobs.len() - share::share(jobs, &self.calls_of_jobs(), self.places.available_permits()).0.len()
        };
        let enough = || self.places.available_permits() >= free + ENOUGH || (left_out > 0 && left_out_now() < left_out);
        self.freed.notified().await;
        let moment = Instant::now() + FOLLOW;
        while !enough() && timeout_at(moment, self.freed.notified()).await.is_ok() {}
    }

    fn names(&self) -> Vec<String> {
        self.view().jobs.into_iter().map(|job| job.name).collect()
    }

    /// Calls of each job that are in flight.
    fn calls_of_jobs(&self) -> HashMap<String, usize> {
        let mut calls = HashMap::new();
        for in_flight in self.locked_leases().values() {
            match calls.get_mut(&in_flight.job) {
                Some(count) => *count += 1,
                None => drop(calls.insert(in_flight.job.clone(), 1)),
            }
        }
        calls
    }

    /// A place, and room for a body.
    async fn one(&self) -> Result<(OwnedSemaphorePermit, Part), AcquireError> {
        Ok((self.places.clone().acquire_owned().await?, self.room.one().await?))
    }

    /// One claim; gives how long to wait for the next, and how many jobs were left out.
    async fn turn(self: &Arc<Self>) -> Result<(Duration, usize), Trouble> {
        let all = self.names();
        if all.is_empty() {
            self.came_through();
            return Ok((IDLE, 0));
        }
        // Until a place is free and a body has room, nothing is asked for.
        let mut stopping = self.stopping.clone();
        let first = tokio::select! {
            biased;
            _ = stopping.wait_for(|stopping| *stopping) => return Ok((PAUSES.1, 0)),
            first = self.one() => first,
        };
        let Ok((first, mut room)) = first else { return Ok((PAUSES.1, 0)) };
        let count = all.len();
        let (jobs, asked) = share::share(all, &self.calls_of_jobs(), self.places.available_permits() + 1);
        let left_out = count - jobs.len();
        if jobs.is_empty() {
            self.came_through();
            return Ok((IDLE, left_out));
        }
        let mut permits = vec![first];
        while permits.len() < asked.min(LARGEST) {
            let Ok(permit) = self.places.clone().try_acquire_owned() else { break };
            if !self.room.add_one(&mut room) {
                break;
            }
            permits.push(permit);
        }
        let asked = i32::try_from(permits.len()).unwrap_or(1);
        let start = Instant::now();
        let leases = self.db.claim(&jobs, &self.name, asked).await?;
        self.metrics.claim(start.elapsed(), leases.len());
        self.came_through();
        let (count, full) = (leases.len(), leases.len() >= permits.len());
        if count > 0 {
            self.begin(leases, permits, room).await;
        } else {
            drop((permits, room));
        }
        let wait = if full { Duration::ZERO } else { self.db.next_claim_in(&jobs).await? };
        Ok((wait, left_out))
    }

    /// Starts a task for each lease; what comes too late to begin is given back.
    async fn begin(self: &Arc<Self>, mut leases: Vec<Lease>, permits: Vec<OwnedSemaphorePermit>, mut room: Part) {
        let numbers: Vec<i64> = leases.iter().map(|lease| lease.lease).collect();
        let has_http = self.view().standing.is_some_and(|standing| standing.has_http);
        let known = if has_http { self.db.add_endpoints(&mut leases).await } else { Ok(()) };
        if self.is_stopping() || known.is_err() {
            if let Err(trouble) = known {
                self.in_trouble(&trouble);
            }
            // If this is lost as well, the leases run out.
            self.give_back(&numbers).await;
            return;
        }
        for (lease, permit) in leases.into_iter().zip(permits) {
            let (number, job, begun) = (lease.lease, lease.piece.job.clone(), Arc::default());
            let in_flight = InFlight { job, task: None, begun: Arc::clone(&begun), answered: false };
            self.locked_leases().insert(number, in_flight);
            let part = room.split(lease.args.as_ref().map_or(0, |args| args.get().len()));
            let task = tokio::spawn(deliver(self.clone(), lease, permit, part, begun));
            if let Some(in_flight) = self.locked_leases().get_mut(&number) {
                in_flight.task = Some(task.abort_handle());
            }
        }
    }

    /// Gives leases back whose work has not begun.
    pub(super) async fn give_back(&self, leases: &[i64]) {
        match self.db.requeue(leases).await {
            Ok(count) => tracing::info!(count, "given back"),
            Err(trouble) => tracing::warn!(%trouble, count = leases.len(), "cannot give leases back; they run out"),
        }
    }

    /// Looks again who we are, what there is, and which jobs may be claimed.
    async fn refresh(&self) -> bool {
        let looked = async {
            let standing = self.db.standing().await?;
            // A role above row security reads and writes for everybody: it claims nothing, and is not ready.
            let fit = standing.version.is_some() && !standing.too_mighty;
            let jobs = if fit { self.db.jobs().await? } else { Vec::new() };
            Ok::<_, Trouble>((standing, self.claimable(jobs).await?))
        };
        let (standing, jobs) = match looked.await {
            Ok(found) => found,
            Err(trouble) => {
                self.in_trouble(&trouble);
                return false;
            }
        };
        let own = [self.caller.guard().own.clone(), self.db.addresses().await].concat();
        let mut guard = (*self.caller.guard()).clone();
        guard.own = own;
        guard.own.sort();
        guard.own.dedup();
        self.caller.set_guard(guard);
        let mut view = self.locked_view();
        if view.jobs != jobs {
            let names: Vec<_> = jobs.iter().map(|job| job.name.as_str()).collect();
            tracing::info!(jobs = names.join(", "), "these jobs are claimed");
        }
        (view.jobs, view.standing) = (jobs, Some(standing));
        true
    }

    /// Those that awty lets us claim: a membership may come without the right to become the role.
    async fn claimable(&self, jobs: Vec<Job>) -> Result<Vec<Job>, Trouble> {
        let names: Vec<String> = jobs.iter().map(|job| job.name.clone()).collect();
        if names.is_empty() || self.db.next_claim_in(&names).await.is_ok() {
            return Ok(jobs);
        }
        let mut good = Vec::new();
        for job in jobs {
            match self.db.next_claim_in(std::slice::from_ref(&job.name)).await {
                Ok(_) => good.push(job),
                Err(Trouble::Refused { sqlstate, message, .. })
                    if !matches!(sqlstate::kind(&sqlstate), Kind::Away | Kind::Standby) =>
                {
                    tracing::warn!(job = job.name, sqlstate, message, "this job cannot be claimed");
                }
                Err(trouble) => return Err(trouble),
            }
        }
        Ok(good)
    }

    fn came_through(&self) {
        self.answers_again();
        self.locked_view().last_turn = Some(Instant::now());
    }

    /// A statement came through.
    pub(super) fn answers_again(&self) {
        if self.locked_view().trouble.take().is_some() {
            tracing::info!("the database answers again");
        }
    }

    pub(super) fn in_trouble(&self, trouble: &Trouble) {
        let (mut view, text) = (self.locked_view(), trouble.to_string());
        // A change of state is worth a line, each try is not.
        if view.trouble.as_ref() != Some(&text) {
            tracing::warn!(%trouble, "cannot claim");
        }
        view.trouble = Some(text);
    }
}
