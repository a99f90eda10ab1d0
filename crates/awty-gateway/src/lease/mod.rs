//! The worker claims due checks, calls endpoints, sends heartbeats and books answers.
//!
//! Invariant: a claim is at most as large as the free places and the memory for bodies allow. A place is free again
//! only after its answer is booked, so the worker's memory does not grow while the database cannot be reached.

mod answers;
mod aside;
mod beats;
mod claims;
mod deliver;
mod fair_share;
mod jobs;
mod room;
mod take;

pub use answers::book;
pub use beats::beat;
pub use claims::claim;

use crate::config::Secrets;
use crate::db::{Booking, Db, Job, Standing, Trouble};
use crate::duration::Length;
use crate::metrics::Metrics;
use crate::net::call::Caller;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::AbortHandle;

pub struct Worker {
    /// Connections for claims and heartbeats.
    pub db: Db,
    /// Connections for booking answers.
    pub answers_db: Db,
    /// Connections of the API, also used for metrics.
    pub requests_db: Db,
    /// The HTTP client that makes the calls.
    pub caller: Caller,
    pub metrics: Arc<Metrics>,
    /// The gateway's name, as the view awty.lease shows it.
    pub name: String,
    /// Key from which signing keys are derived.
    pub master_key: Vec<u8>,
    pub secrets: Arc<Secrets>,
    /// Timeout of calls whose schedule has no timeout.
    pub timeout: Length,
    /// Longest timeout that a call may have.
    pub max_timeout: Length,
    /// Places that are free for calls.
    pub places: Arc<Semaphore>,
    pub max_in_flight: usize,
    /// Becomes true when the worker must not claim any more checks.
    pub stopping: watch::Receiver<bool>,
    room: room::Room,
    answers: mpsc::UnboundedSender<Answered>,
    leases: Mutex<HashMap<i64, InFlight>>,
    view: Mutex<View>,
    /// The worker is notified when answers were booked and places became free.
    freed: Notify,
    aside: Mutex<aside::Aside>,
    /// Counts the turns, so that each turn begins with a different part of the jobs.
    delivery: AtomicUsize,
}

/// An answer to book, and the place that is freed after it is booked.
pub type Answered = (Booking, OwnedSemaphorePermit);

struct InFlight {
    job: String,
    task: Option<AbortHandle>,
    /// Whether the call has begun. The flag is set once: by the task when it begins, or earlier by the code that gives
    /// the lease back.
    begun: Arc<AtomicBool>,
    /// Whether the call has ended, so that it is not aborted if its lease becomes invalid.
    answered: bool,
}

/// What the worker knows about the database. Readiness and metrics use it.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// The state of the database when it was last read.
    pub standing: Option<Standing>,
    pub jobs: Vec<Job>,
    /// The last error of each activity, or None after a success.
    troubles: [Option<String>; 3],
    /// Time of the last turn that succeeded.
    pub last_turn: Option<tokio::time::Instant>,
}

/// An activity of a worker that needs the database. A success of one activity does not clear the error of another.
#[derive(Clone, Copy, Debug)]
enum Activity {
    Claims,
    Beats,
    Answers,
}

impl View {
    pub fn trouble(&self) -> Option<&str> {
        self.troubles.iter().flatten().next().map(String::as_str)
    }
}

pub struct WorkerConfig {
    pub name: String,
    /// Key from which signing keys are derived.
    pub master_key: Vec<u8>,
    pub secrets: Arc<Secrets>,
    /// Timeout of calls whose schedule has no timeout.
    pub timeout: Length,
    /// Longest timeout that a call may have.
    pub max_timeout: Length,
    /// Maximum number of concurrent calls.
    pub max_in_flight: usize,
}

impl Worker {
    /// Creates a worker, and the channel that receives answers to book.
    pub fn new(
        [db, answers_db, requests_db]: [Db; 3],
        caller: Caller,
        metrics: Arc<Metrics>,
        config: WorkerConfig,
        stopping: watch::Receiver<bool>,
    ) -> (Arc<Self>, mpsc::UnboundedReceiver<Answered>) {
        let (answers, booked) = mpsc::unbounded_channel(); // bounded by the places in its messages
        let worker = Worker {
            db,
            answers_db,
            requests_db,
            caller,
            metrics,
            name: config.name,
            master_key: config.master_key,
            secrets: config.secrets,
            timeout: config.timeout,
            max_timeout: config.max_timeout,
            places: Arc::new(Semaphore::new(config.max_in_flight)),
            max_in_flight: config.max_in_flight,
            stopping,
            room: room::Room::default(),
            answers,
            leases: Mutex::default(),
            view: Mutex::default(),
            freed: Notify::new(),
            aside: Mutex::default(),
            delivery: AtomicUsize::new(0),
        };
        (Arc::new(worker), booked)
    }

    pub fn view(&self) -> View {
        self.locked_view().clone()
    }

    /// Returns the number of calls that are in progress, or whose answers are not booked yet.
    pub fn in_flight(&self) -> usize {
        self.max_in_flight - self.places.available_permits()
    }

    /// Returns whether the gateway can claim nothing because its places or its memory are used up.
    pub fn is_full(&self) -> bool {
        self.places.available_permits() == 0 || self.room.is_full()
    }

    fn locked_view(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn locked_leases(&self) -> MutexGuard<'_, HashMap<i64, InFlight>> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn locked_aside(&self) -> MutexGuard<'_, aside::Aside> {
        self.aside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    fn answers_again(&self, activity: Activity) {
        let mut view = self.locked_view();
        let has_ended = view.troubles[activity as usize].take().is_some() && view.trouble().is_none();
        if has_ended && view.standing.as_ref().is_some_and(|standing| standing.version.is_some() && standing.has_http) {
            tracing::info!("the database answers again");
        }
    }

    fn in_trouble(&self, activity: Activity, trouble: &Trouble) {
        let (mut view, text) = (self.locked_view(), trouble.to_string());
        // The log gets one line per new error, not one per attempt.
        if !view.troubles.iter().flatten().any(|known| *known == text) {
            tracing::warn!(%trouble, part = ?activity, "a request to the database failed");
        }
        view.troubles[activity as usize] = Some(text);
    }
}
