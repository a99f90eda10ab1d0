use crate::Cluster;
use crate::preload::CLOCK;

impl Cluster {
    /// The cluster must be built with [`with_movable_clock`](crate::Builder::with_movable_clock).
    #[track_caller]
    pub fn set_clock(&self, seconds: i64) {
        CLOCK.set(self, 0, seconds);
    }

    /// Returns the seconds by which the server's clock is ahead of real time.
    #[track_caller]
    pub fn clock(&self) -> i64 {
        if CLOCK.is_installed(self) { CLOCK.get(self, 0) } else { 0 }
    }
}
