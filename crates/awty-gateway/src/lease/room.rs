//! Invariant: a claim reserves memory before it asks for checks, so that all requests together use at most [`ROOM`]
//! KiB.

use bytes::Bytes;
use std::sync::Arc;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// Maximum memory of all requests together, in KiB.
const ROOM: usize = 128 * 1024;
/// Memory in KiB that a claim reserves for each request before the request's size is known. Only requests of checks
/// that were scheduled with `awty.schedule()` can be larger.
const LARGEST: u32 = 512;

#[derive(Clone)]
pub(super) struct Room(Arc<Semaphore>);

pub(super) struct ReservedRoom(OwnedSemaphorePermit);

impl Default for Room {
    fn default() -> Self {
        Room(Arc::new(Semaphore::new(ROOM)))
    }
}

impl Room {
    pub async fn one(&self) -> Result<ReservedRoom, AcquireError> {
        Ok(ReservedRoom(self.0.clone().acquire_many_owned(LARGEST).await?))
    }

    pub fn add_one(&self, reserved: &mut ReservedRoom) -> bool {
        let more = self.0.clone().try_acquire_many_owned(LARGEST);
        more.map(|more| reserved.0.merge(more)).is_ok()
    }

    pub fn is_full(&self) -> bool {
        self.0.available_permits() < LARGEST as usize
    }
}

impl ReservedRoom {
    pub fn split(&mut self, bytes: usize) -> Option<ReservedRoom> {
        let needed = (bytes / 1024 + 1).min(LARGEST as usize);
        self.0.split(needed).map(ReservedRoom)
    }

    pub fn hold(self, body: Bytes) -> Bytes {
        Bytes::from_owner(Held { body, _room: self })
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

    #[tokio::test]
    async fn a_body_keeps_its_room_until_its_last_part_is_gone() {
        let room = Room::default();
        let mut reserved = room.one().await.unwrap();
        let most = std::iter::repeat_with(|| room.add_one(&mut reserved)).take_while(|added| *added).count() + 1;
        assert!(room.is_full() && most == ROOM / LARGEST as usize);
        let bodies: Vec<_> =
            (0..most).map(|_| reserved.split(usize::MAX).unwrap().hold(Bytes::from_static(b"abc"))).collect();
        assert!(reserved.split(0).is_none());
        let slices: Vec<_> = bodies.iter().map(|body| body.slice(1..2)).collect();
        drop((reserved, bodies));
        assert!(room.is_full());
        assert_eq!(&slices[0][..], b"b");
        drop(slices);
        assert_eq!(room.0.available_permits(), ROOM);
    }

    #[tokio::test]
    async fn small_bodies_leave_the_rest() {
        let room = Room::default();
        let mut reserved = room.one().await.unwrap();
        let small = reserved.split(100).unwrap();
        drop(reserved);
        assert_eq!(room.0.available_permits(), ROOM - 1);
        drop(small);
        assert_eq!(room.0.available_permits(), ROOM);
    }
}
