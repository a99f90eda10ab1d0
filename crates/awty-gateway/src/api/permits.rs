//! Limits how many API requests use the database at the same time.
//!
//! Invariant: all requests together leave one connection for looking up tokens and for metrics, and those of one role
//! leave another one for the other roles. A role's changes leave a connection for its reads.
//!
//! All roles with slow reads share one connection, and all roles with slow changes share another one. A request's time
//! limit includes its wait for a permit.

use super::problem::Problem;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

const EACH: usize = 2;
const TOGETHER: usize = 3;
pub const CHANGES: usize = 3;
/// Number of database connections that are only for reads and for looking up tokens.
pub const READS: usize = 2;
const SLOW: usize = 1;
/// A role whose request takes at least this long counts as slow for [`SLOW_FOR`]. The limit is at most the
/// `lock_timeout` of requests, because a request that fails at this timeout must count as slow too.
const LONG: Duration = Duration::from_secs(1);
const SLOW_FOR: Duration = Duration::from_secs(60);
const MANY: usize = 1_000;
/// Memory limit of each role in KiB. It applies separately to large request bodies, unread answers and forms.
pub(super) const OF_ROLE: usize = 16 * 1024;

pub struct Permits {
    roles: Mutex<HashMap<String, Arc<Role>>>,
    all: Arc<Semaphore>,
    changes: Arc<Semaphore>,
    slow_reads: Arc<Semaphore>,
    slow_changes: Arc<Semaphore>,
}

pub(super) struct Role {
    requests: Arc<Semaphore>,
    reads: Arc<Semaphore>,
    changes: Arc<Semaphore>,
    long_read: Mutex<Option<Instant>>,
    long_change: Mutex<Option<Instant>>,
    bodies: Arc<Semaphore>,
    answers: Arc<Semaphore>,
    forms: Arc<Semaphore>,
}

pub struct Room(#[allow(dead_code)] Arc<Role>, #[allow(dead_code)] OwnedSemaphorePermit);

#[derive(Clone, Default)]
pub struct Seen(Arc<OnceLock<String>>);

impl Seen {
    pub fn is(&self, role: &str) {
        self.0.get_or_init(|| role.to_owned());
    }

    pub fn role(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}

impl Role {
    fn last_long(&self, changes: bool) -> MutexGuard<'_, Option<Instant>> {
        let last = if changes { &self.long_change } else { &self.long_read };
        last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_slow(&self, changes: bool, now: Instant) -> bool {
        self.last_long(changes).is_some_and(|then| now.saturating_duration_since(then) < SLOW_FOR)
    }

    fn has_ended(&self, changes: bool, began: Instant, ended: Instant) {
        if ended.saturating_duration_since(began) >= LONG {
            *self.last_long(changes) = Some(ended);
        }
    }
}

pub struct Permit {
    role: Arc<Role>,
    changes: bool,
    began: OnceLock<Instant>,
    of_role: Arc<OwnedSemaphorePermit>,
    _of_all: [Option<OwnedSemaphorePermit>; 4],
}

impl Permit {
    /// Starts measuring how long the request takes. The caller must already have a connection, because waiting for a
    /// connection does not make a request slow.
    pub fn begin(&self) {
        self.began.get_or_init(Instant::now);
    }

    /// Returns the permit from the role's own semaphore, which no other role uses.
    pub fn of_role(&self) -> Arc<OwnedSemaphorePermit> {
        self.of_role.clone()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(began) = self.began.get() {
            self.role.has_ended(self.changes, *began, Instant::now());
        }
    }
}

async fn free(permits: &Arc<Semaphore>, number: u32) -> Result<OwnedSemaphorePermit, Problem> {
    let permit = permits.clone().acquire_many_owned(number).await;
    permit.map_err(|_| Problem::new("internal", "The gateway is stopping.")) // the semaphore is never closed
}

impl Default for Permits {
    fn default() -> Self {
        let [all, changes, slow_reads, slow_changes] =
            [CHANGES + READS - 1, CHANGES, SLOW, SLOW].map(|permits| Arc::new(Semaphore::new(permits)));
        Permits { roles: Mutex::default(), all, changes, slow_reads, slow_changes }
    }
}

impl Permits {
    fn of(&self, role: &str) -> Arc<Role> {
        let mut roles = self.roles.lock().unwrap_or_else(PoisonError::into_inner);
        if roles.len() >= MANY {
            let now = Instant::now();
            let is_slow = |role: &Role| [false, true].into_iter().any(|changes| role.is_slow(changes, now));
            roles.retain(|_, role| Arc::strong_count(role) > 1 || is_slow(role));
        }
        let new = || {
            let [requests, reads, changes, bodies, answers, forms] =
                [TOGETHER, EACH, EACH, OF_ROLE, OF_ROLE, OF_ROLE].map(|permits| Arc::new(Semaphore::new(permits)));
            let [long_read, long_change] = [Mutex::default(), Mutex::default()];
            Arc::new(Role { requests, reads, changes, long_read, long_change, bodies, answers, forms })
        };
        roles.entry(role.to_owned()).or_insert_with(new).clone()
    }

    pub async fn body(&self, role: &str, kib: u32) -> Result<Room, Problem> {
        let role = self.of(role);
        let room = free(&role.bodies, kib.min(OF_ROLE as u32)).await?;
        Ok(Room(role, room))
    }

    pub async fn answer(&self, role: &str, kib: u32) -> Result<Room, Problem> {
        let role = self.of(role);
        let room = free(&role.answers, kib.min(OF_ROLE as u32)).await?;
        Ok(Room(role, room))
    }

    /// Forms have their own memory limit. Otherwise, a form and its request to the API could wait for each other's
    /// memory.
    pub async fn form(&self, role: &str, kib: u32) -> Result<Room, Problem> {
        let role = self.of(role);
        let room = free(&role.forms, kib.min(OF_ROLE as u32)).await?;
        Ok(Room(role, room))
    }

    pub async fn permit(&self, role: &str, changes: bool) -> Result<Permit, Problem> {
        let role = self.of(role);
        let of_role = free(if changes { &role.changes } else { &role.reads }, 1).await?;
        let of_requests = Some(free(&role.requests, 1).await?);
        let of_slow = if role.is_slow(changes, Instant::now()) {
            Some(free(if changes { &self.slow_changes } else { &self.slow_reads }, 1).await?)
        } else {
            None
        };
        let of_changes = if changes { Some(free(&self.changes, 1).await?) } else { None };
        let of_all = [of_requests, of_slow, of_changes, Some(free(&self.all, 1).await?)];
        Ok(Permit { role, changes, began: OnceLock::new(), of_role: Arc::new(of_role), _of_all: of_all })
    }
}

#[cfg(test)]
#[path = "permits_tests.rs"]
mod tests;
