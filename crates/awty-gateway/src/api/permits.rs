//! Limits how many API requests use the database at the same time.
//!
//! Invariant: all requests together leave one connection for looking up tokens and for metrics, and those of one role
//! leave another one for the other roles. A role's changes leave a connection for its reads.
//!
//! All roles with slow reads share one connection, and all roles with slow changes share another one. A request's time
//! limit includes its wait for a permit.

use super::places::{Place, Places};
use super::problem::{Problem, stopping};
use super::role::{OF_ROLE, Role};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Time limit of a statement. A request with the last free place has a shorter limit, so that two roles cannot take
/// every place for long. The shorter limit is above [`LONG`](super::role::LONG). The API tries such a request again if
/// it fails, but the page does not.
const FULL: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_secs(2);
const MANY: usize = 1_000;

#[derive(Default)]
pub struct Permits {
    roles: Mutex<HashMap<String, Arc<Role>>>,
    places: Arc<Places>,
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

pub struct Permit {
    role: Arc<Role>,
    changes: bool,
    began: OnceLock<Instant>,
    of_role: Arc<OwnedSemaphorePermit>,
    _of_requests: OwnedSemaphorePermit,
    place: Place,
}

impl Permit {
    /// Starts measuring how long the request takes. The caller must already have a connection, because waiting for a
    /// connection does not make a request slow.
    pub fn begin(&self) {
        self.began.get_or_init(Instant::now);
    }

    /// Returns the time limit of each statement.
    pub const fn limit(&self) -> Duration {
        if self.place.is_last { SHORT } else { FULL }
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
    permit.map_err(|_| stopping()) // the semaphore is never closed
}

impl Permits {
    fn of(&self, role: &str) -> Arc<Role> {
        let mut roles = self.roles.lock().unwrap_or_else(PoisonError::into_inner);
        if roles.len() >= MANY {
            let now = Instant::now();
            let is_slow = |role: &Role| [false, true].into_iter().any(|changes| role.is_slow(changes, now));
            roles.retain(|_, role| Arc::strong_count(role) > 1 || is_slow(role));
        }
        roles.entry(role.to_owned()).or_insert_with(|| Arc::new(Role::new())).clone()
    }

    pub async fn body(&self, role: &str, kib: u32) -> Result<Room, Problem> {
        let role = self.of(role);
        let room = free(&role.bodies, kib).await?;
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
        let of_requests = free(&role.requests, 1).await?;
        let place = self.places.place(&role, changes).await?;
        let (began, of_role) = (OnceLock::new(), Arc::new(of_role));
        Ok(Permit { role, changes, began, of_role, _of_requests: of_requests, place })
    }
}

#[cfg(test)]
#[path = "permits_tests.rs"]
mod tests;
