//! How many requests are at work in the database at a time.
//!
//! Invariant: no role has all connections, however long its requests wait there. Requests that change something leave one connection for
//! tokens and reads, whatever their roles are. Further requests wait for their turn, within their time.

use super::Api;
use super::auth::Asker;
use super::problem::Problem;
use crate::db::Request;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Requests of one role.
const EACH: usize = 2;
/// Requests of all roles that change something.
pub const CHANGES: usize = 3;
/// Roles that are known before those at rest are forgotten.
const MANY: usize = 1_000;

/// The places of requests.
pub struct Shares {
    roles: Mutex<HashMap<String, Arc<Semaphore>>>,
    changes: Arc<Semaphore>,
}

/// The place of a request: in its role, and, if it changes something, among all that do.
pub type Place = (OwnedSemaphorePermit, Option<OwnedSemaphorePermit>);

impl Default for Shares {
    fn default() -> Self {
        Shares { roles: Mutex::default(), changes: Arc::new(Semaphore::new(CHANGES)) }
    }
}

impl Shares {
    fn of(&self, role: &str) -> Arc<Semaphore> {
        let mut roles = self.roles.lock().unwrap_or_else(PoisonError::into_inner);
        if roles.len() >= MANY {
            roles.retain(|_, places| Arc::strong_count(places) > 1); // who waits or works has one of them
        }
        roles.entry(role.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(EACH))).clone()
    }

    /// A place, as soon as one is free.
    async fn place(&self, role: &str, changes: bool) -> Result<Place, Problem> {
        let free = async |places: Arc<Semaphore>| {
            let place = places.acquire_owned().await;
            place.map_err(|_| Problem::new("internal", "The gateway is at its end.")) // nobody closes it
        };
        let of_role = free(self.of(role)).await?;
        Ok((of_role, if changes { Some(free(self.changes.clone()).await?) } else { None }))
    }
}

impl Api {
    /// Begins the transaction of a request, as the asker's role.
    pub(super) async fn begin(&self, asker: &Asker) -> Result<Request, Problem> {
        let place = self.shares.place(asker.role(), asker.changes()).await?;
        Ok(self.db.begin(asker.role(), place).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    #[tokio::test]
    async fn each_role_has_its_places_and_no_more() {
        let shares = Shares::default();
        let held = [shares.place("a", false).await.unwrap(), shares.place("a", true).await.unwrap()];
        assert_eq!((shares.of("a").available_permits(), shares.of("b").available_permits()), (0, EACH));
        drop(held);
        assert_eq!(shares.of("a").available_permits(), EACH);
    }

    #[tokio::test]
    async fn changes_of_all_roles_leave_a_place_for_a_read() {
        let shares = Shares::default();
        let mut held = Vec::new();
        for role in 0..CHANGES {
            held.push(shares.place(&role.to_string(), true).await.unwrap());
        }
        let at_once = async |changes| timeout(Duration::ZERO, shares.place("other", changes)).await.is_ok();
        assert!(!at_once(true).await, "one change more than there may be");
        assert!(at_once(false).await, "a read waits for a change");
        held.pop();
        assert!(at_once(true).await);
    }

    #[tokio::test]
    async fn roles_at_rest_are_forgotten_and_those_at_work_are_not() {
        let shares = Shares::default();
        let held = shares.place("at work", false).await.unwrap();
        (0..MANY * 2).for_each(|number| drop(shares.of(&number.to_string())));
        assert!(shares.roles.lock().unwrap().len() <= MANY);
        assert_eq!(shares.of("at work").available_permits(), EACH - 1);
        drop(held);
    }
}
