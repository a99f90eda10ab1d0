//! How many bytes of requests are held at once.
//!
//! Invariant: what a claim may bring has room before it is asked for, so requests need no more than [`ROOM`], however many places there are.
//! A request has its room, with the secrets that are filled in, until its body has left; without a body, until the call ends.
//!
//! Does not: count the answers, which have a bound of their own.

use bytes::Bytes;
use std::sync::Arc;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// In KiB.
const ROOM: usize = 128 * 1024;
/// Of one call, in KiB, before it is known: body and headers of what awty_http has made, with base64 and quotes. What is
/// larger, by `awty.schedule()` up to 1 MiB, counts as this.
const LARGEST: u32 = 512;

/// Room for bodies.
#[derive(Clone)]
pub(super) struct Room(Arc<Semaphore>);

/// A part of it; it is free again when this is dropped.
pub(super) struct Part(OwnedSemaphorePermit);

impl Default for Room {
    fn default() -> Self {
        Room(Arc::new(Semaphore::new(ROOM)))
    }
}

impl Room {
    /// Waits until there is room for one call of any size.
    pub async fn one(&self) -> Result<Part, AcquireError> {
        Ok(Part(self.0.clone().acquire_many_owned(LARGEST).await?))
    }

    /// Adds room for another call of any size, if there is some now.
    pub fn add_one(&self, part: &mut Part) -> bool {
        let more = self.0.clone().try_acquire_many_owned(LARGEST);
        more.map(|more| part.0.merge(more)).is_ok()
    }

    /// No call of any size has room now.
    pub fn is_full(&self) -> bool {
        self.0.available_permits() < LARGEST as usize
    }
}

impl Part {
    /// Takes what so many bytes need.
    pub fn split(&mut self, bytes: usize) -> Option<Part> {
        let needed = (bytes / 1024 + 1).min(LARGEST as usize);
        self.0.split(needed).map(Part)
    }

    /// The body has this room as long as any part of it is held.
    pub fn hold(self, body: Bytes) -> Bytes {
        Bytes::from_owner(Held { body, _part: self })
    }
}

struct Held {
    body: Bytes,
    _part: Part,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // in a test the panic is the report

    use super::*;

    #[tokio::test]
    async fn a_body_keeps_its_room_until_its_last_part_is_gone() {
        let room = Room::default();
        let mut part = room.one().await.unwrap();
        let most = std::iter::repeat_with(|| room.add_one(&mut part)).take_while(|added| *added).count() + 1;
        assert!(room.is_full() && most == ROOM / LARGEST as usize);
        // All are as large as can be.
        let bodies: Vec<_> =
            (0..most).map(|_| part.split(usize::MAX).unwrap().hold(Bytes::from_static(b"abc"))).collect();
        assert!(part.split(0).is_none());
        let slices: Vec<_> = bodies.iter().map(|body| body.slice(1..2)).collect();
        drop((part, bodies));
        assert!(room.is_full());
        assert_eq!(&slices[0][..], b"b");
        drop(slices);
        assert_eq!(room.0.available_permits(), ROOM);
    }

    #[tokio::test]
    async fn small_bodies_leave_the_rest() {
        let room = Room::default();
        let mut part = room.one().await.unwrap();
        let small = part.split(100).unwrap();
        drop(part);
        assert_eq!(room.0.available_permits(), ROOM - 1);
        drop(small);
        assert_eq!(room.0.available_permits(), ROOM);
    }
}
