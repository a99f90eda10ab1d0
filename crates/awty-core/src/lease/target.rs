//! Limits the calls to a target. The entity name of a check is the name of the target that the check calls.
//!
//! Invariant: awty grants a lease only while fewer than `concurrency` leases of the target are live. A half-open
//! breaker allows one lease at a time.

use super::breaker::{self, Breaker};
use super::tokens::{Pace, Tokens};
use crate::Time;
use std::ops::RangeInclusive;

pub const COUNTS: RangeInclusive<i32> = 1..=1_000_000;
/// Permitted rates in calls per second.
pub const RATES: RangeInclusive<f64> = 0.000_1..=1_000_000.0;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Target {
    pub concurrency: Option<u32>,
    pub pace: Option<Pace>,
    /// A user or the target itself has blocked all calls until this time.
    pub blocked_until: Option<Time>,
    pub in_flight: u32,
    pub tokens: Option<Tokens>,
    pub breaker: Option<Breaker>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Ready,
    Blocked(Time),
    Open(Time),
    HalfOpen,
    Full(Option<Time>),
}

impl Standing {
    pub fn word(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Blocked(_) => "blocked",
            Self::Open(_) => "open",
            Self::HalfOpen => "half_open",
            Self::Full(_) => "full",
        }
    }

    pub fn until(self) -> Option<Time> {
        match self {
            Self::Blocked(until) | Self::Open(until) => Some(until),
            Self::Full(until) => until,
            Self::Ready | Self::HalfOpen => None,
        }
    }
}

impl Target {
    pub fn allows(&self, now: Time) -> usize {
        let most = self.concurrency.map_or(usize::MAX, |most| most.saturating_sub(self.in_flight) as usize);
        let tokens = self.pace.map_or(usize::MAX, |pace| pace.grants(pace.level(self.tokens, now)));
        match self.standing(now) {
            Standing::Ready => most.min(tokens),
            Standing::HalfOpen => 1_usize.saturating_sub(self.in_flight as usize).min(tokens),
            _ => 0,
        }
    }

    /// If several states apply to a target, returns the most restrictive one.
    pub fn standing(&self, now: Time) -> Standing {
        if let Some(until) = self.blocked_until.filter(|until| now < *until) {
            return Standing::Blocked(until);
        }
        let is_half_open = match self.breaker.map(|breaker| breaker.state(now)) {
            Some(breaker::State::Open(until)) => return Standing::Open(until),
            state => state == Some(breaker::State::HalfOpen),
        };
        if self.concurrency.is_some_and(|most| self.in_flight >= most) {
            return Standing::Full(None);
        }
        match self.pace.map(|pace| (pace, pace.level(self.tokens, now))) {
            Some((pace, level)) if pace.grants(level) == 0 => Standing::Full(Some(pace.next_at(level, now))),
            _ if is_half_open => Standing::HalfOpen,
            _ => Standing::Ready,
        }
    }

    pub fn take(&self, leases: usize, now: Time) -> Option<(Tokens, Time)> {
        let pace = self.pace?;
        let left = pace.level(self.tokens, now) - leases as f64;
        Some((Tokens { left, at: now }, pace.full_at(left, now)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::clock;
    use chrono::TimeDelta;

    #[test]
    fn each_limit_counts_and_the_gravest_is_named() {
        let now = clock("10:00:00");
        let free = Target::default();
        assert_eq!((free.allows(now), free.standing(now)), (usize::MAX, Standing::Ready));
        let some = Target { concurrency: Some(10), in_flight: 4, ..free };
        assert_eq!(some.allows(now), 6);
        let full = Target { in_flight: 12, ..some };
        assert_eq!((full.allows(now), full.standing(now)), (0, Standing::Full(None)));
        let slow = Target { pace: Some(Pace::new(2.0, None)), ..some };
        assert_eq!(slow.allows(now), 2);
        let (tokens, full_at) = slow.take(2, now).unwrap();
        let spent = Target { tokens: Some(tokens), ..slow };
        assert_eq!((spent.allows(now), full_at), (0, clock("10:00:01")));
        assert_eq!(spent.standing(now), Standing::Full(Some(clock("10:00:00.5"))));
        let breaker = Breaker { failures: 10, since: now, opened_at: Some(now), opens: 1 };
        let open = Target { breaker: Some(breaker), ..spent };
        assert_eq!(open.standing(now), Standing::Open(clock("10:00:30")));
        let half = clock("10:00:30");
        assert_eq!((open.allows(half), Target { in_flight: 0, ..open }.allows(half)), (0, 1));
        let blocked = Target { blocked_until: Some(clock("10:01:00")), ..open };
        assert_eq!(blocked.standing(now), Standing::Blocked(clock("10:01:00")));
        assert_eq!(blocked.standing(now + TimeDelta::minutes(2)), Standing::HalfOpen);
    }
}
