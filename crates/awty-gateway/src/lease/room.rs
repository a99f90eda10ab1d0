//! Invariant: a claim reserves memory before it asks for checks, so that all requests together use at most
//! [`REQUESTS`] times [`LARGEST`] KiB, which is 128 MiB.

use crate::net::report::Call;
use bytes::Bytes;
use hyper::header::HeaderMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// Number of requests of the largest size for which there is memory.
pub(super) const REQUESTS: usize = 256;
/// Memory in KiB that a claim reserves for each request before the request's size is known. Only requests of checks
/// that were scheduled with `awty.schedule()` can be larger.
const LARGEST: u32 = 512;
/// Memory in bytes that the HTTP library needs for a header besides its text, until the call ends.
pub(super) const OF_HEADER: usize = 128;
const ROOM: usize = REQUESTS * LARGEST as usize;

#[derive(Clone)]
pub(super) struct Room(Arc<Semaphore>);

pub(super) struct ReservedRoom {
    permit: OwnedSemaphorePermit,
    used: Used,
}

/// Memory in KiB that a request uses now.
#[derive(Clone, Debug, Default)]
pub(super) struct Used(Arc<AtomicUsize>);

impl Used {
    pub fn kib(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Converts KiB to a number of requests of the largest size. Less than one such request counts as none, so that a job
/// with a few small requests can always claim.
pub(super) fn requests(kib: usize) -> usize {
    kib / LARGEST as usize
}

impl Default for Room {
    fn default() -> Self {
        Room(Arc::new(Semaphore::new(ROOM)))
    }
}

impl Room {
    pub async fn one(&self) -> Result<ReservedRoom, AcquireError> {
        Ok(ReservedRoom { permit: self.0.clone().acquire_many_owned(LARGEST).await?, used: Used::default() })
    }

    pub fn add_one(&self, reserved: &mut ReservedRoom) -> bool {
        let more = self.0.clone().try_acquire_many_owned(LARGEST);
        more.map(|more| reserved.permit.merge(more)).is_ok()
    }

    /// Number of requests of the largest size for which there is memory now.
    pub fn free(&self) -> usize {
        self.0.available_permits() / LARGEST as usize
    }

    pub fn is_full(&self) -> bool {
        self.free() == 0
    }
}

impl ReservedRoom {
    pub fn split(&mut self, bytes: usize) -> Option<ReservedRoom> {
        let needed = (bytes / 1024 + 1).min(LARGEST as usize);
        let permit = self.permit.split(needed)?;
        Some(ReservedRoom { permit, used: Used(Arc::new(AtomicUsize::new(needed))) })
    }

    /// Gives back what a request of `bytes` does not need.
    pub fn keep(&mut self, bytes: usize) {
        let rest = self.permit.num_permits().saturating_sub(bytes / 1024 + 1);
        drop(self.permit.split(rest));
        self.used.0.store(self.permit.num_permits(), Ordering::Relaxed);
    }

    pub fn used(&self) -> Used {
        self.used.clone()
    }

    /// Gives back what the request does not need. The body keeps its memory until it is sent, and the returned rest is
    /// for the user's headers, whose memory the HTTP library keeps until the call ends.
    pub fn hold(mut self, call: &mut Call) -> Option<ReservedRoom> {
        let head = of_headers(&call.headers);
        self.keep(call.body.len() + head);
        let head = self.permit.split(head.div_ceil(1024).min(self.permit.num_permits()))?;
        let head = ReservedRoom { permit: head, used: self.used.clone() };
        let body = std::mem::take(&mut call.body);
        call.body = Bytes::from_owner(Held { body, _room: self });
        Some(head)
    }
}

/// Only the values of a user's headers are sensitive.
fn of_headers(headers: &HeaderMap) -> usize {
    let of_user = headers.iter().filter(|(_, value)| value.is_sensitive());
    of_user.map(|(name, value)| name.as_str().len() + value.len() + OF_HEADER).sum()
}

impl Drop for ReservedRoom {
    fn drop(&mut self) {
        let given_back = self.permit.num_permits();
        let rest = |used: usize| Some(used.saturating_sub(given_back));
        let _ = self.used.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest); // cannot fail
    }
}

struct Held {
    body: Bytes,
    _room: ReservedRoom,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a panic fails the test

    use super::*;
    use awty_core::uri::Uri;
    use hyper::Method;
    use hyper::header::HeaderValue;
    use std::time::Duration;

    fn held(room: ReservedRoom, headers: usize, body: usize) -> (Bytes, ReservedRoom) {
        let mut call = Call {
            tenant: 1,
            endpoint: Uri::parse("http://a.example/").unwrap(),
            method: Method::POST,
            headers: (0..headers).map(|n| (format!("x-{n:06}").parse().unwrap(), sensitive())).collect(),
            body: vec![b'a'; body].into(),
            timeout: Duration::ZERO,
            connect_timeout: Duration::ZERO,
        };
        call.headers.insert("awty-count", HeaderValue::from_static("1"));
        let head = room.hold(&mut call).unwrap();
        (call.body, head)
    }

    fn sensitive() -> HeaderValue {
        let mut value = HeaderValue::from_static("");
        value.set_sensitive(true);
        value
    }

    #[tokio::test]
    async fn headers_keep_their_room_until_the_call_ends() {
        let room = Room::default();
        let reserved = room.one().await.unwrap();
        let used = reserved.used();
        let (body, head) = held(reserved, 1_000, 9 * 1024);
        // 1,000 names of 8 bytes with 128 bytes each need 133 KiB.
        assert_eq!((room.0.available_permits(), used.kib()), (ROOM - 142, 142));
        drop(body);
        assert_eq!((room.0.available_permits(), used.kib()), (ROOM - 133, 133));
        drop(head);
        assert_eq!((room.0.available_permits(), used.kib()), (ROOM, 0));
        let (body, head) = held(room.one().await.unwrap(), 0, 0);
        drop(body);
        assert_eq!(room.0.available_permits(), ROOM, "a call without headers and body keeps nothing");
        drop(head);
    }

    #[tokio::test]
    async fn a_body_keeps_its_room_until_its_last_part_is_gone() {
        let room = Room::default();
        let mut reserved = room.one().await.unwrap();
        let most = std::iter::repeat_with(|| room.add_one(&mut reserved)).take_while(|added| *added).count() + 1;
        assert!(room.is_full() && most == ROOM / LARGEST as usize);
        let bodies: Vec<_> =
            (0..most).map(|_| held(reserved.split(usize::MAX).unwrap(), 0, LARGEST as usize * 1024).0).collect();
        assert!(reserved.split(0).is_none());
        let slices: Vec<_> = bodies.iter().map(|body| body.slice(1..2)).collect();
        drop((reserved, bodies));
        assert!(room.is_full());
        assert_eq!(&slices[0][..], b"a");
        drop(slices);
        assert_eq!(room.0.available_permits(), ROOM);
    }

    #[tokio::test]
    async fn small_bodies_leave_the_rest() {
        let room = Room::default();
        let mut reserved = room.one().await.unwrap();
        let mut small = reserved.split(100 * 1024).unwrap();
        drop(reserved);
        let used = small.used();
        assert_eq!((room.0.available_permits(), used.kib()), (ROOM - 101, 101));
        small.keep(usize::MAX);
        assert_eq!((room.0.available_permits(), used.kib()), (ROOM - 101, 101));
        small.keep(100);
        assert_eq!((room.0.available_permits(), used.kib(), requests(used.kib())), (ROOM - 1, 1, 0));
        drop(small);
        assert_eq!((room.0.available_permits(), used.kib()), (ROOM, 0));
    }
}
