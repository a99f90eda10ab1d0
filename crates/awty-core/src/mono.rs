use std::time::Duration;

/// Microseconds of the monotonic clock, which is never set back. Only the difference of two values has a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mono(pub i64);

impl Mono {
    pub fn since(self, earlier: Mono) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0).max(0).unsigned_abs())
    }

    pub fn plus(self, wait: Duration) -> Mono {
        Mono(self.0.saturating_add(micros(wait)))
    }
}

fn micros(wait: Duration) -> i64 {
    i64::try_from(wait.as_micros()).unwrap_or(i64::MAX)
}
