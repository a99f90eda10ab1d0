//! Invariant: an idle connection is used again only for the same tenant, scheme, host, port and address. No connection
//! is used again if it was idle for [`REST`], or if it is as old as [`AGE`].

use super::allowance::Allowance;
use super::counted::Count;
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
pub const MOST: usize = 1_000;
const SWEEP: Duration = Duration::from_secs(5);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// An endpoint may answer a request late, or answer bytes of a body that it takes for a request. The next call on
    /// the connection would get this answer.
    pub tenant: i64,
    pub tls: bool,
    pub host: String,
    pub address: SocketAddr,
}

pub struct Ready {
    pub sender: SendRequest<Full<Bytes>>,
    pub count: Count,
    pub allowance: Allowance,
    pub born: Instant,
    pub task: AbortHandle,
}

impl Drop for Ready {
    /// Aborts the task. A normal end of TLS would first write all waiting data, and would never end if the peer does
    /// not read.
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub struct Pool {
    idle: Mutex<Idle>,
    most: usize,
}

#[derive(Default)]
struct Idle {
    /// In each list, the connection that was idle longest comes first. No list is empty.
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
    pub fn new(most: usize) -> Self {
        Pool { idle: Mutex::default(), most }
    }

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

    /// Origins need no limit of idle connections. A call opens a connection only if none is idle, so concurrent calls
    /// limit the number of connections.
    pub fn put(&self, key: Key, ready: Ready) {
        let mut idle = self.lock();
        if idle.count >= self.most {
            idle.evict();
        }
        idle.rows.entry(key).or_default().push((Instant::now(), ready));
        idle.count += 1;
    }

    pub fn sweep(&self) {
        let mut idle = self.lock();
        idle.rows.retain(|_, rows| {
            rows.retain(|(since, ready)| is_fresh(*since, ready));
            !rows.is_empty()
        });
        idle.count = idle.rows.values().map(Vec::len).sum();
    }

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
