//! A target's circuit breaker stops calls to the target after ten failures in a row.
//!
//! ```text
//! closed ── ten failures over at least 10 s ──► open ── wait is over ──► half open ── answer ──► closed
//!                                                ▲                           │
//!                                                └── failure: wait doubles ──┘
//! ```
//!
//! Invariant: a breaker stays open for at most [`LONGEST`], unless the clock is set back.

use crate::{Time, later};
use chrono::TimeDelta;

const ROW: u32 = 10;
const OVER: TimeDelta = TimeDelta::seconds(10);
const SHORTEST: TimeDelta = TimeDelta::seconds(30);
const LONGEST: TimeDelta = TimeDelta::minutes(15);
/// If `opened_at` is ahead of the clock by more than this time, the clock was set back, and the breaker becomes half
/// open.
const FORGET: TimeDelta = TimeDelta::minutes(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breaker {
    pub failures: u32,
    pub since: Time,
    pub opened_at: Option<Time>,
    pub opens: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Closed,
    Open(Time),
    HalfOpen,
}

impl Breaker {
    pub fn state(&self, now: Time) -> State {
        let Some(opened_at) = self.opened_at else { return State::Closed };
        let until = later(opened_at, self.wait());
        if now < until && opened_at - now <= FORGET { State::Open(until) } else { State::HalfOpen }
    }

    fn wait(&self) -> TimeDelta {
        SHORTEST.checked_mul(1 << self.opens.clamp(1, 20).saturating_sub(1)).unwrap_or(LONGEST).min(LONGEST)
    }

    /// Returns the breaker's new state after a failed call, or `None` if the call does not change the state.
    pub fn after_failure(before: Option<Self>, now: Time) -> Option<Self> {
        let Some(before) = before else { return Some(Self { failures: 1, since: now, opened_at: None, opens: 0 }) };
        let failures = before.failures.saturating_add(1);
        let since = before.since.min(now);
        match before.state(now) {
            // The failed call began before the breaker opened, so the failure changes nothing.
            State::Open(_) => None,
            State::HalfOpen => {
                Some(Self { failures, since, opened_at: Some(now), opens: before.opens.saturating_add(1).min(1000) })
            }
            State::Closed if failures >= ROW && now - since >= OVER => {
                Some(Self { failures, since, opened_at: Some(now), opens: 1 })
            }
            State::Closed => Some(Self { failures, since, ..before }),
        }
    }

    /// Returns whether an answer closes the breaker. An open breaker ignores the answers of earlier calls.
    pub fn ends_with_answer(&self, now: Time) -> bool {
        !matches!(self.state(now), State::Open(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::clock;
    use proptest::prelude::*;

    fn failed(times: u32, step: TimeDelta) -> (Breaker, Time) {
        let mut now = clock("10:00:00");
        let mut breaker = Breaker::after_failure(None, now).unwrap();
        for _ in 1..times {
            now += step;
            breaker = Breaker::after_failure(Some(breaker), now).unwrap();
        }
        (breaker, now)
    }

    #[test]
    fn ten_in_a_row_over_ten_seconds_open_it_and_fewer_or_faster_do_not() {
        let (nine, now) = failed(9, TimeDelta::seconds(2));
        assert_eq!(nine.state(now), State::Closed);
        let (fast, now) = failed(10, TimeDelta::seconds(1));
        assert_eq!(fast.state(now), State::Closed, "over nine seconds");
        let (ten, now) = failed(10, TimeDelta::seconds(2));
        assert_eq!(ten.state(now), State::Open(now + SHORTEST));
        assert!(nine.ends_with_answer(now) && !ten.ends_with_answer(now));
    }

    #[test]
    fn half_open_it_opens_for_twice_as_long_up_to_a_quarter_of_an_hour() {
        let (mut breaker, mut now) = failed(10, TimeDelta::seconds(2));
        for minutes_and_halves in [1, 2, 4, 8, 16, 30, 30, 30] {
            let State::Open(until) = breaker.state(now) else { panic!() };
            assert_eq!(until - now, SHORTEST * minutes_and_halves.min(30));
            assert_eq!(Breaker::after_failure(Some(breaker), until - TimeDelta::seconds(1)), None);
            assert_eq!(breaker.state(until), State::HalfOpen);
            assert!(breaker.ends_with_answer(until));
            now = until;
            breaker = Breaker::after_failure(Some(breaker), now).unwrap();
        }
    }

    proptest! {
        #[test]
        fn it_is_never_open_for_longer(jumps in prop::collection::vec(-10_000_i64..10_000, 1..100)) {
            let (mut breaker, mut now) = (None, clock("10:00:00"));
            for jump in jumps {
                now += TimeDelta::seconds(jump);
                breaker = Breaker::after_failure(breaker, now).or(breaker);
                if let Some(State::Open(until)) = breaker.map(|breaker| breaker.state(now)) {
                    prop_assert!(until - now <= LONGEST + FORGET);
                }
            }
        }
    }
}
