//! The worker aborts a call whose lease is no longer valid, because the call may be made again under a new lease.

use super::{Activity, Worker};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::sleep;

const USUAL: Duration = Duration::from_secs(5);
const MANY: usize = 10_000;

pub async fn beat(worker: Arc<Worker>) {
    loop {
        sleep(worker.rhythm()).await;
        let leases: Vec<i64> = worker.locked_leases().keys().copied().collect();
        if leases.is_empty() {
            worker.answers_again(Activity::Beats); // no lease is left to extend
        }
        for some in leases.chunks(MANY) {
            match worker.db.heartbeat(some).await {
                Ok(void) => {
                    worker.answers_again(Activity::Beats);
                    worker.give_up(&void);
                }
                Err(trouble) => worker.in_trouble(Activity::Beats, &trouble),
            }
        }
    }
}

impl Worker {
    /// Returns the pause between heartbeats. A lease survives the loss of two heartbeats in a row.
    fn rhythm(&self) -> Duration {
        let shortest = self.view().jobs.iter().filter_map(|job| job.heartbeat).min();
        shortest.map_or(USUAL, |shortest| (shortest / 3).clamp(Duration::from_millis(200), USUAL))
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
