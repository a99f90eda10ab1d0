//! Connections that are kept for the next call.
//!
//! Invariant: a connection is reused only for the same scheme, host, port and address, and never after 30 s of idle
//! time or at an age of 5 min. At most [`MOST`] are idle. A dropped connection is closed at once.

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
const MOST: usize = 1_000;
const SWEEP: Duration = Duration::from_secs(5);

/// Identity of a connection. The address includes the port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// Whether it is `https`.
    pub tls: bool,
    /// Host as in the URI.
    pub host: String,
    /// Address of the peer.
    pub address: SocketAddr,
}

/// A connection that is ready for a request.
pub struct Ready {
    /// Sends requests.
    pub sender: SendRequest<Full<Bytes>>,
    /// Number of bytes written on it.
    pub count: Count,
    /// Bound of the bytes before an answer.
    pub early: Early,
    /// Time when it was opened.
    pub born: Instant,
    /// Task that moves its bytes.
    pub task: AbortHandle,
}

impl Drop for Ready {
    /// Closes the socket. A peer that does not read could otherwise keep the connection for ever, because TLS closes
    /// only after everything is written.
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Idle connections.
#[derive(Default)]
pub struct Pool {
    idle: Mutex<Idle>,
}

#[derive(Default)]
struct Idle {
    /// The connection with the longest idle time comes first. No list is empty.
    rows: HashMap<Key, Vec<(Instant, Ready)>>,
    count: usize,
}

impl Idle {
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
    /// Takes the connection with the shortest idle time.
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

    /// Keeps a connection. In a full pool, the one with the longest idle time is closed. A key has at most as many as
    /// it had calls at a time, because a new one is opened only while none is idle.
    pub fn put(&self, key: Key, ready: Ready) {
        let mut idle = self.lock();
        if idle.count >= MOST {
            idle.evict();
        }
        idle.rows.entry(key).or_default().push((Instant::now(), ready));
        idle.count += 1;
    }

    /// Closes connections that were idle for too long.
    pub fn sweep(&self) {
        let mut idle = self.lock();
        idle.rows.retain(|_, rows| {
            rows.retain(|(since, ready)| is_fresh(*since, ready));
            !rows.is_empty()
        });
        idle.count = idle.rows.values().map(Vec::len).sum();
    }

    /// Sweeps until the program ends.
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
