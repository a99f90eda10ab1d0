//! Stores ("books") answers in batches.
//!
//! Invariant: the gateway keeps an answer until the database has stored or refused it. Until then, heartbeats extend
//! the answer's lease. A client that locks the check of one answer delays the other answers only briefly.

use super::{Activity, Answered, Worker};
use crate::db::{Booking, Trouble};
use crate::sqlstate::{Kind, kind};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::{Instant, sleep, sleep_until};

const MANY: usize = 500;
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// Lock timeouts for storing a whole batch of answers, and a part of a batch. A locked check or lease causes no
/// timeout, because awty returns `busy` at once.
const LOCKED: (Duration, Duration) = (Duration::from_millis(200), Duration::from_millis(20));
/// Pauses before the gateway tries again to store an answer after a lock has prevented this. The first pause is short,
/// because the gateway's own heartbeat may have locked the lease.
const ASIDE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

struct Batch {
    bookings: Vec<Booking>,
    places: Vec<OwnedSemaphorePermit>,
    due: Instant,
    is_locked: bool,
}

impl Batch {
    fn new(bookings: Vec<Booking>, places: Vec<OwnedSemaphorePermit>) -> Self {
        Batch { bookings, places, due: Instant::now(), is_locked: false }
    }

    /// Returns whether an answer asks for a change of its schedule. A tenant can lock the name of its job against such a
    /// change.
    fn asks(&self) -> bool {
        self.bookings.iter().any(asks)
    }

    /// Splits a failed batch by jobs, so that the answers of one tenant delay the others only briefly. Splits off those
    /// answers of one job that ask for a change. If all or none of them ask, halves the batch.
    fn parts(mut self) -> Result<Vec<Batch>, Batch> {
        self.bookings.sort_by(|a, b| (&a.job, asks(a)).cmp(&(&b.job, asks(b))));
        let lengths = |is_same: fn(&Booking, &Booking) -> bool| -> Vec<usize> {
            self.bookings.chunk_by(is_same).map(<[Booking]>::len).collect()
        };
        let (of_jobs, half) = (lengths(|a, b| a.job == b.job), self.bookings.len() / 2);
        let lengths = match (of_jobs.len(), lengths(|a, b| asks(a) == asks(b))) {
            (1, by_asking) if by_asking.len() > 1 => by_asking,
            (1, _) if half == 0 => return Err(self),
            (1, _) => vec![half, self.bookings.len() - half],
            _ => of_jobs,
        };
        let mut part =
            |length| Batch::new(self.bookings.drain(..length).collect(), self.places.drain(..length).collect());
        Ok(lengths.into_iter().map(&mut part).collect())
    }

    fn split(self, busy: &HashSet<i64>) -> (Batch, Option<Batch>) {
        let all = self.bookings.into_iter().zip(self.places);
        let (locked, booked): (Vec<_>, Vec<_>) = all.partition(|(booking, _)| busy.contains(&booking.lease));
        let of = |some: Vec<(Booking, OwnedSemaphorePermit)>| {
            let (bookings, places) = some.into_iter().unzip();
            Batch::new(bookings, places)
        };
        let locked = (!locked.is_empty()).then(|| Batch { is_locked: self.is_locked, ..of(locked) }.later());
        (of(booked), locked)
    }

    fn later(self) -> Self {
        let pause = if self.is_locked { ASIDE.1 } else { ASIDE.0 };
        Batch { due: Instant::now() + pause, is_locked: true, ..self }
    }
}

fn asks(booking: &Booking) -> bool {
    booking.changes.as_ref().is_some_and(|changes| changes.asked.is_some())
}

/// Removes and returns the batch that is stored next. Answers that ask for a change of their schedule come after the
/// others, because they may wait for a lock one by one.
fn next(queue: &mut Vec<Batch>, now: Instant) -> Option<Batch> {
    let due = queue.iter().enumerate().filter(|(_, batch)| batch.due <= now);
    let (place, _) = due.min_by_key(|(_, batch)| (batch.is_locked, batch.asks(), batch.due))?;
    Some(queue.swap_remove(place))
}

enum Unbooked {
    Locked,
    Refused(String),
}

pub async fn book(worker: Arc<Worker>, answers: mpsc::UnboundedReceiver<Answered>) {
    let (aside, parts) = mpsc::unbounded_channel(); // bounded by the places for calls that each batch holds
    tokio::join!(worker.book_gathered(answers, aside), worker.book_aside(parts));
}

impl Worker {
    async fn book_gathered(&self, mut answers: mpsc::UnboundedReceiver<Answered>, aside: mpsc::UnboundedSender<Batch>) {
        let mut gathered = Vec::new();
        while answers.recv_many(&mut gathered, MANY).await > 0 {
            let (bookings, places) = gathered.drain(..).unzip();
            let batch = Batch::new(bookings, places);
            let rest = match self.book_all(&batch.bookings, LOCKED.0).await {
                Ok(busy) => self.booked(batch, &busy).into_iter().collect(),
                Err(_) => batch.parts().unwrap_or_else(|one| vec![one]),
            };
            // Cannot fail, because the receiver lives as long as the sender.
            rest.into_iter().for_each(|part| drop(aside.send(part)));
        }
    }

    /// Splits a failed batch until only the answers that cause the failure are left.
    async fn book_aside(&self, mut parts: mpsc::UnboundedReceiver<Batch>) {
        let mut queue = Vec::<Batch>::new();
        loop {
            queue.extend(std::iter::from_fn(|| parts.try_recv().ok()));
            let now = Instant::now();
            let Some(batch) = next(&mut queue, now) else {
                let due = queue.iter().map(|batch| batch.due).min();
                tokio::select! {
                    received = parts.recv() => match received {
                        Some(batch) => queue.push(batch),
                        None => return,
                    },
                    () = sleep_until(due.unwrap_or(now)), if due.is_some() => {}
                }
                continue;
            };
            match self.book_all(&batch.bookings, LOCKED.1).await {
                Ok(busy) => queue.extend(self.booked(batch, &busy)),
                Err(unbooked) => match (batch.parts(), unbooked) {
                    (Ok(parts), _) => queue.extend(parts),
                    (Err(one), Unbooked::Locked) => queue.push(one.later()),
                    (Err(mut one), Unbooked::Refused(refusal)) => {
                        if one.bookings.iter_mut().any(Booking::become_ascii) {
                            queue.push(one);
                            continue;
                        }
                        self.metrics.lease("refused");
                        let lease = one.bookings.first().map(|booking| booking.lease);
                        tracing::error!(lease, refusal, "an answer was refused; the lease will expire");
                        self.booked(one, &HashSet::new());
                    }
                },
            }
        }
    }

    fn booked(&self, batch: Batch, busy: &HashSet<i64>) -> Option<Batch> {
        let (batch, rest) = batch.split(busy);
        let mut leases = self.locked_leases();
        batch.bookings.iter().for_each(|booking| drop(leases.remove(&booking.lease)));
        drop((leases, batch.places));
        self.freed.notify_one();
        rest
    }

    async fn book_all(&self, bookings: &[Booking], patience: Duration) -> Result<HashSet<i64>, Unbooked> {
        let mut pause = PAUSES.0;
        loop {
            match self.answers_db.book(bookings, patience).await {
                Ok(words) => {
                    self.answers_again(Activity::Answers);
                    words.iter().for_each(|(_, word)| self.metrics.lease(word));
                    return Ok(words.into_iter().filter(|(_, word)| word == "busy").map(|(lease, _)| lease).collect());
                }
                Err(Trouble::Refused { sqlstate, message, .. })
                    if !matches!(kind(&sqlstate), Kind::Away | Kind::Standby | Kind::Again) =>
                {
                    self.answers_again(Activity::Answers);
                    return Err(match kind(&sqlstate) {
                        Kind::TimedOut => Unbooked::Locked,
                        _ => Unbooked::Refused(format!("{sqlstate}: {message}")),
                    });
                }
                Err(trouble) => self.in_trouble(Activity::Answers, &trouble),
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }
}

#[cfg(test)]
#[path = "answers_tests.rs"]
mod tests;
