//! Gives each free place to the waiting role that holds the fewest places, and then to the role whose requests have
//! taken the least time. Otherwise, requests of many roles that take just less than a second each would delay the
//! requests of other roles by seconds.
//!
//! Invariant: a role that waits counts as at most [`LONG`] behind the role that has taken the least time. So the number
//! of waiting roles alone limits the longest wait.

use super::problem::{Problem, stopping};
use super::role::{LONG, Role};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

pub const CHANGES: usize = 3;
/// Number of database connections that are only for reads and for looking up tokens.
pub const READS: usize = 2;
const ALL: usize = CHANGES + READS - 1;
const SLOW: usize = 1;

#[derive(Default)]
pub struct Places(Mutex<Taken>);

/// Counts are of reads and of changes.
#[derive(Default)]
struct Taken {
    all: [usize; 2],
    slow: [usize; 2],
    waiting: Vec<Waiting>,
    /// Least time that a waiting role has taken. It never falls, so that a role saves up no time while it rests.
    level: Duration,
}

#[derive(Clone)]
struct Wanted {
    role: Arc<Role>,
    changes: bool,
    slow: bool,
}

struct Waiting {
    wanted: Wanted,
    sender: oneshot::Sender<Place>,
}

pub struct Place {
    places: Arc<Places>,
    wanted: Wanted,
    /// True if no further request, or no further change, could get a place.
    pub is_last: bool,
}

impl Taken {
    fn left(&self, changes: bool) -> usize {
        let left = ALL - self.all.iter().sum::<usize>();
        if changes { left.min(CHANGES - self.all[1]) } else { left }
    }

    fn fits(&self, Wanted { changes, slow, .. }: &Wanted) -> bool {
        self.left(*changes) > 0 && (!slow || self.slow[usize::from(*changes)] < SLOW)
    }

    fn add(&mut self, waiting: Waiting) {
        let mut spent = waiting.wanted.role.spent();
        *spent = (*spent).clamp(self.level, self.level + LONG);
        drop(spent);
        self.waiting.push(waiting);
    }

    /// Removes and returns the request that gets the next place.
    fn next(&mut self) -> Option<Waiting> {
        let fitting = self.waiting.iter().enumerate().filter(|(_, one)| self.fits(&one.wanted));
        let order = |role: &Role| (role.held.load(Ordering::Relaxed), (*role.spent()).max(self.level));
        let (index, _) = fitting.min_by_key(|(_, one)| order(&one.wanted.role))?;
        let quick = self.waiting.iter().filter(|one| !one.wanted.slow);
        let least = quick.map(|one| *one.wanted.role.spent()).min();
        self.level = self.level.max(least.unwrap_or_default());
        Some(self.waiting.remove(index))
    }
}

impl Places {
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub async fn place(self: &Arc<Self>, role: &Arc<Role>, changes: bool) -> Result<Place, Problem> {
        let (sender, receiver) = oneshot::channel();
        let wanted = Wanted { role: role.clone(), changes, slow: role.is_slow(changes, Instant::now()) };
        self.taken().add(Waiting { wanted, sender });
        self.give();
        receiver.await.map_err(|_| stopping()) // no sender is dropped while its request waits
    }

    fn give(self: &Arc<Self>) {
        let mut taken = self.taken();
        taken.waiting.retain(|one| !one.sender.is_closed());
        let mut unwanted = Vec::new();
        while let Some(Waiting { wanted, sender }) = taken.next() {
            let kind = usize::from(wanted.changes);
            let is_last = taken.left(wanted.changes) == 1;
            taken.all[kind] += 1;
            taken.slow[kind] += usize::from(wanted.slow);
            wanted.role.held.fetch_add(1, Ordering::Relaxed);
            unwanted.extend(sender.send(Place { places: self.clone(), wanted, is_last }).err());
        }
        drop(taken);
        drop(unwanted); // takes the lock again
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Wanted { role, changes, slow } = &self.wanted;
        let kind = usize::from(*changes);
        let mut taken = self.places.taken();
        taken.all[kind] -= 1;
        taken.slow[kind] -= usize::from(*slow);
        role.held.fetch_sub(1, Ordering::Relaxed);
        drop(taken);
        self.places.give();
    }
}
