//! The worker aborts a call whose lease is no longer valid, because the call may be made again under a new lease.

use super::{Activity, InFlight, Worker};
use crate::db::Job;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::{Instant, sleep};

const USUAL: Duration = Duration::from_secs(5);
const SHORTEST: Duration = Duration::from_millis(200);
const MANY: usize = 10_000;

pub async fn beat(worker: Arc<Worker>) {
    loop {
        let rhythms = Rhythms::of(&worker.view().jobs);
        sleep(rhythms.pause).await;
        let now = Instant::now();
        let (due, is_idle) = {
            let leases = worker.locked_leases();
            (rhythms.due(&leases, now), leases.is_empty())
        };
        if is_idle {
            worker.answers_again(Activity::Beats); // no lease is left to extend
        }
        for some in due.chunks(MANY) {
            match worker.db.heartbeat(some).await {
                Ok(void) => {
                    worker.answers_again(Activity::Beats);
                    worker.extended(some, now);
                    worker.give_up(&void);
                }
                Err(trouble) => worker.in_trouble(Activity::Beats, &trouble),
            }
        }
    }
}

/// Each job has its own pause between heartbeats, so that a job with a short heartbeat does not make the gateway extend
/// the leases of all jobs as often. A lease survives the loss of two heartbeats in a row.
struct Rhythms {
    of_jobs: HashMap<String, Duration>,
    /// Shortest pause of all jobs.
    pause: Duration,
}

impl Rhythms {
    fn of(jobs: &[Job]) -> Self {
        let third = |job: &Job| job.heartbeat.map_or(USUAL, |heartbeat| (heartbeat / 3).clamp(SHORTEST, USUAL));
        let of_jobs: HashMap<String, Duration> = jobs.iter().map(|job| (job.name.clone(), third(job))).collect();
        let pause = of_jobs.values().min().copied().unwrap_or(USUAL);
        Rhythms { of_jobs, pause }
    }

    /// Returns the leases whose pause would be over before the next look.
    fn due(&self, leases: &HashMap<i64, InFlight>, now: Instant) -> Vec<i64> {
        let is_due = |lease: &InFlight| {
            let pause = self.of_jobs.get(&lease.job).unwrap_or(&self.pause);
            lease.extended.is_none_or(|extended| extended + *pause < now + self.pause)
        };
        leases.iter().filter(|(_, lease)| is_due(lease)).map(|(number, _)| *number).collect()
    }
}

impl Worker {
    fn extended(&self, numbers: &[i64], now: Instant) {
        let mut leases = self.locked_leases();
        for number in numbers {
            if let Some(lease) = leases.get_mut(number) {
                lease.extended = Some(now);
            }
        }
    }

    fn give_up(&self, void: &[i64]) {
        let mut leases = self.locked_leases();
        for number in void {
            let calls = leases.get(number).is_some_and(|in_flight| !in_flight.answered);
            if let Some(in_flight) = calls.then(|| leases.remove(number)).flatten() {
                self.metrics.lease("void");
                if let Some(task) = in_flight.task {
                    task.abort();
                }
            }
        }
    }

    pub async fn give_back_unbegun(&self) {
        let unbegun: Vec<i64> = {
            let mut leases = self.locked_leases();
            let unbegun = leases.iter().filter(|(_, one)| !one.begun.swap(true, Ordering::Relaxed));
            let numbers: Vec<i64> = unbegun.map(|(number, _)| *number).collect();
            for number in &numbers {
                if let Some(task) = leases.remove(number).and_then(|one| one.task) {
                    task.abort();
                }
            }
            numbers
        };
        if !unbegun.is_empty() {
            self.give_back(&unbegun).await;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a panic fails the test

    use super::*;

    #[test]
    fn a_short_heartbeat_of_one_job_extends_no_lease_of_another() {
        let job = |name: &str, seconds| Job { name: name.into(), heartbeat: Some(Duration::from_secs(seconds)) };
        let rhythms = Rhythms::of(&[job("quick", 1), job("middle", 9), job("usual", 60)]);
        assert_eq!(rhythms.pause, Duration::from_secs(1) / 3);
        let of = |job: &str| InFlight { job: job.into(), ..InFlight::default() };
        let mut leases = HashMap::from([(1, of("quick")), (2, of("middle")), (3, of("usual")), (4, of("gone"))]);
        let (start, mut counts) = (Instant::now(), [0; 5]);
        for look in 0..180 {
            let now = start + rhythms.pause * look;
            for number in rhythms.due(&leases, now) {
                let lease = leases.get_mut(&number).unwrap();
                let pause = rhythms.of_jobs.get(&lease.job).unwrap_or(&rhythms.pause);
                assert!(lease.extended.is_none_or(|extended| now - extended <= *pause), "{} is late", lease.job);
                lease.extended = Some(now);
                counts[usize::try_from(number).unwrap()] += 1;
            }
        }
        assert_eq!([counts[1], counts[4]], [180, 180]);
        assert!(counts[2] <= 23 && counts[3] <= 13, "a minute has {counts:?} heartbeats");
    }
}
