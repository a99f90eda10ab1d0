//! A token bucket limits how many overdue checks start per second (`awty.catch_up_rate`). All workers share the bucket,
//! and the caller locks it.
//!
//! Invariant: in any period of T seconds, the bucket grants at most `rate_per_s` × (T + 1) tokens.

use crate::Mono;
use std::time::Duration;

/// The bucket counts millionths of a token, so that the tokens of one microsecond are a whole number.
const TOKEN: u64 = 1_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    millionths: u64,
    last: Mono,
}

impl TokenBucket {
    pub const fn full(mono: Mono) -> Self {
        Self { millionths: u64::MAX, last: mono }
    }

    /// Takes up to `want` tokens, and returns their number. A rate of 0 means no limit.
    pub fn take(&mut self, rate_per_s: u32, want: u32, mono: Mono) -> u32 {
        if rate_per_s == 0 {
            self.last = mono;
            return want;
        }
        self.fill(rate_per_s, mono);
        let whole = u32::try_from(self.millionths / TOKEN).unwrap_or(u32::MAX);
        let granted = want.min(whole);
        self.millionths -= u64::from(granted) * TOKEN;
        granted
    }

    pub fn ready_in(&self, rate_per_s: u32, mono: Mono) -> Duration {
        if rate_per_s == 0 {
            return Duration::ZERO;
        }
        let mut filled = *self;
        filled.fill(rate_per_s, mono);
        Duration::from_micros(TOKEN.saturating_sub(filled.millionths).div_ceil(u64::from(rate_per_s)))
    }

    fn fill(&mut self, rate_per_s: u32, mono: Mono) {
        let rate = u64::from(rate_per_s);
        let brought = micros(mono.since(self.last)).saturating_mul(rate);
        self.millionths = self.millionths.saturating_add(brought).min(rate * TOKEN);
        self.last = mono;
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::START;

    fn after_ms(ms: i64) -> Mono {
        Mono(START.0 + ms * 1000)
    }

    #[test]
    fn a_full_bucket_grants_one_second_s_worth_and_then_the_rate() {
        let mut bucket = TokenBucket::full(START);
        assert_eq!(bucket.take(100, 1000, START), 100);
        assert_eq!(bucket.take(100, 1000, START), 0);
        assert_eq!(bucket.take(100, 1000, after_ms(250)), 25);
        assert_eq!(bucket.take(100, 5, after_ms(500)), 5);
        assert_eq!(bucket.take(100, 1000, after_ms(500)), 20);
    }

    #[test]
    fn an_idle_bucket_saves_no_more_than_one_second_s_worth() {
        let mut bucket = TokenBucket::full(START);
        assert_eq!(bucket.take(3, 10, after_ms(3_600_000)), 3);
    }

    #[test]
    fn small_fractions_add_up() {
        let mut bucket = TokenBucket::full(START);
        assert_eq!(bucket.take(1, 1, START), 1);
        let granted: u32 = (1..=3000).map(|ms| bucket.take(1, 1, after_ms(ms))).sum();
        assert_eq!(granted, 3);
    }

    #[test]
    fn a_rate_of_zero_is_no_limit() {
        let mut bucket = TokenBucket::full(START);
        assert_eq!(bucket.take(0, u32::MAX, START), u32::MAX);
        assert_eq!(bucket.ready_in(0, START), Duration::ZERO);
    }

    #[test]
    fn it_says_when_the_next_one_may_start() {
        let mut bucket = TokenBucket::full(START);
        assert_eq!(bucket.ready_in(3, START), Duration::ZERO);
        assert_eq!(bucket.take(3, 3, START), 3);
        assert_eq!(bucket.ready_in(3, START), Duration::from_micros(333_334));
        assert_eq!(bucket.take(3, 1, Mono(START.0 + 333_333)), 0);
        assert_eq!(bucket.take(3, 1, Mono(START.0 + 333_334)), 1);
    }

    #[test]
    fn a_lower_rate_takes_hold_at_once() {
        let mut bucket = TokenBucket::full(START);
        assert_eq!(bucket.take(1000, 0, START), 0);
        assert_eq!(bucket.take(10, 1000, START), 10);
    }
}
