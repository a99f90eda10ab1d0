//! Limits of the requests of one role, and the time that these requests took.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

pub(super) const LARGEST_BODY: usize = 512 * 1024;
pub(super) const EACH: usize = 2;
const TOGETHER: usize = 3;
/// A role whose request takes at least this long counts as slow for [`SLOW_FOR`]. The limit is at most the
/// `lock_timeout` of requests, because a request that fails at this timeout must count as slow too.
pub(super) const LONG: Duration = Duration::from_secs(1);
pub(super) const SLOW_FOR: Duration = Duration::from_secs(60);
/// Memory limit of a role's large request bodies in KiB: of two requests that wait or run, and of two that arrive.
/// Otherwise, requests that wait for their role's permits would keep the memory that bodies of other roles need.
pub(super) const BODIES_OF_ROLE: usize = 4 * LARGEST_BODY / 1024;
/// Memory limit of each role in KiB. It applies separately to unread answers and forms.
pub(super) const OF_ROLE: usize = 16 * 1024;

pub(super) struct Role {
    pub(super) requests: Arc<Semaphore>,
    pub(super) reads: Arc<Semaphore>,
    pub(super) changes: Arc<Semaphore>,
    long_read: Mutex<Option<Instant>>,
    long_change: Mutex<Option<Instant>>,
    spent: Mutex<Duration>,
    pub(super) held: AtomicUsize,
    pub(super) bodies: Arc<Semaphore>,
    pub(super) answers: Arc<Semaphore>,
    pub(super) forms: Arc<Semaphore>,
}

impl Role {
    pub(super) fn new() -> Self {
        let [requests, reads, changes, bodies, answers, forms] =
            [TOGETHER, EACH, EACH, BODIES_OF_ROLE, OF_ROLE, OF_ROLE].map(|permits| Arc::new(Semaphore::new(permits)));
        let [long_read, long_change] = [Mutex::default(), Mutex::default()];
        let (spent, held) = (Mutex::default(), AtomicUsize::new(0));
        Role { requests, reads, changes, long_read, long_change, spent, held, bodies, answers, forms }
    }

    fn last_long(&self, changes: bool) -> MutexGuard<'_, Option<Instant>> {
        let last = if changes { &self.long_change } else { &self.long_read };
        last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_slow(&self, changes: bool, now: Instant) -> bool {
        self.last_long(changes).is_some_and(|then| now.saturating_duration_since(then) < SLOW_FOR)
    }

    /// Time that the role's requests took. While a request waits, the time is at least the level of
    /// [`Places`](super::places::Places).
    pub(super) fn spent(&self) -> MutexGuard<'_, Duration> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn has_ended(&self, changes: bool, began: Instant, ended: Instant) {
        let took = ended.saturating_duration_since(began);
        *self.spent() += took.min(LONG);
        if took >= LONG {
            *self.last_long(changes) = Some(ended);
        }
    }
}
