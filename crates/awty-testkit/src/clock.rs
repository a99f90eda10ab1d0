//! Lets a test set a server's wall clock. The monotonic clock is unaffected.

use crate::Cluster;
use crate::preload::CLOCK;

impl Cluster {
    /// Sets the clock of all processes of the server `seconds` ahead of real time. Needs
    /// [`with_movable_clock`](crate::Builder::with_movable_clock).
    #[track_caller]
    pub fn set_clock(&self, seconds: i64) {
        CLOCK.set(self, 0, seconds);
    }

    /// Returns how many seconds the server's clock is ahead of real time. A clock that cannot be set is 0 seconds
    /// ahead.
    #[track_caller]
    pub fn clock(&self) -> i64 {
        if CLOCK.is_installed(self) { CLOCK.get(self, 0) } else { 0 }
    }
}
