//! The worker: claims what is due, has it called, beats, books answers.
//!
//! Invariant: no more is claimed than there are free places and room for bodies, and a place is free again only once the answer is booked. So nothing
//! here grows while the database is away.

mod answers;
mod aside;
mod beats;
mod claims;
mod deliver;
mod jobs;
mod room;
mod share;
mod take;

pub use answers::book;
pub use beats::beat;
pub use claims::claim;

use crate::config::Grants;
use crate::db::{Booking, Db, Job, Standing, Trouble};
use crate::duration::Length;
use crate::metrics::Metrics;
use crate::net::call::Caller;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::AbortHandle;

/// What a worker works with.
pub struct Worker {
    /// For claims and heartbeats.
    pub db: Db,
    /// For answers.
    pub answers_db: Db,
    /// For figures, with the API.
    pub requests_db: Db,
    /// Makes the calls.
    pub caller: Caller,
    /// Counts.
    pub metrics: Arc<Metrics>,
    /// Its name in awty.lease.
    pub name: String,
    /// From which signing keys are derived.
    pub master_key: Vec<u8>,
    /// Where secrets lie.
    pub credentials: PathBuf,
    /// Which secrets may go where.
    pub grants: Grants,
    /// Of a call whose schedule names none.
    pub timeout: Length,
    /// No call takes longer.
    pub max_timeout: Length,
    /// Free places.
    pub places: Arc<Semaphore>,
    /// How many places there are.
    pub max_in_flight: usize,
    /// True: claim no more.
    pub stopping: watch::Receiver<bool>,
    room: room::Room,
    answers: mpsc::UnboundedSender<Answered>,
    leases: Mutex<HashMap<i64, InFlight>>,
    view: Mutex<View>,
    /// Answers were booked, and places are free again.
    freed: Notify,
    aside: Mutex<aside::Aside>,
    /// Where the next turn begins among the pieces of jobs.
    piece: AtomicUsize,
}

/// A booking, and the place that it frees.
pub type Answered = (Booking, OwnedSemaphorePermit);

/// A lease that is worked on.
struct InFlight {
    job: String,
    task: Option<AbortHandle>,
    /// Set once: by the task that begins, or by who gives the lease back before.
    begun: Arc<AtomicBool>,
    /// The call has ended; its booking tells what becomes of the lease.
    answered: bool,
}

/// What the worker knows of the database, for readiness and metrics.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// What was found when it was last asked.
    pub standing: Option<Standing>,
    /// The jobs that are claimed.
    pub jobs: Vec<Job>,
    /// Why the last statement of each part failed.
    troubles: [Option<String>; 3],
    /// When the last turn came through.
    pub last_turn: Option<tokio::time::Instant>,
}

/// A part of the worker: a statement of one that comes through says nothing of those of another.
#[derive(Clone, Copy, Debug)]
enum Part {
    Claims,
    Beats,
    Answers,
}

impl View {
    /// Why a part cannot work.
    pub fn trouble(&self) -> Option<&str> {
        self.troubles.iter().flatten().next().map(String::as_str)
    }
}

/// What is configured of a worker.
pub struct Terms {
    /// Its name.
    pub name: String,
    /// The key of keys.
    pub master_key: Vec<u8>,
    /// Where secrets lie.
    pub credentials: PathBuf,
    /// Which secrets may go where.
    pub grants: Grants,
    /// Of a call.
    pub timeout: Length,
    /// No call takes longer.
    pub max_timeout: Length,
    /// Calls at once.
    pub max_in_flight: usize,
}

impl Worker {
    /// A worker, and where its answers arrive.
    pub fn new(
        [db, answers_db, requests_db]: [Db; 3],
        caller: Caller,
        metrics: Arc<Metrics>,
        terms: Terms,
        stopping: watch::Receiver<bool>,
    ) -> (Arc<Self>, mpsc::UnboundedReceiver<Answered>) {
        let (answers, booked) = mpsc::unbounded_channel(); // bounded by the places that its messages hold
        let worker = Worker {
            db,
            answers_db,
            requests_db,
            caller,
            metrics,
            name: terms.name,
            master_key: terms.master_key,
            credentials: terms.credentials,
            grants: terms.grants,
            timeout: terms.timeout,
            max_timeout: terms.max_timeout,
            places: Arc::new(Semaphore::new(terms.max_in_flight)),
            max_in_flight: terms.max_in_flight,
            stopping,
            room: room::Room::default(),
            answers,
            leases: Mutex::default(),
            view: Mutex::default(),
            freed: Notify::new(),
            aside: Mutex::default(),
            piece: AtomicUsize::new(0),
        };
        (Arc::new(worker), booked)
    }

    /// What is known of the database.
    pub fn view(&self) -> View {
        self.locked_view().clone()
    }

    /// Calls that are made, or whose answers are not booked yet.
    pub fn in_flight(&self) -> usize {
        self.max_in_flight - self.places.available_permits()
    }

    /// Nothing can be claimed now, and nothing is wrong.
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

    /// A statement of that part came through.
    fn answers_again(&self, part: Part) {
        let mut view = self.locked_view();
        if view.troubles[part as usize].take().is_some() && view.trouble().is_none() {
            tracing::info!("the database answers again");
        }
    }

    fn in_trouble(&self, part: Part, trouble: &Trouble) {
        let (mut view, text) = (self.locked_view(), trouble.to_string());
        // A change of state is worth a line, each try is not.
        if !view.troubles.iter().flatten().any(|known| *known == text) {
            tracing::warn!(%trouble, ?part, "the database does not do what it is asked for");
        }
        view.troubles[part as usize] = Some(text);
    }
}
