//! Books answers: whatever has gathered while the last batch was booked is the next batch.
//!
//! Invariant: an answer is booked, or the database has refused it; while the database is away it is kept. Its lease is beaten until
//! then. An answer that waits for somebody's lock holds up no other for long.

use super::{Answered, Part, Worker};
use crate::db::{Booking, Trouble};
use crate::sqlstate::{Kind, kind};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::{Instant, sleep, sleep_until};

/// Answers of one transaction.
const MANY: usize = 500;
/// Pauses while the database is away double between these.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// A batch waits for a lock so long, and its parts aside.
const LOCKED: (Duration, Duration) = (Duration::from_secs(1), Duration::from_millis(100));
/// An answer that somebody's lock keeps from being booked is tried again after this.
const ASIDE: Duration = Duration::from_secs(1);

/// Answers with their places, and when they are tried.
struct Batch {
    bookings: Vec<Booking>,
    places: Vec<OwnedSemaphorePermit>,
    due: Instant,
}

impl Batch {
    /// The halves; none: there is only one answer.
    fn halves(mut self) -> Result<[Batch; 2], Batch> {
        let middle = self.bookings.len() / 2;
        if middle == 0 {
            return Err(self);
        }
        let (bookings, places) = (self.bookings.split_off(middle), self.places.split_off(middle));
        let due = self.due;
        Ok([self, Batch { bookings, places, due }])
    }
}

/// Why a batch is not booked.
enum Unbooked {
    /// Somebody has locked what it changes.
    Locked,
    /// The database refuses it, or one of it.
    Refused(String),
}

/// Books until the program ends.
pub async fn book(worker: Arc<Worker>, answers: mpsc::UnboundedReceiver<Answered>) {
    let (aside, parts) = mpsc::unbounded_channel(); // bounded by the places that its messages hold
    tokio::join!(worker.book_gathered(answers, aside), worker.book_aside(parts));
}

impl Worker {
    async fn book_gathered(&self, mut answers: mpsc::UnboundedReceiver<Answered>, aside: mpsc::UnboundedSender<Batch>) {
        let mut gathered = Vec::new();
        while answers.recv_many(&mut gathered, MANY).await > 0 {
            let (bookings, places) = gathered.drain(..).unzip();
            let batch = Batch { bookings, places, due: Instant::now() };
            match self.book_all(&batch.bookings, LOCKED.0).await {
                Ok(()) => self.booked(batch),
                Err(_) => drop(aside.send(batch)), // the other end lives as long
            }
        }
    }

    /// Halves batches until it is known which answer cannot be booked; the others are.
    async fn book_aside(&self, mut parts: mpsc::UnboundedReceiver<Batch>) {
        let mut queue = VecDeque::<Batch>::new();
        loop {
            while let Ok(batch) = parts.try_recv() {
                queue.push_front(batch);
            }
            let now = Instant::now();
            let Some(batch) = queue.iter().position(|batch| batch.due <= now).and_then(|place| queue.remove(place))
            else {
                let due = queue.iter().map(|batch| batch.due).min();
                tokio::select! {
                    received = parts.recv() => match received {
                        Some(batch) => queue.push_front(batch),
                        None => return,
                    },
                    () = sleep_until(due.unwrap_or(now)), if due.is_some() => {}
                }
                continue;
            };
            let unbooked = match self.book_all(&batch.bookings, LOCKED.1).await {
                Ok(()) => {
                    self.booked(batch);
                    continue;
                }
                Err(unbooked) => unbooked,
            };
            match (batch.halves(), unbooked) {
                (Ok(halves), _) => halves.into_iter().for_each(|half| queue.push_front(half)),
                (Err(one), Unbooked::Locked) => queue.push_back(Batch { due: Instant::now() + ASIDE, ..one }),
                (Err(one), Unbooked::Refused(refusal)) => {
                    self.metrics.lease("refused");
                    let lease = one.bookings.first().map(|booking| booking.lease);
                    tracing::error!(lease, refusal, "an answer was refused; the lease runs out");
                    self.booked(one);
                }
            }
        }
    }

    /// Frees the places; the leases are not beaten any more.
    fn booked(&self, batch: Batch) {
        let mut leases = self.locked_leases();
        batch.bookings.iter().for_each(|booking| drop(leases.remove(&booking.lease)));
        drop((leases, batch.places));
        self.freed.notify_one();
    }

    /// Tries until the database answers.
    async fn book_all(&self, bookings: &[Booking], patience: Duration) -> Result<(), Unbooked> {
        let mut pause = PAUSES.0;
        loop {
            match self.answers_db.book(bookings, patience).await {
                Ok(words) => {
                    self.answers_again(Part::Answers);
                    words.iter().for_each(|(_, word)| self.metrics.lease(word));
                    return Ok(());
                }
                Err(Trouble::Refused { sqlstate, message, .. })
                    if !matches!(kind(&sqlstate), Kind::Away | Kind::Standby | Kind::Again) =>
                {
                    self.answers_again(Part::Answers);
                    return Err(match kind(&sqlstate) {
                        Kind::TimedOut => Unbooked::Locked,
                        _ => Unbooked::Refused(format!("{sqlstate}: {message}")),
                    });
                }
                Err(trouble) => self.in_trouble(Part::Answers, &trouble),
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }
}
