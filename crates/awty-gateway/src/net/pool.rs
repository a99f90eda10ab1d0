//! Connections that are kept for the next call.
//!
//! Invariant: a connection is used again only for the same scheme, host, port and address; never after 30 s of rest or 5 min of age.

use super::counted::Count;
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::SendRequest;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

const REST: Duration = Duration::from_secs(30);
const AGE: Duration = Duration::from_secs(5 * 60);
/// Connections that rest for one key; awty_http gives a target as many calls at once.
const PER_KEY: usize = 10;

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
    /// When it was opened.
    pub born: Instant,
}

/// Connections at rest.
#[derive(Default)]
pub struct Pool {
    idle: Mutex<HashMap<Key, Vec<(Instant, Ready)>>>,
}

impl Pool {
    /// The one that rested for the shortest time.
    pub fn take(&self, key: &Key) -> Option<Ready> {
        let mut idle = self.lock();
        let rows = idle.get_mut(key)?;
        while let Some((since, ready)) = rows.pop() {
            if is_fresh(since, &ready) {
                return Some(ready);
            }
        }
        idle.remove(key);
        None
    }

    /// Keeps one, unless there are enough.
    pub fn put(&self, key: Key, ready: Ready) {
        let mut idle = self.lock();
        let rows = idle.entry(key).or_default();
        if rows.len() < PER_KEY {
            rows.push((Instant::now(), ready));
        }
    }

    /// Closes what has rested for too long.
    pub fn sweep(&self) {
        self.lock().retain(|_, rows| {
            rows.retain(|(since, ready)| is_fresh(*since, ready));
            !rows.is_empty()
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Vec<(Instant, Ready)>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_fresh(since: Instant, ready: &Ready) -> bool {
    since.elapsed() < REST && ready.born.elapsed() < AGE && !ready.sender.is_closed()
}
