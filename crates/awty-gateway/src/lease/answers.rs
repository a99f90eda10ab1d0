//! Books answers: whatever has gathered while the last batch was booked is the next batch.
//!
//! Invariant: an answer is booked, or the database has refused it; while the database is away it is kept.

use super::{Answered, Worker};
use crate::db::{Booking, Trouble};
use crate::sqlstate::{Kind, kind};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::sleep;

/// Answers of one transaction.
const MANY: usize = 500;
/// Pauses while the database is away double between these.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// Books until the program ends.
pub async fn book(worker: Arc<Worker>, mut answers: mpsc::UnboundedReceiver<Answered>) {
    let mut gathered = Vec::new();
    while answers.recv_many(&mut gathered, MANY).await > 0 {
        let (bookings, places): (Vec<Booking>, Vec<OwnedSemaphorePermit>) = gathered.drain(..).unzip();
        if worker.book_all(&bookings).await.is_err() {
            // One of them is refused; the others are not.
            for booking in bookings {
                let lease = booking.lease;
                if let Err(refusal) = worker.book_all(&[booking]).await {
                    worker.metrics.lease("refused");
                    tracing::error!(lease, refusal, "an answer was refused; the lease runs out");
                }
            }
        }
        drop(places);
    }
}

impl Worker {
    /// Tries until the database answers; an error is a refusal.
    async fn book_all(&self, bookings: &[Booking]) -> Result<(), String> {
        let mut pause = PAUSES.0;
        loop {
            match self.db.book(bookings).await {
                Ok(words) => {
                    words.iter().for_each(|(_, word)| self.metrics.lease(word));
                    if words.iter().any(|(_, word)| word == "next") {
                        self.followed.notify_one();
                    }
                    return Ok(());
                }
                Err(Trouble::Refused { sqlstate, message, .. })
                    if !matches!(kind(&sqlstate), Kind::Away | Kind::Standby | Kind::Again | Kind::TimedOut) =>
                {
                    return Err(format!("{sqlstate}: {message}"));
                }
                Err(trouble) => self.in_trouble(&trouble),
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }
}
