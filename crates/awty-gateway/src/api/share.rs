//! How many requests of one role are at work in the database at a time.
//!
//! Invariant: no role has all connections, however long its requests wait there. What is beyond waits for its turn, within its time.

use super::Api;
use super::auth::Asker;
use super::problem::Problem;
use crate::db::Request;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Of three connections.
const EACH: usize = 2;
/// Roles that are known before those at rest are forgotten.
const MANY: usize = 1_000;

/// The roles that ask.
#[derive(Default)]
pub struct Shares(Mutex<HashMap<String, Arc<Semaphore>>>);

impl Shares {
    fn of(&self, role: &str) -> Arc<Semaphore> {
        let mut roles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if roles.len() >= MANY {
            roles.retain(|_, places| Arc::strong_count(places) > 1); // who waits or works has one of them
        }
        roles.entry(role.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(EACH))).clone()
    }

    /// A place, as soon as one is free.
    async fn place(&self, role: &str) -> Result<OwnedSemaphorePermit, Problem> {
        let place = self.of(role).acquire_owned().await;
        place.map_err(|_| Problem::new("internal", "The gateway is at its end.")) // nobody closes it
    }
}

impl Api {
    /// Begins the transaction of a request, as the asker's role.
    pub(super) async fn begin(&self, asker: &Asker) -> Result<Request, Problem> {
        let place = self.shares.place(asker.role()).await?;
        Ok(self.db.begin(asker.role(), place).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_role_has_its_places_and_no_more() {
        let shares = Shares::default();
        let held = [shares.place("a").await.unwrap(), shares.place("a").await.unwrap()];
        assert_eq!((shares.of("a").available_permits(), shares.of("b").available_permits()), (0, EACH));
        drop(held);
        assert_eq!(shares.of("a").available_permits(), EACH);
    }

    #[tokio::test]
    async fn roles_at_rest_are_forgotten_and_those_at_work_are_not() {
        let shares = Shares::default();
        let held = shares.place("at work").await.unwrap();
        (0..MANY * 2).for_each(|number| drop(shares.of(&number.to_string())));
        assert!(shares.0.lock().unwrap().len() <= MANY);
        assert_eq!(shares.of("at work").available_permits(), EACH - 1);
        drop(held);
    }
}
