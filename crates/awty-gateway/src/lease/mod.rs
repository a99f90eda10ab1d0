//! Invariant: a worker claims only as many checks as it has free places for calls and free memory for request bodies.
//!
//! A place becomes free only after the database has stored the call's answer, so that waiting answers do not fill the
//! memory.

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
    pub db: Db,
    pub answers_db: Db,
    pub requests_db: Db,
    pub caller: Caller,
    pub metrics: Arc<Metrics>,
    pub name: String,
    pub master_key: Vec<u8>,
    pub secrets: Arc<Secrets>,
    pub timeout: Length,
    pub max_timeout: Length,
    pub places: Arc<Semaphore>,
    pub max_in_flight: usize,
    pub stopping: watch::Receiver<bool>,
    room: room::Room,
    answers: mpsc::UnboundedSender<Answered>,
    leases: Mutex<HashMap<i64, InFlight>>,
    view: Mutex<View>,
    freed: Notify,
    aside: Mutex<aside::Aside>,
    delivery: AtomicUsize,
}

pub type Answered = (Booking, OwnedSemaphorePermit);

#[derive(Default)]
struct InFlight {
    job: String,
    /// Time of the last heartbeat.
    extended: Option<tokio::time::Instant>,
    used: room::Used,
    task: Option<AbortHandle>,
    /// True if the call must no longer be started: it has begun, or the gateway has returned the lease.
    begun: Arc<AtomicBool>,
    /// True after the call has ended. From then on, an invalid lease does not abort the call's task.
    answered: bool,
}

#[derive(Clone, Debug, Default)]
pub struct View {
    pub standing: Option<Standing>,
    pub jobs: Vec<Job>,
    pub refusal: Option<String>,
    troubles: [Option<String>; 3],
    pub last_turn: Option<tokio::time::Instant>,
}

/// The success of an activity clears only this activity's last error.
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
    pub master_key: Vec<u8>,
    pub secrets: Arc<Secrets>,
    pub timeout: Length,
    pub max_timeout: Length,
    pub max_in_flight: usize,
}

impl Worker {
    pub fn new(
        [db, answers_db, requests_db]: [Db; 3],
        caller: Caller,
        metrics: Arc<Metrics>,
        config: WorkerConfig,
        stopping: watch::Receiver<bool>,
    ) -> (Arc<Self>, mpsc::UnboundedReceiver<Answered>) {
        let (answers, booked) = mpsc::unbounded_channel(); // bounded by the places for calls that each answer holds
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

    /// Number of calls, including ended calls whose answers are not stored yet.
    pub fn in_flight(&self) -> usize {
        self.max_in_flight - self.places.available_permits()
    }

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
        if !view.troubles.iter().flatten().any(|known| *known == text) {
            tracing::warn!(%trouble, part = ?activity, "a request to the database failed");
        }
        view.troubles[activity as usize] = Some(text);
    }
}
