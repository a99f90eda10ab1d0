//! A target's token bucket limits how many calls begin per second.
//!
//! Invariant: unless the clock is set back, at most `burst` + T × `per_s` calls begin in any period of T seconds.

use crate::{Time, later};
use chrono::TimeDelta;

/// If a bucket's time is ahead of the clock by more than this time, the clock was set back, and the bucket counts as
/// full.
const FORGET: TimeDelta = TimeDelta::minutes(1);
/// Tolerance for rounding errors when fractions add up to a token.
const NEARLY: f64 = 1e-6;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    per_s: f64,
    burst: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tokens {
    pub left: f64,
    pub at: Time,
}

impl Pace {
    /// At most `burst` calls may begin at once. The default is `per_s`, or 1 if `per_s` is smaller.
    pub fn new(per_s: f64, burst: Option<u32>) -> Self {
        Self { per_s: per_s.max(1e-9), burst: burst.map_or(per_s, f64::from).max(1.0) }
    }

    pub fn level(&self, tokens: Option<Tokens>, now: Time) -> f64 {
        match tokens {
            Some(tokens) if tokens.at - now <= FORGET => {
                (tokens.left + seconds(now - tokens.at).max(0.0) * self.per_s).clamp(0.0, self.burst)
            }
            _ => self.burst,
        }
    }

    pub fn grants(&self, level: f64) -> usize {
        (level + NEARLY).floor() as usize
    }

    pub fn next_at(&self, level: f64, now: Time) -> Time {
        later(now, time((1.0 - level).max(0.0) / self.per_s))
    }

    /// Returns when the bucket is full. A full bucket need not be stored, because a missing bucket counts as full.
    pub fn full_at(&self, level: f64, now: Time) -> Time {
        later(now, time((self.burst - level).max(0.0) / self.per_s))
    }
}

fn seconds(time: TimeDelta) -> f64 {
    time.as_seconds_f64()
}

fn time(seconds: f64) -> TimeDelta {
    TimeDelta::microseconds((seconds.min(366.0 * 86_400.0) * 1e6).ceil() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::clock;
    use proptest::prelude::*;

    #[test]
    fn a_full_bucket_grants_one_burst_and_then_the_rate() {
        let (pace, now) = (Pace::new(10.0, Some(3)), clock("10:00:00"));
        assert_eq!(pace.grants(pace.level(None, now)), 3);
        let empty = Some(Tokens { left: 0.0, at: now });
        assert_eq!(pace.grants(pace.level(empty, clock("10:00:00.099"))), 0);
        assert_eq!(pace.grants(pace.level(empty, clock("10:00:00.1"))), 1);
        assert_eq!(pace.next_at(0.0, now), clock("10:00:00.1"));
        assert_eq!(pace.full_at(0.0, now), clock("10:00:00.3"));
        assert_eq!(pace.grants(pace.level(empty, clock("11:00:00"))), 3);
    }

    #[test]
    fn without_a_burst_it_is_what_a_second_brings_and_at_least_one() {
        assert_eq!(Pace::new(10.0, None), Pace::new(10.0, Some(10)));
        assert_eq!(Pace::new(0.1, None), Pace::new(0.1, Some(1)));
    }

    #[test]
    fn a_clock_that_is_set_back_stops_nobody_for_long() {
        let pace = Pace::new(1.0, None);
        let empty = Some(Tokens { left: 0.0, at: clock("10:00:00") });
        assert_eq!(pace.grants(pace.level(empty, clock("09:59:30"))), 0);
        assert_eq!(pace.grants(pace.level(empty, clock("09:58:59"))), 1);
    }

    proptest! {
        #[test]
        fn no_more_than_the_rate(rate in 0.01_f64..500.0, burst in 1_u32..50, gaps in prop::collection::vec(0_i64..5_000_000, 1..60)) {
            let pace = Pace::new(rate, Some(burst));
            let (begin, mut now) = (clock("10:00:00"), clock("10:00:00"));
            let (mut tokens, mut granted) = (None, 0_usize);
            for gap in gaps {
                now += TimeDelta::microseconds(gap);
                let level = pace.level(tokens, now);
                let take = pace.grants(level);
                if take == 0 {
                    let then = pace.next_at(level, now);
                    prop_assert_eq!(pace.grants(pace.level(tokens, then)), 1);
                } else {
                    tokens = Some(Tokens { left: level - take as f64, at: now });
                }
                granted += take;
                let most = f64::from(burst) + seconds(now - begin) * rate;
                prop_assert!(granted as f64 <= most + 0.001 * (granted as f64 + 1.0), "{} of {}", granted, most);
            }
        }
    }
}
