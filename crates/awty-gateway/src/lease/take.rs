use super::aside::is_of_a_job;
use super::deliver::{deliver, filled_size};
use super::room::ReservedRoom;
use super::{Activity, InFlight, Worker};
use crate::db::{Lease, Trouble};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep};

/// A claim fails with these SQLSTATEs if its job was removed, is no longer external, or may no longer be claimed by the
/// gateway.
const GONE: [&str; 3] = ["42704", "42809", "42501"];

pub(super) fn is_gone(trouble: &Trouble) -> bool {
    GONE.iter().any(|sqlstate| trouble.is(sqlstate))
}

/// Longest wait of a claim for a lock, if the gateway has several jobs or only one. A claim of several jobs waits for no
/// other claim.
const PATIENCE: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(10));
/// Pause before the gateway tries again to give back leases that were locked.
const LOCKED: Duration = Duration::from_millis(100);

impl Worker {
    /// Claims from all jobs at once. If that fails, claims from each job in turn, and skips the jobs whose claims fail.
    /// If a job is gone, does so only if `one_by_one` is true.
    pub(super) async fn take_each(
        self: &Arc<Self>,
        jobs: &[String],
        one_by_one: bool,
        permits: &mut Vec<OwnedSemaphorePermit>,
        room: &mut ReservedRoom,
    ) -> Result<usize, Trouble> {
        let together = match self.take(jobs, permits, room).await {
            Err(trouble) if self.has_several() && is_of_a_job(&trouble) && (one_by_one || !is_gone(&trouble)) => {
                trouble
            }
            taken => return taken,
        };
        let (mut count, mut is_good) = (0, false);
        for job in jobs {
            if permits.is_empty() || self.is_stopping() {
                return Ok(count);
            }
            match self.take(std::slice::from_ref(job), permits, room).await {
                Ok(more) => (count, is_good) = (count + more, true),
                Err(trouble) if is_of_a_job(&trouble) => self.put_aside(job, &trouble),
                Err(trouble) => return Err(trouble),
            }
        }
        if is_good || jobs.len() == 1 { Ok(count) } else { Err(together) }
    }

    fn put_aside(&self, job: &str, trouble: &Trouble) {
        let pause = self.locked_aside().add(job, Instant::now());
        self.metrics.set_aside();
        tracing::warn!(job, %trouble, ?pause, "this job cannot be claimed; the next attempt comes after a pause");
    }

    async fn take(
        self: &Arc<Self>,
        jobs: &[String],
        permits: &mut Vec<OwnedSemaphorePermit>,
        room: &mut ReservedRoom,
    ) -> Result<usize, Trouble> {
        let asked = i32::try_from(permits.len()).unwrap_or(1);
        let start = Instant::now();
        let patience = if self.has_several() { PATIENCE.0 } else { PATIENCE.1 };
        let leases = self.db.claim(&self.named(jobs), &self.name, asked, patience).await?;
        self.metrics.claim(start.elapsed(), leases.len());
        let count = leases.len();
        if count > 0 {
            let of_these = permits.split_off(permits.len().saturating_sub(count));
            self.begin(leases, of_these, room).await;
        }
        Ok(count)
    }

    async fn begin(self: &Arc<Self>, leases: Vec<Lease>, permits: Vec<OwnedSemaphorePermit>, room: &mut ReservedRoom) {
        let numbers: Vec<i64> = leases.iter().map(|lease| lease.lease).collect();
        // Heartbeats extend these leases from now on, because the next statement may take long.
        for lease in &leases {
            let in_flight = InFlight { job: lease.delivery.job.clone(), ..InFlight::default() };
            self.locked_leases().insert(lease.lease, in_flight);
        }
        let known = if self.has_http() { self.define(leases).await } else { Ok(leases) };
        if let Err(trouble) = &known {
            self.in_trouble(Activity::Claims, trouble);
        }
        let Some(leases) = known.ok().filter(|_| !self.is_stopping()) else {
            numbers.iter().for_each(|number| drop(self.locked_leases().remove(number)));
            self.give_back(&numbers).await;
            return;
        };
        for (lease, permit) in leases.into_iter().zip(permits) {
            let number = lease.lease;
            let begun = self.locked_leases().get(&number).map(|in_flight| Arc::clone(&in_flight.begun));
            let Some(begun) = begun else { continue };
            let reserved = room.split(filled_size(&lease));
            let used = reserved.as_ref().map(ReservedRoom::used).unwrap_or_default();
            let task = tokio::spawn(deliver(self.clone(), lease, permit, reserved, begun));
            if let Some(in_flight) = self.locked_leases().get_mut(&number) {
                in_flight.task = Some(task.abort_handle());
                in_flight.used = used;
            }
        }
    }

    /// Reads all definitions. If the query fails, queries each job alone, and gives back the leases of failed jobs.
    async fn define(&self, mut leases: Vec<Lease>) -> Result<Vec<Lease>, Trouble> {
        match self.db.add_definitions(&mut leases).await {
            Err(trouble) if is_of_a_job(&trouble) => {}
            known => return known.map(|()| leases),
        }
        let mut jobs = BTreeMap::<String, Vec<Lease>>::new();
        for lease in leases {
            jobs.entry(lease.delivery.job.clone()).or_default().push(lease);
        }
        let mut good = Vec::new();
        for (job, mut leases) in jobs {
            match self.db.add_definitions(&mut leases).await {
                Ok(()) => good.append(&mut leases),
                Err(trouble) if is_of_a_job(&trouble) => {
                    self.put_aside(&job, &trouble);
                    let numbers: Vec<i64> = leases.iter().map(|lease| lease.lease).collect();
                    numbers.iter().for_each(|number| drop(self.locked_leases().remove(number)));
                    self.give_back(&numbers).await;
                }
                Err(trouble) => return Err(trouble),
            }
        }
        Ok(good)
    }

    /// Tries twice, because awty skips leases that the gateway's own heartbeat has just locked.
    pub(super) async fn give_back(&self, leases: &[i64]) {
        let mut given_back = 0;
        for pause in [Duration::ZERO, LOCKED] {
            sleep(pause).await;
            match self.db.requeue(leases).await {
                Ok(count) => given_back += count,
                Err(trouble) => {
                    tracing::warn!(%trouble, count = leases.len(), "cannot return leases; they will expire");
                    return;
                }
            }
            if given_back == leases.len() as i64 {
                break;
            }
        }
        tracing::info!(count = given_back, "given back");
    }
}
