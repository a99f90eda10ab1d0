//! A server's wall clock that a test can set. The monotonic clock is unaffected.

use crate::Cluster;
use crate::preload::CLOCK;

impl Cluster {
    /// Sets the server's clock `seconds` ahead of real time in all of its processes. Needs
    /// [`with_movable_clock`](crate::Builder::with_movable_clock).
    #[track_caller]
    pub fn set_clock(&self, seconds: i64) {
        CLOCK.set(self, 0, seconds);
    }

    /// Returns how many seconds the server's clock is ahead; 0 if it cannot be set.
    #[track_caller]
    pub fn clock(&self) -> i64 {
        if CLOCK.is_installed(self) { CLOCK.get(self, 0) } else { 0 }
    }
}
