use super::Worker;
use super::room::{OF_HEADER, ReservedRoom};
use crate::config::secrets;
use crate::db::{Answer, Booking, Changes, Failure, Lease, Wait};
use crate::deliver::definition::Definition;
use crate::deliver::request::{
    Delivery, LARGEST_HEADERS, MOST_HEADERS, MOST_REFERENCES, REFERENCE, RequestContext, request,
};
use crate::deliver::result::{Facts, of_call, of_none};
use crate::deliver::retry;
use crate::deliver::unmade::{SECRET_NOT_ALLOWED, Unmade};
use crate::deliver::verdict::{Failed, Verdict, dropped, verdict};
use crate::net::fault::{Fault, NO_FILE};
use serde_json::Value;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::sleep;

/// Pause before the gateway gives back a call for which it had no file descriptor. The call is due again at once.
const NO_FILE_PAUSE: Duration = Duration::from_secs(1);

type Done = (Verdict, Value, Duration);

/// The gateway had no file descriptor for a call, which must count neither as an attempt nor against the target.
struct NoFile(String);

pub(super) fn filled_size(lease: &Lease) -> usize {
    let args = lease.args.as_ref().map_or("", |args| args.get());
    let references = args.matches(REFERENCE).take(MOST_REFERENCES).count();
    let most_headers = args.matches(':').take(MOST_HEADERS).count();
    args.len() + (references * secrets::LONGEST).min(LARGEST_HEADERS) + most_headers * OF_HEADER
}

pub(super) async fn deliver(
    worker: Arc<Worker>,
    mut lease: Lease,
    permit: OwnedSemaphorePermit,
    room: Option<ReservedRoom>,
    begun: Arc<AtomicBool>,
) {
    if begun.swap(true, Ordering::Relaxed) {
        return; // the lease was given back
    }
    let (queue, now) = (lease.age(), lease.now());
    let lateness = seconds(now - lease.delivery.next_check_at);
    let done = caught(work(&worker, &mut lease, room, queue, lateness)).await;
    let done = done.unwrap_or_else(|| {
        // The call's task has panicked. The gateway stores a failed answer to end the lease, because heartbeats would
        // otherwise extend the lease until its deadline.
        let message = "internal: the gateway could not make this call; its log says why".into();
        Ok(not_made(lateness, Failed { fault: "internal", message, ..Failed::default() }))
    });
    let (verdict, result, duration) = match done {
        Ok(done) => done,
        Err(NoFile(why)) => {
            let Delivery { job, entity_name, .. } = &lease.delivery;
            tracing::warn!(job, target = entity_name, why, "the gateway has no file descriptor for this call");
            sleep(NO_FILE_PAUSE).await;
            return worker.give_back_one(lease.lease, permit).await;
        }
    };
    worker.metrics.delivery(&verdict, result.get("status").and_then(Value::as_u64), duration, lateness);
    log(&lease, &verdict, &result);
    let mut booking = booking(&lease, verdict, result);
    booking.wait = booking.wait.filter(|_| worker.has_http());
    booking.send = booking.send.filter(|_| worker.has_http());
    if let Some(in_flight) = worker.locked_leases().get_mut(&lease.lease) {
        in_flight.answered = true;
    }
    let _ = worker.answers.send((booking, permit));
}

async fn caught<T>(work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
        Ok(polled) => polled.map(Some),
        Err(_) => Poll::Ready(None),
    })
    .await
}

fn not_made(lateness: f64, failed: Failed) -> Done {
    let result = of_none(lateness, failed.fault);
    (Verdict::Failed(failed), result, Duration::ZERO)
}

async fn work(
    worker: &Worker,
    lease: &mut Lease,
    room: Option<ReservedRoom>,
    queue: Duration,
    lateness: f64,
) -> Result<Done, NoFile> {
    let not_made = |failed| Ok(not_made(lateness, failed));
    let not_started = |fault, message| Failed { fault, message, not_started: true, ..Failed::default() };
    if lease.role.is_empty() {
        return not_made(not_started("request", "request: its job belongs to no tenant of the gateway".into()));
    }
    if lease.endpoint.as_ref().is_some_and(|endpoint| endpoint.deleted) {
        return not_made(not_started("deleted", "the schedule was deleted".into()));
    }
    if lease.endpoint.is_none() && lease.args.is_none() {
        // Makes no call if the schedule's row cannot be read. The request would then have only default values.
        return not_made(not_started("request", "request: this gateway sees no schedule of that URI".into()));
    }
    let mut definition = match Definition::of_args(lease.args.take().as_deref()) {
        Ok(definition) => definition,
        Err(why) => return not_made(not_started("request", format!("request: {why}"))),
    };
    let now = lease.now();
    if let Some(Verdict::Failed(failed)) = dropped(&lease.delivery, &definition, now) {
        return not_made(failed);
    }
    let spread = rand::random_range(-1.0..=1.0);
    let delivery = &lease.delivery;
    let secret = |name: &str| worker.secret(&lease.role, delivery, name);
    let context = RequestContext { master_key: &worker.master_key, timeout: worker.timeout, now, secret: &secret };
    let mut call = match request(&lease.delivery, &mut definition, &context) {
        Ok(call) => call,
        Err(Unmade { why, fault: NO_FILE, .. }) => return Err(NoFile(why)),
        Err(Unmade { why, may_come, fault }) => {
            // If the file of a secret is missing, the gateway tries the call again later, because the file may still be
            // created.
            let again = || retry::next(&definition.retries, lease.delivery.attempt, now, None, spread);
            let retry_at = may_come.then(again).flatten();
            return not_made(Failed { retry_at, ..not_started(fault, format!("{fault}: {why}")) });
        }
    };
    call.timeout = call.timeout.min(worker.max_timeout.std()).min(lease.left());
    let _head = room.and_then(|room| room.hold(&mut call));
    let report = worker.caller.call(call).await;
    match &report.outcome {
        Err(failure) if failure.fault == Fault::NoFile && !report.sent => return Err(NoFile(failure.detail.clone())),
        _ => {}
    }
    let verdict = verdict(&lease.delivery, &definition, &report, lease.now(), spread);
    let (fault, note) = match &verdict {
        Verdict::Done { note, .. } => (None, note.as_deref()),
        Verdict::Failed(failed) => (Some(failed.fault), None),
    };
    let keep_body = definition.keep_response || fault.is_some();
    let result = of_call(&report, &Facts { lateness, queue, fault, keep_body, note });
    if fault == Some("blocked-address") {
        worker.metrics.blocked();
    }
    Ok((verdict, result, report.phases.total))
}

fn booking(lease: &Lease, verdict: Verdict, result: Value) -> Booking {
    let mut wait = None;
    let (answer, asked, failing) = match verdict {
        Verdict::Done { again, stop, .. } => (Answer::Complete { again }, stop.map(|why| ("stop", why)), Some(false)),
        Verdict::Failed(failed) => {
            let asked = failed.gone.then(|| ("hold", "the endpoint answered that it is gone".to_owned()));
            let failing = (failed.fault != "dropped").then_some(true);
            let Failed { message, retry_at, not_started, target_down, block_until, .. } = failed;
            wait = block_until.map(|until| Wait {
                job: lease.delivery.job.clone(),
                target: lease.delivery.entity_name.clone(),
                until,
                note: message.clone(),
            });
            (Answer::Fail(Failure { message, retry_at, not_started, target_down }), asked, failing)
        }
    };
    let changes = lease.endpoint.as_ref().map(|endpoint| {
        let failing = failing.filter(|failing| *failing != endpoint.failing).map(|failing| (failing, lease.now()));
        Changes { id: endpoint.id.clone(), failing, asked }
    });
    let changes = changes.filter(|changes| changes.failing.is_some() || changes.asked.is_some());
    let delivery = &lease.delivery;
    let send = delivery
        .entity_key
        .contains('#')
        .then(|| [&delivery.job, &delivery.entity_name, &delivery.entity_key].map(Clone::clone));
    Booking { lease: lease.lease, job: lease.delivery.job.clone(), answer, result, changes, wait, send }
}

fn log(lease: &Lease, verdict: &Verdict, result: &Value) {
    let (delivery, id) = (&lease.delivery, lease.endpoint.as_ref().map_or("-", |endpoint| &endpoint.id));
    let phases = result.get("phases").map(Value::to_string).unwrap_or_default();
    match verdict {
        Verdict::Done { .. } => {
            tracing::debug!(schedule = id, slot = %delivery.first_check_at, attempt = delivery.attempt, phases, "delivered");
        }
        Verdict::Failed(failed) => {
            let (fault, again) = (failed.fault, failed.retry_at.is_some());
            tracing::info!(schedule = id, job = delivery.job, target = delivery.entity_name, slot = %delivery.first_check_at,
                attempt = delivery.attempt, fault, again, phases, "failed");
        }
    }
}

fn seconds(length: chrono::TimeDelta) -> f64 {
    length.as_seconds_f64()
}

impl Worker {
    pub(super) fn has_http(&self) -> bool {
        self.locked_view().standing.as_ref().is_some_and(|standing| standing.has_http)
    }

    async fn give_back_one(&self, number: i64, permit: OwnedSemaphorePermit) {
        if self.locked_leases().remove(&number).is_some() {
            self.give_back(&[number]).await;
        }
        drop(permit);
        self.freed.notify_one();
    }

    fn secret(&self, role: &str, delivery: &Delivery, name: &str) -> Result<String, Unmade> {
        let (job, origin) = (&delivery.job, &delivery.entity_name);
        self.secrets.of(role, origin, name).inspect_err(|unmade| {
            if unmade.fault == SECRET_NOT_ALLOWED {
                self.metrics.secret_refused();
                tracing::warn!(job, role, secret = name, origin, "a secret may not be sent to this origin");
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::caught;

    #[tokio::test]
    async fn a_mistake_in_one_call_is_an_answer() {
        assert_eq!(caught(async { 7 }).await, Some(7));
        let stumbles = async {
            tokio::task::yield_now().await;
            assert!(std::hint::black_box(false), "a mistake");
        };
        assert_eq!(caught(stumbles).await, None);
    }
}
