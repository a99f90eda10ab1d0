//! Connections that are kept for the next call.
//!
//! Invariant: a connection is used again only for the same scheme, host, port and address; never after 30 s of rest or 5 min of age.
//! No more than [`MOST`] rest, and one that is dropped is closed at once.

use super::counted::{Count, Early};
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::SendRequest;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};

const REST: Duration = Duration::from_secs(30);
const AGE: Duration = Duration::from_secs(5 * 60);
/// Connections that rest at all.
const MOST: usize = 1_000;
/// How often those are closed that have rested for too long.
const SWEEP: Duration = Duration::from_secs(5);

/// Whose connection it is; the address has the port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// `https` or `http`.
    pub tls: bool,
    /// As it stands in the URI.
    pub host: String,
    /// The peer.
    pub address: SocketAddr,
}

/// A connection that can take a request.
pub struct Ready {
    /// Takes requests.
    pub sender: SendRequest<Full<Bytes>>,
    /// What was written on it.
    pub count: Count,
    /// What may come before an answer.
    pub early: Early,
    /// When it was opened.
    pub born: Instant,
    /// What moves its bytes.
    pub task: AbortHandle,
}

impl Drop for Ready {
    /// Without this, a peer that does not read could keep it open for ever: TLS closes only once all is written.
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Connections at rest.
#[derive(Default)]
pub struct Pool {
    idle: Mutex<Idle>,
}

#[derive(Default)]
struct Idle {
    /// Of each key the one that has rested for the longest time first; no key has none.
    rows: HashMap<Key, Vec<(Instant, Ready)>>,
    count: usize,
}

impl Idle {
    /// Closes the one that has rested for the longest time.
    fn evict(&mut self) {
        let oldest =
            self.rows.iter().filter_map(|(key, rows)| Some((rows.first()?.0, key))).min_by_key(|(since, _)| *since);
        let Some(key) = oldest.map(|(_, key)| key.clone()) else { return };
        if let Some(rows) = self.rows.get_mut(&key) {
            rows.remove(0);
            self.count -= 1;
            if rows.is_empty() {
                self.rows.remove(&key);
            }
        }
    }
}

impl Pool {
    /// The one that rested for the shortest time.
    pub fn take(&self, key: &Key) -> Option<Ready> {
        let mut idle = self.lock();
        let rows = idle.rows.get_mut(key)?;
        let mut closed = 0;
        let fresh = loop {
            match rows.pop() {
                Some((since, ready)) if is_fresh(since, &ready) => break Some(ready),
                Some(_) => closed += 1,
                None => break None,
            }
        };
        let empty = rows.is_empty();
        if empty {
            idle.rows.remove(key);
        }
        idle.count -= closed + usize::from(fresh.is_some());
        fresh
    }

    /// Keeps one. Where there are enough of all, the oldest goes. A key has no more than it had calls at once: a new one is opened only while
    /// none rests.
    pub fn put(&self, key: Key, ready: Ready) {
        let mut idle = self.lock();
        if idle.count >= MOST {
            idle.evict();
        }
        idle.rows.entry(key).or_default().push((Instant::now(), ready));
        idle.count += 1;
    }

    /// Closes what has rested for too long.
    pub fn sweep(&self) {
        let mut idle = self.lock();
        idle.rows.retain(|_, rows| {
            rows.retain(|(since, ready)| is_fresh(*since, ready));
            !rows.is_empty()
        });
        idle.count = idle.rows.values().map(Vec::len).sum();
    }

    /// Sweeps for as long as the program lives.
    pub async fn sweeps(self: Arc<Self>) {
        loop {
            sleep(SWEEP).await;
            self.sweep();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_fresh(since: Instant, ready: &Ready) -> bool {
    since.elapsed() < REST && ready.born.elapsed() < AGE && !ready.sender.is_closed()
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
